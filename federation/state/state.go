package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// openTimeout bounds the wait for the file's lock. A short command that holds
// it just now is worth waiting for; a daemon is not.
const openTimeout = time.Second

// Options is what a DB works with.
type Options struct {
	Timeout time.Duration    // how long to wait for another holder, 0: one second
	Now     func() time.Time // nil: time.Now
}

// A DB is the open state file. It is safe for concurrent use.
type DB struct {
	bolt     *bbolt.DB
	path     string
	now      func() time.Time
	keys     *Keys
	eras     *eras
	contacts *contacts
	health   health
}

// Open opens the file at path, creates it when there is none, and brings its
// layout up to date. When another process holds the file the error is an
// *InUseError.
func Open(path string, o Options) (*DB, error) {
	if o.Timeout <= 0 {
		o.Timeout = openTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := refuseEmpty(path, o.Timeout); err != nil {
		return nil, err
	}
	bolt, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: o.Timeout, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, openError(path, err)
	}
	db := &DB{bolt: bolt, path: path, now: o.Now}
	if err := db.begin(); err != nil {
		bolt.Close()
		return nil, err
	}
	return db, nil
}

func (db *DB) begin() error {
	if err := migrate(db.bolt, db.path); err != nil {
		return err
	}
	keys, err := openKeys(db.bolt, db.now)
	if err != nil {
		return fmt.Errorf("%s: %w", db.path, err)
	}
	db.keys = keys
	if db.eras, err = openEras(db.bolt); err != nil {
		return fmt.Errorf("%s: %w", db.path, err)
	}
	if db.contacts, err = openContacts(db.bolt); err != nil {
		return fmt.Errorf("%s: %w", db.path, err)
	}
	// Only for the message of whoever comes second; the lock is what counts.
	writePID(db.path)
	return nil
}

// Close writes what is still pending and gives the file up.
func (db *DB) Close() error {
	err := db.contacts.close()
	removePID(db.path)
	return errors.Join(err, db.bolt.Close())
}

// Path is the file's path.
func (db *DB) Path() string { return db.path }

// Keys is the ring of keys that seal approvals.
func (db *DB) Keys() *Keys { return db.keys }

// refuseEmpty refuses a file without content. bbolt would make a fresh state of
// it, and every tool an operator had enabled would be gone without a word.
// Another process that is just creating the file gets a moment to finish.
func refuseEmpty(path string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return openError(path, err)
		case info.IsDir():
			return fmt.Errorf("%s: is a directory; set [state] path to a file", path)
		case info.Size() > 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s: the file is empty, which a state never is; restore it from a backup, or remove it to begin with nothing enabled", path)
		}
	}
}

// openError says in the operator's words why the file did not open.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return &InUseError{Path: path, PID: readPID(path)}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errReadOnly):
		return fmt.Errorf("%s: cannot be opened for writing; the file and its directory %s must be writable by this user: %w", path, filepath.Dir(path), err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: the directory %s does not exist; create it or set [state] path", path, filepath.Dir(path))
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("%s: not a state file, or damaged (%v); restore it from a backup, or move it away to begin with nothing enabled", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}
