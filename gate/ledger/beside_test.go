package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// acknowledge makes the head say that entries up to a number are on record.
func acknowledge(t *testing.T, dir string, content []byte, number int) {
	t.Helper()
	hash := strings.Repeat("0", 64)
	if number > 0 {
		hash = hashOf(t, strings.SplitAfter(string(content), "\n")[number-1], "hash").String()
	}
	overwrite(t, filepath.Join(dir, "head"), fmt.Appendf(nil, "%020d %s\n", number, hash))
}

// writeOver writes content in place, as a ledger does, and cuts nothing.
func writeOver(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if _, err := f.WriteAt(content, 0); err != nil {
		t.Error(err)
	}
}

// Readers beside a writer at full speed see every entry once, in order, and
// nothing amiss, through new files and through failed syncs.
func TestReadersBesideAWriter(t *testing.T) {
	span := 2 * time.Second
	if testing.Short() {
		span = 300 * time.Millisecond
	}
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir, SegmentBytes: 2 << 20})
	put(t, l, &gate.Entry{Kind: gate.KindStart})
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var all sync.WaitGroup
	var acknowledged atomic.Uint64
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				e := gate.Entry{Kind: gate.KindIntent, Arguments: strings.Repeat(`"x `, rand.IntN(4000))}
				put(t, l, &e)
				acknowledged.Store(max(acknowledged.Load(), e.Number)) // about how far it came
				l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: e.Number})
			}
		})
	}
	beside := func(name string, look func() error) {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := look(); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	follow := func(next uint64) func([]byte, gate.Entry) error {
		return func(_ []byte, e gate.Entry) error {
			if next != 0 && e.Number != next {
				return fmt.Errorf("entry %d comes where %d should", e.Number, next)
			}
			if next = e.Number + 1; strings.Trim(e.Arguments, `"x `) != "" || strings.Contains(e.Arguments, "  ") {
				return fmt.Errorf("entry %d has arguments that nobody wrote", e.Number)
			}
			return nil
		}
	}
	beside("read", func() error {
		from := max(acknowledged.Load(), 1)
		return ledger.Read(dir, from, follow(from))
	})
	beside("the last", func() error { return ledger.Tail(ctx, dir, 3, false, follow(0)) })
	beside("verify", func() error {
		r, err := ledger.Verify(dir)
		if err == nil && r.Bad != nil {
			err = r.Bad
		}
		return err
	})
	all.Go(func() {
		if err := ledger.Tail(ctx, dir, 1, true, follow(0)); err != nil {
			t.Errorf("tail: %v", err)
		}
	})
	all.Wait()
	closeLedger(t, l)
	if r := verifyGood(t, dir); r.Last < 50 {
		t.Errorf("only %d entries were written", r.Last)
	}
}

// Whatever part of the very first commit a crash leaves, nothing of it was
// acknowledged, and nothing of it is damage.
func TestFirstCommitTorn(t *testing.T) {
	_, _, content := written(t, 6)
	for hole := range 12 {
		dir := t.TempDir()
		closeLedger(t, open(t, ledger.Options{Dir: dir})) // died before it had written anything
		torn := append(bytes.Clone(content), bytes.Repeat([]byte(" "), 4<<10)...)
		for i := hole * 150; i < min((hole+1)*150, len(content)); i++ {
			torn[i] = ' '
		}
		overwrite(t, filepath.Join(dir, "00000000000000000001.jsonl"), torn)
		l := open(t, ledger.Options{Dir: dir})
		e := gate.Entry{Kind: gate.KindStart}
		put(t, l, &e)
		closeLedger(t, l)
		if r := verifyGood(t, dir); r.Last != e.Number {
			t.Fatalf("hole %d: the last entry is %d, want %d", hole, r.Last, e.Number)
		}
	}
}

