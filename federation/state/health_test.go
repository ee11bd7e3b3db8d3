package state

import (
	"path/filepath"
	"testing"
)

func TestHealth(t *testing.T) {
	db, err := Open(filepath.Join(t.TempDir(), "gatehouse.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Health(); err != nil || !db.Keys().Usable() {
		t.Errorf("a fresh state: %v, keys usable: %v", err, db.Keys().Usable())
	}
	if (&Keys{}).Usable() {
		t.Error("a ring without keys is usable")
	}
	if err := db.bolt.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Health(); err != nil {
		t.Errorf("the file was looked at again at once: %v", err)
	}
	db.health.at = db.health.at.Add(-2 * healthFor)
	if err := db.Health(); err == nil {
		t.Error("a state that is closed can be written")
	}
	db.Close()
}
