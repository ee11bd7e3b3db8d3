package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// A disk is a file system whose failures are decided by the test.
type disk struct {
	full   atomic.Bool // writes stop in the middle
	broken atomic.Bool // syncs fail
	syncs  atomic.Int64
	hold   chan struct{} // when set, a sync waits until it is closed
	begun  chan struct{} // and says so here
}

func (d *disk) sync(f *os.File) error {
	d.syncs.Add(1)
	if d.hold != nil {
		d.begun <- struct{}{}
		<-d.hold
	}
	if d.broken.Load() {
		return syscall.EIO
	}
	return f.Sync()
}

func (d *disk) put(f *os.File, b []byte, at int64) (int, error) {
	if d.full.Load() {
		n, err := f.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, syscall.ENOSPC)
	}
	return f.WriteAt(b, at)
}

func (d *disk) open(t testing.TB, dir string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.OpenFailing(ledger.Options{Dir: dir, Sync: d.sync}, d.put)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLedger(t, l) })
	return l
}

// until waits for what a background retry brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatal(what + " did not come about")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestFullDiskAndRecovery(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func(*disk, bool)
		want error
	}{
		{"no space", func(d *disk, on bool) { d.full.Store(on) }, syscall.ENOSPC},
		{"a failed sync", func(d *disk, on bool) { d.broken.Store(on) }, syscall.EIO},
	} {
		t.Run(test.name, func(t *testing.T) {
			var d disk
			dir := t.TempDir()
			l := d.open(t, dir)
			first := gate.Entry{Kind: gate.KindIntent}
			put(t, l, &first, &gate.Entry{Kind: gate.KindQuestion}, &gate.Entry{Kind: gate.KindAnswer, Approval: 2})
			test.fail(&d, true)
			l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: first.Number, Verdict: gate.OK})
			second := gate.Entry{Kind: gate.KindIntent, Approval: 2}
			for range 3 {
				if err := l.Append(t.Context(), &second); !errors.Is(err, test.want) {
					t.Fatalf("got %v, want %v", err, test.want)
				}
			}
			if err := l.Health(); !errors.Is(err, test.want) || !strings.Contains(err.Error(), "not writable since") {
				t.Errorf("health: %v", err)
			}
			if all := read(t, dir); len(all) != 3 {
				t.Errorf("%d entries in the file, want the three acknowledged", len(all))
			}
			verifyGood(t, dir)

			test.fail(&d, false)
			until(t, "recovery by itself", func() bool { return l.Health() == nil })
			put(t, l, &second)
			var story []string
			for _, e := range read(t, dir) {
				story = append(story, string(e.Kind))
			}
			if got := strings.Join(story, " "); got != "intent question answer checkpoint outcome intent" {
				t.Errorf("the record reads %q", got)
			}
			if r := verifyGood(t, dir); len(r.Unsettled) != 1 || r.Unsettled[0] != second.Number {
				t.Errorf("unsettled: %v", r.Unsettled)
			}
		})
	}
}

// An outcome that was written and not yet synced survives the failure of the
// sync that would have covered it.
func TestLaggingEntriesSurviveAFailedSync(t *testing.T) {
	var d disk
	dir := t.TempDir()
	l := d.open(t, dir)
	intent := gate.Entry{Kind: gate.KindIntent}
	put(t, l, &intent)
	before := d.syncs.Load()
	d.broken.Store(true)
	l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: intent.Number, Verdict: gate.OK})
	until(t, "the lazy sync", func() bool { return d.syncs.Load() > before })
	until(t, "the failure", func() bool { return l.Health() != nil })
	d.broken.Store(false)
	until(t, "recovery", func() bool { return l.Health() == nil })
	if r := verifyGood(t, dir); len(r.Unsettled) != 0 {
		t.Errorf("unsettled: %v", r.Unsettled)
	}
}

func TestOneSyncForOneCaller(t *testing.T) {
	var d disk
	dir := t.TempDir()
	l := d.open(t, dir)
	for range 20 {
		intent := gate.Entry{Kind: gate.KindIntent}
		before := d.syncs.Load()
		put(t, l, &intent)
		if n := d.syncs.Load() - before; n != 1 {
			t.Fatalf("an intent waited for %d syncs, want 1", n)
		}
		l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: intent.Number})
	}
}