// Blanks in front of entries or instead of them are found, and what they hide
// is not cut off or written over by opening the ledger.
func TestBlanksHideNothing(t *testing.T) {
	_, _, content := written(t, 9)
	lines := bytes.SplitAfter(content, []byte("\n"))
	start := len(bytes.Join(lines[:4], nil))
	room := bytes.Repeat([]byte(" "), 1<<10)
	for name, changed := range map[string][]byte{
		"one in front of an entry":    bytes.Join([][]byte{content[:start], []byte(" "), content[start:], room}, nil),
		"instead of an entry":         bytes.Join([][]byte{content[:start], bytes.Repeat([]byte(" "), len(lines[4])), content[start+len(lines[4]):], room}, nil),
		"instead of the last entries": append(bytes.Clone(content[:start]), room...),
		"instead of all entries":      room,
		"instead of the line ends":    append(bytes.Clone(content[:start]), bytes.ReplaceAll(content[start:], []byte("\n"), []byte(" "))...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "00000000000000000001.jsonl")
			overwrite(t, path, changed)
			acknowledge(t, dir, content, 9)
			bad := func(when string) {
				t.Helper()
				if r := verify(t, dir); r.Bad == nil {
					t.Errorf("%s: %v", when, r.Bad)
				}
			}
			bad("before")
			l := open(t, ledger.Options{Dir: dir})
			e := gate.Entry{Kind: gate.KindStart}
			put(t, l, &e)
			if e.Number != 10 {
				t.Errorf("the next entry is %d, want 10", e.Number)
			}
			bad("with the daemon running")
			closeLedger(t, l)
			bad("after")
			last := uint64(0)
			if err := ledger.Read(dir, 10, func(_ []byte, e gate.Entry) error { last = e.Number; return nil }); err != nil || last != 10 {
				t.Errorf("what came later cannot be read: %d, %v", last, err)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(after, bytes.TrimRight(changed, " ")) {
				t.Errorf("opening cut off what was hidden: %d bytes are left, %v", len(after), err)
			}
		})
	}
}

// A file in which everything is damaged is not pondered over.
func TestDamageIsReportedAtOnce(t *testing.T) {
	dir, path, content := written(t, 400)
	overwrite(t, path, bytes.ReplaceAll(content, []byte("number"), []byte("NUMBER")))
	for _, known := range []int{400, 0} {
		acknowledge(t, dir, content, known)
		began := time.Now()
		if r := verify(t, dir); r.Bad == nil || r.Bad.Number != 1 {
			t.Errorf("got %v", r.Bad)
		}
		if err := ledger.Read(dir, 1, func([]byte, gate.Entry) error { return nil }); err == nil {
			t.Error("read without an error")
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("with %d acknowledged it took %s", known, took)
		}
	}
}

// The last entry is found before one that is being written, and a tail begins
// where it was asked to.
func TestTailBeforeWhatIsBeingWritten(t *testing.T) {
	dir, path, content := written(t, 9)
	acknowledge(t, dir, content, 8)
	half := bytes.Clone(content)
	copy(half[bytes.LastIndex(content, []byte(`"number":9`)):], strings.Repeat(" ", 60))
	overwrite(t, path, half)
	finished := time.AfterFunc(100*time.Millisecond, func() { writeOver(t, path, content) })
	defer finished.Stop()
	var got []uint64
	err := ledger.Tail(t.Context(), dir, 2, false, func(_ []byte, e gate.Entry) error { got = append(got, e.Number); return nil })
	if err != nil || fmt.Sprint(got) != "[7 8 9]" {
		t.Errorf("got %v, %v; want the two before, and the one that was written meanwhile", got, err)
	}
}

