package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// While a ledger is open its file is laid out ahead, does not grow with every
// entry, and reads like one that is not. Closed, it holds the entries alone.
func TestRoomAhead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "00000000000000000001.jsonl")
	l := open(t, ledger.Options{Dir: dir})
	put(t, l, &gate.Entry{Kind: gate.KindStart})
	first := size(t, path)
	for range 20 {
		put(t, l, &gate.Entry{Kind: gate.KindImport})
	}
	if now := size(t, path); now != first {
		t.Errorf("the file grew from %d to %d bytes with the entries", first, now)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries := bytes.LastIndexByte(content, '\n') + 1
	if rest := content[entries:]; len(rest) < 1<<19 || len(bytes.Trim(rest, " ")) > 0 {
		t.Errorf("after the entries come %d bytes, want blanks and many", len(rest))
	}
	if got := read(t, dir); len(got) != 21 {
		t.Errorf("%d entries are read, want 21", len(got))
	}
	if r := verifyGood(t, dir); r.Entries != 21 || r.Last != 21 {
		t.Errorf("verified %+v", r)
	}
	last := uint64(0)
	err = ledger.Tail(t.Context(), dir, 1, false, func(_ []byte, e gate.Entry) error {
		last = e.Number
		return nil
	})
	if err != nil || last != 21 {
		t.Errorf("the last entry is %d, %v", last, err)
	}
	closeLedger(t, l)
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content[:entries]) {
		t.Errorf("closed, the file has %d bytes, want the %d of its entries; %v", len(after), entries, err)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A process that died leaves its room, and one that lost its power any part of
// what it was writing over it: none of that stands in the way, and what was
// acknowledged stays.
func TestTornOverBlanks(t *testing.T) {
	_, _, content := written(t, 9)
	lines := bytes.SplitAfter(content, []byte("\n"))
	acknowledged := bytes.Join(lines[:3], nil)
	batch := content[len(acknowledged):]
	prev := regexp.MustCompile(`"prev":"([0-9a-f]{64})"`).FindSubmatch(lines[3])[1]
	const sector = 512
	sectors := (len(acknowledged)%sector + len(batch) + sector - 1) / sector
	for mask := range 1 << min(sectors, 7) {
		dir := t.TempDir()
		torn := append(bytes.Clone(content), bytes.Repeat([]byte(" "), 8<<10)...)
		for i := len(acknowledged); i < len(content); i++ {
			if mask>>(((i/sector)-(len(acknowledged)/sector))%7)&1 == 0 {
				torn[i] = ' '
			}
		}
		path := filepath.Join(dir, "00000000000000000001.jsonl")
		overwrite(t, filepath.Join(dir, "head"), fmt.Appendf(nil, "%020d %s\n", 3, prev))
		overwrite(t, path, torn)
		l := open(t, ledger.Options{Dir: dir})
		e := gate.Entry{Kind: gate.KindStart}
		put(t, l, &e)
		if e.Number < 4 || e.Number > 10 {
			t.Fatalf("sectors %b: the next entry is %d", mask, e.Number)
		}
		closeLedger(t, l)
		if r := verifyGood(t, dir); r.Last != e.Number {
			t.Fatalf("sectors %b: the last entry is %d, want %d", mask, r.Last, e.Number)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(after, acknowledged) {
			t.Fatalf("sectors %b: an acknowledged entry is gone; %v", mask, err)
		}
	}
}

// A reader that meets a line which is just being written looks again, also when
// what is there of it reads like JSON.
func TestReadersLookAgain(t *testing.T) {
	dir, path, content := written(t, 3)
	acknowledge(t, dir, content, 2)
	half := bytes.Clone(content)
	for i := bytes.LastIndex(content, []byte(`number 3`)); half[i] != '"'; i++ {
		half[i] = ' '
	}
	for name, look := range map[string]func() error{
		"read": func() error {
			return ledger.Read(dir, 1, func(_ []byte, e gate.Entry) error {
				if want := fmt.Sprintf("number %d", e.Number); e.Detail != want {
					return fmt.Errorf("entry %d says %q", e.Number, e.Detail)
				}
				return nil
			})
		},
		"verify": func() error {
			r, err := ledger.Verify(dir)
			if err == nil && r.Bad != nil {
				err = r.Bad
			}
			return err
		},
	} {
		overwrite(t, path, half)
		finished := time.AfterFunc(150*time.Millisecond, func() { writeOver(t, path, content) })
		if err := look(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if finished.Stop() {
			t.Errorf("%s did not wait", name)
		}
	}
}

// Where there is space for entries and none for room, entries are what counts.
func TestNoSpaceForRoom(t *testing.T) {
	dir := t.TempDir()
	tried := 0
	l, err := ledger.OpenFailing(ledger.Options{Dir: dir}, func(f *os.File, b []byte, at int64) (int, error) {
		if bytes.Trim(b, " ") != nil {
			return f.WriteAt(b, at)
		}
		tried++
		n, err := f.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, syscall.ENOSPC)
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := l.Append(context.Background(), &gate.Entry{Kind: gate.KindImport}); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "00000000000000000001.jsonl"))
	if err != nil || bytes.Count(content, []byte("\n")) != 3 || !bytes.HasSuffix(content, []byte("}\n")) {
		t.Errorf("the file has %d bytes, want three entries and nothing after; %v", len(content), err)
	}
	closeLedger(t, l)
	if tried != 1 {
		t.Errorf("room was tried for %d times within a moment", tried)
	}
	if r := verifyGood(t, dir); r.Last != 3 {
		t.Errorf("%+v", r)
	}
}
