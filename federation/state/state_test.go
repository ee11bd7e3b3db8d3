package state

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"gatehouse/upstream"
	"gatehouse/upstream/vault"
)

func open(t *testing.T, path string, o Options) *DB {
	t.Helper()
	db, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestHolder is no test of its own: it is the second process of
// TestInUseNamesTheHolder, which opens the file and waits to be killed.
func TestHolder(t *testing.T) {
	path := os.Getenv("STATE_TEST_HOLD")
	if path == "" {
		t.Skip("only as a child of TestInUseNamesTheHolder")
	}
	db, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	os.Stdout.WriteString("held\n")
	time.Sleep(time.Minute)
}

func TestInUseNamesTheHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	child := exec.Command(os.Args[0], "-test.run=^TestHolder$")
	child.Env = append(os.Environ(), "STATE_TEST_HOLD="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	_, err = Open(path, Options{})
	var inUse *InUseError
	if !errors.As(err, &inUse) || inUse.PID != child.Process.Pid {
		t.Fatalf("got %v, want an *InUseError that names process %d", err, child.Process.Pid)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v to say so, want about a second", took)
	}

	// A killed holder leaves its number behind, but no lock.
	child.Process.Kill()
	child.Wait()
	open(t, path, Options{})
}

func TestClearErrors(t *testing.T) {
	write := func(content []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, content, 0o600) }
	}
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"empty file":     {write(nil), "the file is empty"},
		"text":           {write([]byte("not a database at all\n")), "not a state file, or damaged"},
		"zeroes":         {write(make([]byte, 64<<10)), "not a state file, or damaged"},
		"directory":      {func(path string) error { return os.Mkdir(path, 0o700) }, "is a directory"},
		"no directory":   {func(path string) error { return os.Remove(filepath.Dir(path)) }, "does not exist; create it"},
		"foreign bucket": {foreign, "another program"},
		"newer layout":   {newer, "written by a newer gatehouse (layout 99"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d", "gatehouse.db")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path, Options{Timeout: 50 * time.Millisecond})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("permissions do not bind root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := Open(filepath.Join(dir, "gatehouse.db"), Options{})
	if err == nil || !strings.Contains(err.Error(), "must be writable") {
		t.Errorf("got %v, want an error that says what must be writable", err)
	}
}

func foreign(path string) error {
	return edit(path, func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("theirs"))
		return err
	})
}

func newer(path string) error {
	return edit(path, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(bucketMeta)
		if err != nil {
			return err
		}
		return b.Put(keyVersion, []byte{0, 0, 0, 0, 0, 0, 0, 99})
	})
}

func edit(path string, f func(*bbolt.Tx) error) error {
	bolt, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	return errors.Join(bolt.Update(f), bolt.Close())
}

func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	open(t, path, Options{})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode %o, want 600", got)
	}
}

func TestErasAndContactsSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	at := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	db := open(t, path, Options{})
	var _ upstream.Store = db.Upstream()
	for _, err := range []error{
		db.Upstream().SetEra("a", upstream.Modern),
		db.Upstream().SetEra("b", upstream.Legacy),
		db.Upstream().SetEra("b", ""),
		db.Upstream().Contact("a", at, 12*time.Millisecond),
		db.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Upstream().Contact("a", at, 0); err == nil {
		t.Error("a contact after Close was accepted and would be lost")
	}

	db = open(t, path, Options{})
	if era, ok := db.Upstream().Era("a"); era != upstream.Modern || !ok {
		t.Errorf("era of a is %q, %v", era, ok)
	}
	if era, ok := db.Upstream().Era("b"); era != "" || ok {
		t.Errorf("era of b is %q, %v, want it forgotten", era, ok)
	}
	got, ok := db.Upstream().LastContact("a")
	if want := (Contact{at, 12 * time.Millisecond}); got != want || !ok {
		t.Errorf("contact %v, %v, want %v", got, ok, want)
	}
}

func TestKeysRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	now := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	clock := Options{Now: func() time.Time { return now }}
	db := open(t, path, clock)
	first, key := db.Keys().Current()
	if key == [keySize]byte{} {
		t.Fatal("the first key is all zeroes")
	}
	db.Close()

	db = open(t, path, clock)
	if id, again := db.Keys().Current(); id != first || again != key {
		t.Fatal("a restart lost the key, and with it every open question")
	}
	db.Close()

	now = now.Add(keyLife + time.Hour)
	db = open(t, path, clock)
	second, fresh := db.Keys().Current()
	if second == first || fresh == key {
		t.Fatal("a key outlived its time")
	}
	if old, ok := db.Keys().Key(first); !ok || old != key {
		t.Error("rotation dropped the key that open questions are sealed with")
	}
	for range keysKept {
		if err := db.Keys().Rotate(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := db.Keys().Key(first); ok {
		t.Error("an old key never leaves the ring")
	}
	if _, ok := db.Keys().Key(0); ok {
		t.Error("key 0 exists, so a zero id opens something")
	}
}

func TestVaultStore(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "gatehouse.db"), Options{})
	store := db.Vault()
	at := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	if err := store.Update([]vault.Record{{Name: "b", Sealed: []byte{1}, By: "operator", At: at}, {Name: "a", Sealed: []byte{2}}}, nil); err != nil {
		t.Fatal(err)
	}
	if r, ok, err := store.Record("b"); err != nil || !ok || r.By != "operator" || !r.At.Equal(at) || string(r.Sealed) != "\x01" {
		t.Errorf("got %+v, %v, %v", r, ok, err)
	}
	if err := store.Update([]vault.Record{{Name: "c"}}, []string{"b", "never-there"}); err != nil {
		t.Fatal(err)
	}
	all, err := store.Records()
	if err != nil || len(all) != 2 || all[0].Name != "a" || all[1].Name != "c" {
		t.Errorf("got %+v, %v, want a and c in this order", all, err)
	}
	if _, ok, err := store.Record("b"); ok || err != nil {
		t.Errorf("b is still there: %v, %v", ok, err)
	}
}