// A tail goes on over a failed sync: what it had read of it is taken back, and
// other entries are written in its place.
func TestTailOverAFailedSync(t *testing.T) {
	d := disk{hold: make(chan struct{}), begun: make(chan struct{}, 100)}
	dir := t.TempDir()
	l := d.open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, tailed := make(chan gate.Entry, 100), make(chan error, 1)
	go func() {
		tailed <- ledger.Tail(ctx, dir, 0, true, func(_ []byte, e gate.Entry) error { seen <- e; return nil })
	}()
	failed := make(chan error, 1)
	go func() {
		failed <- l.Append(ctx, &gate.Entry{Kind: gate.KindIntent, Detail: strings.Repeat("a", 1000)})
	}()
	<-d.begun
	if e := <-seen; e.Number != 1 {
		t.Fatalf("the first entry is %d", e.Number)
	}
	d.broken.Store(true)
	close(d.hold)
	if err := <-failed; !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	d.broken.Store(false)
	for range 20 { // before the tail looks again
		put(t, l, &gate.Entry{Kind: gate.KindImport, Detail: "other"})
	}
	last := gate.Entry{Kind: gate.KindStop}
	put(t, l, &last)
	for {
		select {
		case e := <-seen:
			if e.Kind == gate.KindStop {
				cancel()
				if err := <-tailed; err != nil {
					t.Error(err)
				}
				return
			}
		case err := <-tailed:
			t.Fatalf("the tail ended: %v", err)
		case <-time.After(10 * time.Second):
			t.Fatal("the tail saw nothing more")
		}
	}
}

var headLine = regexp.MustCompile(`^0{20} 0{64}\n$`)

// An empty ledger has a head from the start.
func TestHeadFromTheStart(t *testing.T) {
	dir := t.TempDir()
	open(t, ledger.Options{Dir: dir})
	if head, err := os.ReadFile(filepath.Join(dir, "head")); err != nil || !headLine.Match(head) {
		t.Errorf("the head is %q, %v", head, err)
	}
}

// What a power cut left of a commit is told from damage before the next start,
// which cuts it off.
func TestTornEndIsNoDamage(t *testing.T) {
	_, _, content := written(t, 9)
	lines := bytes.SplitAfter(content, []byte("\n"))
	start := len(bytes.Join(lines[:4], nil))
	gap := func(from int) []byte {
		torn := append(bytes.Clone(content), bytes.Repeat([]byte(" "), 4<<10)...)
		copy(torn[from:from+512], bytes.Repeat([]byte(" "), 512))
		return torn
	}
	edited := bytes.Replace(content, []byte("number 5"), []byte("NUMBER 5"), 1)
	for name, test := range map[string]struct {
		content      []byte
		acknowledged int
		torn, bad    bool
	}{
		"a gap in what was not acknowledged": {gap(start + 20), 4, true, false},
		"nothing was acknowledged":           {gap(20), 0, true, false},
		"a gap in what was acknowledged":     {gap(start + 20), 5, false, true},
		"an edit after the head":             {edited, 4, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			overwrite(t, filepath.Join(dir, "00000000000000000001.jsonl"), test.content)
			acknowledge(t, dir, content, test.acknowledged)
			r := verify(t, dir)
			if (r.Torn != nil) != test.torn || (r.Bad != nil) != test.bad {
				t.Fatalf("torn %v, bad %v", r.Torn, r.Bad)
			}
			if !test.torn {
				return
			}
			if r.Torn.Number != uint64(test.acknowledged)+1 || r.Last != uint64(test.acknowledged) {
				t.Errorf("torn at %d after %d entries", r.Torn.Number, r.Last)
			}
			closeLedger(t, open(t, ledger.Options{Dir: dir}))
			if r := verifyGood(t, dir); r.Torn != nil || r.Last != uint64(test.acknowledged) {
				t.Errorf("after a start: torn %v, last %d", r.Torn, r.Last)
			}
			// Without the head nobody knows what was acknowledged.
			overwrite(t, filepath.Join(dir, "00000000000000000001.jsonl"), test.content)
			removeAll(t, filepath.Join(dir, "head"))
			if r := verify(t, dir); r.Torn != nil || r.Bad == nil {
				t.Errorf("without the head: torn %v, bad %v", r.Torn, r.Bad)
			}
		})
	}
}
