package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk fills the file system that the ledger is on while the daemon
// serves. Where no file system can be mounted, TestFullDisk of federation shows
// the same with a disk that refuses.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	mount := filepath.Join(dir, "gatehouse.ledger")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	p := newPlant(t, dir, "")
	p.start()
	p.ready(http.StatusOK)
	for i := range 8 {
		if err := p.callFree(t.Context(), fmt.Sprint("before ", i)); err != nil {
			t.Fatal(err)
		}
	}
	ballast := filepath.Join(mount, "ballast")
	fill(t, ballast)

	// What is left of the last block takes a few entries more.
	refused := 0
	for i := 0; refused < 4; i++ {
		id := fmt.Sprint("full ", i)
		r, err := p.call(t.Context(), "mcp_free_echo", id, "")
		if err != nil || i > 100 {
			t.Fatalf("call %d: %+v, %v", i, r, err)
		}
		if p.note(id, r); r.Meta.Outcome == "ok" {
			continue
		}
		if refused++; r.Meta.Outcome != "refused" || len(r.Content) != 1 || !strings.Contains(r.Content[0].Text, "could not be put on record") {
			t.Fatalf("a call with a full disk: %+v", r)
		}
		if p.sent(id) != 0 {
			t.Errorf("call %q was sent without a record", id)
		}
	}
	if said := p.ready(http.StatusServiceUnavailable); !strings.Contains(said, "no space left on device") {
		t.Errorf("/readyz says %s", said)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.ready(http.StatusOK)
	t.Logf("serves again after %s", time.Since(began).Round(time.Millisecond))
	if err := p.callFree(t.Context(), "after"); err != nil || p.sent("after") != 1 {
		t.Errorf("a call after it: %v", err)
	}
	p.stop()
	p.audit()
}

// fill writes a file until nothing more fits.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 1024); err == nil; {
		_, err = file.Write(block)
	}
}
