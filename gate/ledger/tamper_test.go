package ledger_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// written makes a ledger of n entries in one file and returns the file's content.
func written(t testing.TB, n int) (dir, path string, content []byte) {
	t.Helper()
	dir = t.TempDir()
	l := open(t, ledger.Options{Dir: dir})
	for i := range n {
		put(t, l, &gate.Entry{Kind: gate.KindDenied, Caller: "alice", Detail: fmt.Sprintf("number %d", i+1)})
	}
	closeLedger(t, l)
	path = filepath.Join(dir, "00000000000000000001.jsonl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir, path, content
}

func overwrite(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEveryChangedByteIsFound(t *testing.T) {
	dir, path, content := written(t, 3)
	for at := range content {
		// Bit 5 turns letters into capitals; the other bit differs from byte to byte.
		for _, bit := range []int{5, at % 5} {
			flipped := bytes.Clone(content)
			flipped[at] ^= 1 << bit
			overwrite(t, path, flipped)
			r := verify(t, dir)
			line := 1 + bytes.Count(content[:at], []byte{'\n'})
			if r.Bad == nil || r.Bad.Line != line || r.Bad.File != filepath.Base(path) {
				t.Fatalf("byte %d (%q), bit %d, line %d: got %v", at, content[at], bit, line, r.Bad)
			}
		}
	}
}

func TestMovedLinesAreFound(t *testing.T) {
	dir, path, content := written(t, 6)
	lines := strings.SplitAfter(string(content), "\n")[:6]
	pick := func(order ...int) string {
		var b strings.Builder
		for _, i := range order {
			b.WriteString(lines[i-1])
		}
		return b.String()
	}
	for _, test := range []struct {
		name   string
		text   string
		number uint64
		line   int
		says   string
	}{
		{"one is removed", pick(1, 2, 4, 5, 6), 3, 3, "4 follows 2"},
		{"the first is removed", pick(2, 3, 4, 5, 6), 2, 1, "no checkpoint vouches"},
		{"the last is removed", pick(1, 2, 3, 4, 5), 6, 6, "missing from the end"},
		{"all are removed", "", 1, 1, "missing from the end"},
		{"one is there twice", pick(1, 2, 3, 3, 4, 5, 6), 4, 4, "3 is there twice"},
		{"an old one is repeated", pick(1, 2, 3, 1, 4, 5, 6), 4, 4, "1 comes after 3"},
		{"two changed places", pick(1, 3, 2, 4, 5, 6), 2, 2, "3 follows 1"},
		{"a line of our own", pick(1, 2) + "{}\n" + pick(3, 4, 5, 6), 3, 3, "not an entry"},
		{"the last line end is cut off", strings.TrimSuffix(pick(1, 2, 3, 4, 5, 6), "\n"), 6, 6, "missing from the end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			overwrite(t, path, []byte(test.text))
			r := verify(t, dir)
			if r.Bad == nil || r.Bad.Number != test.number || r.Bad.Line != test.line || !strings.Contains(r.Bad.Text, test.says) {
				t.Errorf("got %v, want %d at line %d: %s", r.Bad, test.number, test.line, test.says)
			}
		})
	}
	overwrite(t, path, content)
	verifyGood(t, dir)
}

// A chain that was computed anew from some entry on differs from what was acknowledged.
func TestRewrittenEndIsFound(t *testing.T) {
	dir, path, content := written(t, 3)
	lines := strings.SplitAfter(string(content), "\n")
	before, err := ledger.Decode([]byte(strings.TrimSuffix(lines[1], "\n")))
	if err != nil {
		t.Fatal(err)
	}
	var prev ledger.Hash
	at := strings.Index(lines[1], `"hash":"`) + len(`"hash":"`)
	if err := prev.UnmarshalText([]byte(lines[1][at : at+64])); err != nil {
		t.Fatal(err)
	}
	before.Number, before.Detail = 3, "nothing happened here"
	forged, _ := ledger.AppendLine([]byte(lines[0]+lines[1]), &before, prev)
	overwrite(t, path, forged)
	if r := verify(t, dir); r.Bad == nil || r.Bad.Number != 3 || !strings.Contains(r.Bad.Text, "acknowledged") {
		t.Errorf("got %v", r.Bad)
	}
}

// A loss stays visible after the daemon has gone on writing.
func TestLossStaysVisible(t *testing.T) {
	dir, path, content := written(t, 4)
	overwrite(t, path, content[:bytes.LastIndexByte(content[:len(content)-1], '\n')+1])
	l := open(t, ledger.Options{Dir: dir})
	e := gate.Entry{Kind: gate.KindStart}
	put(t, l, &e)
	if e.Number != 5 {
		t.Errorf("the next entry has number %d, want 5", e.Number)
	}
	if r := verify(t, dir); r.Bad == nil || r.Bad.Number != 4 || r.Bad.Line != 4 {
		t.Errorf("got %v", r.Bad)
	}
}

func TestRetentionLeavesAChainThatVerifies(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := ledger.Options{Dir: dir, Retention: 80 * time.Hour, Now: func() time.Time { return now }}
	for range 40 {
		l := open(t, o)
		for range 5 {
			put(t, l, &gate.Entry{Kind: gate.KindImport})
		}
		closeLedger(t, l)
		now = now.Add(11 * time.Hour)
	}
	r := verifyGood(t, dir)
	if r.First < 100 || r.Last-r.First+1 != r.Entries {
		t.Errorf("got %+v", r)
	}
	all := read(t, dir)
	if oldest := now.Sub(all[0].Time); oldest < 80*time.Hour || oldest > 120*time.Hour {
		t.Errorf("the oldest entry is %s old", oldest)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	// Nobody vouches for what a person removes.
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, dir); r.Bad == nil || !strings.Contains(r.Bad.Text, "no checkpoint vouches") {
		t.Errorf("got %v", r.Bad)
	}
}

func FuzzFlippedByteIsFound(f *testing.F) {
	dir, path, content := written(f, 4)
	f.Add(uint16(10), byte(0x20))
	f.Fuzz(func(t *testing.T, at uint16, flip byte) {
		if flip == 0 {
			return
		}
		changed := bytes.Clone(content)
		changed[int(at)%len(changed)] ^= flip
		overwrite(t, path, changed)
		if r := verify(t, dir); r.Bad == nil {
			t.Fatalf("byte %d changed by %#x is not found", int(at)%len(content), flip)
		}
	})
}
