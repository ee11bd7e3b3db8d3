package ledger_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// TestReadFromAnywhere begins at entries all over a file that is larger than
// what a reader reads through, among them one longer than that.
func TestReadFromAnywhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "long.ledger")
	l, err := ledger.Open(ledger.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	const count = 4000
	var entries []*gate.Entry
	for i := range count {
		e := &gate.Entry{Kind: gate.KindDenied, Caller: "c", Detail: strings.Repeat("x", i%97)}
		if i == 2500 {
			e.Arguments = `{"long":"` + strings.Repeat("y", 300<<10) + `"}`
		}
		entries = append(entries, e)
	}
	if err := l.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	check := func(from, want uint64) {
		t.Helper()
		var got []uint64
		err := ledger.Read(dir, from, func(_ []byte, e gate.Entry) error {
			if got = append(got, e.Number); len(got) == 3 {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if want == 0 && len(got) != 0 || want != 0 && (len(got) == 0 || got[0] != want) {
			t.Errorf("from %d: got %v, want it to begin with %d", from, got, want)
		}
	}
	for from := uint64(1); from <= count; from += 31 {
		check(from, from)
	}
	for _, from := range []uint64{0, 1} {
		check(from, 1)
	}
	for _, from := range []uint64{2499, 2500, 2501, 2502, count} {
		check(from, from)
	}
	check(count+1, 0)

	// Lines that cannot be read do not lead a reader astray.
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i := 1000; i < 2400; i++ {
		lines[i] = bytes.Repeat([]byte("?"), len(lines[i]))
		lines[i][len(lines[i])-1] = '\n'
	}
	if err := os.WriteFile(files[0], bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	check(500, 500)
	err = ledger.Read(dir, 999, func(_ []byte, e gate.Entry) error { return nil })
	if err == nil {
		t.Error("damaged entries were read over")
	}
}