// What arrives while a commit runs shares the next one.
func TestManyShareOneSync(t *testing.T) {
	d := disk{hold: make(chan struct{}), begun: make(chan struct{}, 100)}
	dir := t.TempDir()
	l := d.open(t, dir)
	var all sync.WaitGroup
	all.Go(func() { put(t, l, &gate.Entry{Kind: gate.KindIntent}) })
	<-d.begun
	for range 50 {
		all.Go(func() { put(t, l, &gate.Entry{Kind: gate.KindDenied}) })
	}
	until(t, "the queue", func() bool { return l.Queued() == 50 })
	close(d.hold)
	all.Wait()
	if n := d.syncs.Load(); n != 2 {
		t.Errorf("%d syncs for 1 and then 50 entries, want 2", n)
	}
	verifyGood(t, dir)
}

// Whoever gives up waiting for a slow disk has no permit; the intent says so.
func TestAbandonedIntentIsSettled(t *testing.T) {
	d := disk{hold: make(chan struct{}), begun: make(chan struct{}, 100)}
	dir := t.TempDir()
	l := d.open(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- l.Append(ctx, &gate.Entry{Kind: gate.KindIntent, Tool: "mcp_demo_echo"}) }()
	<-d.begun
	waiting, stop := context.WithCancel(t.Context())
	go func() { failed <- l.Append(waiting, &gate.Entry{Kind: gate.KindIntent, Tool: "mcp_demo_never"}) }()
	until(t, "the second intent", func() bool { return l.Queued() == 1 })
	stop()
	if err := <-failed; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(d.hold)
	closeLedger(t, l)
	all := read(t, dir)
	if len(all) != 2 || all[1].Kind != gate.KindOutcome || all[1].Verdict != gate.NotSent || all[1].Intent != 1 {
		t.Errorf("got %+v", all)
	}
}

// Whatever a crash leaves of the last commit, opening goes on after the last
// acknowledged entry and loses none.
func TestTornEnds(t *testing.T) {
	dir, path, content := written(t, 3)
	torn, _ := ledger.AppendLine(nil, &gate.Entry{Number: 4, Kind: gate.KindIntent}, ledger.Hash{9})
	for name, tail := range map[string][]byte{
		"half a line":                   torn[:len(torn)/2],
		"a line that does not follow":   torn,
		"zeros":                         make([]byte, 4096),
		"zeros and a line":              append(make([]byte, 100), torn...),
		"garbage with line ends":        []byte("x\ny\n\nz\n"),
		"an entry without its line end": nil,
	} {
		t.Run(name, func(t *testing.T) {
			if tail == nil {
				overwrite(t, path, content[:len(content)-1])
			} else {
				overwrite(t, path, append(bytes.Clone(content), tail...))
			}
			l := open(t, ledger.Options{Dir: dir})
			closeLedger(t, l)
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("%v; the file is\n%q\nwant\n%q", err, got, content)
			}
			verifyGood(t, dir)
		})
	}
}

// Every prefix of the file is what some crash leaves, when the head is as old.
func TestEveryCrashPoint(t *testing.T) {
	_, _, content := written(t, 3)
	for n := range len(content) {
		if end := bytes.IndexByte(content[n:], '\n'); n%23 != 0 && end > 2 && n > 0 && content[n-1] != '\n' {
			continue // near line ends every byte counts, in between a few do
		}
		dir := t.TempDir()
		overwrite(t, filepath.Join(dir, "00000000000000000001.jsonl"), content[:n])
		l := open(t, ledger.Options{Dir: dir})
		e := gate.Entry{Kind: gate.KindStart}
		put(t, l, &e)
		closeLedger(t, l)
		whole := bytes.Count(content[:n], []byte{'\n'})
		if n+1 < len(content) && content[n] == '\n' {
			whole++ // nothing is missing but the line end
		}
		if n == len(content)-1 {
			whole = 3
		}
		if e.Number != uint64(whole)+1 {
			t.Fatalf("after %d bytes the next entry is %d, want %d", n, e.Number, whole+1)
		}
		verifyGood(t, dir)
	}
}
