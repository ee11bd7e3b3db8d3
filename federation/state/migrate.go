package state

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// The buckets.
var (
	bucketMeta    = []byte("meta")
	bucketServers = []byte("servers")
	bucketTools   = []byte("tools")
	bucketEra     = []byte("era")
	bucketContact = []byte("contact")
	bucketKeys    = []byte("keys")
	bucketVault   = []byte("vault")
)

var keyVersion = []byte("version")

// migrations bring the layout from version i to i+1. Entries are only ever
// added at the end; a released one never changes.
var migrations = []func(*bbolt.Tx) error{
	createBuckets,
}

func createBuckets(tx *bbolt.Tx) error {
	for _, name := range [][]byte{bucketServers, bucketTools, bucketEra, bucketContact, bucketKeys, bucketVault} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// migrate runs the missing migrations in one transaction, so that a crash
// leaves the old layout or the new one.
func migrate(bolt *bbolt.DB, path string) error {
	known := uint64(len(migrations))
	version, err := layout(bolt)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case version > known:
		return fmt.Errorf("%s: written by a newer gatehouse (layout %d, this one knows up to %d); use that version, or restore a backup", path, version, known)
	case version == known:
		return nil
	}
	err = bolt.Update(func(tx *bbolt.Tx) error {
		for _, step := range migrations[version:] {
			if err := step(tx); err != nil {
				return err
			}
		}
		meta, err := tx.CreateBucketIfNotExists(bucketMeta)
		if err != nil {
			return err
		}
		return meta.Put(keyVersion, binary.BigEndian.AppendUint64(nil, known))
	})
	if err != nil {
		return fmt.Errorf("%s: layout %d could not be brought to %d: %w", path, version, known, err)
	}
	return nil
}

// layout reads the version; 0 is a file that holds nothing yet.
func layout(bolt *bbolt.DB) (version uint64, err error) {
	err = bolt.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if k, _ := tx.Cursor().First(); k != nil {
				return fmt.Errorf("a bbolt file of another program (bucket %q); set [state] path to a file of our own", k)
			}
			return nil
		}
		v := meta.Get(keyVersion)
		if len(v) != 8 {
			return fmt.Errorf("the layout version is damaged; restore the file from a backup")
		}
		version = binary.BigEndian.Uint64(v)
		return nil
	})
	return version, err
}
