package ledger_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/gate/ledger"
)

func open(t testing.TB, o ledger.Options) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeLedger(t, l) })
	return l
}

func closeLedger(t testing.TB, l *ledger.Ledger) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func read(t testing.TB, dir string) []gate.Entry {
	t.Helper()
	var all []gate.Entry
	err := ledger.Read(dir, 1, func(_ []byte, e gate.Entry) error {
		all = append(all, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if i > 0 && all[i].Number != all[i-1].Number+1 {
			t.Fatalf("entry %d follows %d", all[i].Number, all[i-1].Number)
		}
	}
	return all
}

func verify(t testing.TB, dir string) ledger.Report {
	t.Helper()
	r, err := ledger.Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verifyGood(t testing.TB, dir string) ledger.Report {
	t.Helper()
	r := verify(t, dir)
	if r.Bad != nil {
		t.Fatalf("verify: %v", r.Bad)
	}
	return r
}

func put(t testing.TB, l *ledger.Ledger, entries ...*gate.Entry) {
	t.Helper()
	if err := l.Append(context.Background(), entries...); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	gatetest.TestLedger(t, func(t *testing.T) gatetest.Store {
		dir := t.TempDir()
		l := open(t, ledger.Options{Dir: dir})
		return gatetest.Store{Ledger: l, Entries: func() []gate.Entry { return read(t, dir) }}
	})
}

func TestReopenGoesOn(t *testing.T) {
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir})
	later := time.Now().Add(time.Hour)
	put(t, l, &gate.Entry{Kind: gate.KindQuestion, Until: later}, &gate.Entry{Kind: gate.KindQuestion, Until: later}, &gate.Entry{Kind: gate.KindAnswer, Approval: 1})
	closeLedger(t, l)

	l = open(t, ledger.Options{Dir: dir})
	if err := l.Append(t.Context(), &gate.Entry{Kind: gate.KindAnswer, Approval: 1}); !errors.Is(err, gate.ErrSpent) {
		t.Errorf("a question that was answered before the restart: got %v, want ErrSpent", err)
	}
	e := gate.Entry{Kind: gate.KindAnswer, Approval: 2}
	put(t, l, &e)
	if e.Number != 4 {
		t.Errorf("got number %d, want 4", e.Number)
	}
	if r := verifyGood(t, dir); r.Entries != 4 || r.First != 1 || r.Last != 4 {
		t.Errorf("got %+v", r)
	}
}

func TestOneWriter(t *testing.T) {
	dir := t.TempDir()
	open(t, ledger.Options{Dir: dir})
	_, err := ledger.Open(ledger.Options{Dir: dir})
	used, ok := errors.AsType[*ledger.InUseError](err)
	if !ok || used.PID != os.Getpid() {
		t.Errorf("got %v, want an InUseError with our own number", err)
	}
}

func TestIntentsWithoutOutcomeAreSettled(t *testing.T) {
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir})
	a := gate.Entry{Kind: gate.KindIntent, Tool: "mcp_demo_a", Server: "demo", Caller: "alice"}
	b := gate.Entry{Kind: gate.KindIntent, Tool: "mcp_demo_b", Server: "demo", Caller: "alice"}
	put(t, l, &a, &b)
	l.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: a.Number, Verdict: gate.OK})
	closeLedger(t, l)
	if r := verifyGood(t, dir); len(r.Unsettled) != 1 || r.Unsettled[0] != b.Number {
		t.Errorf("unsettled: %v, want [%d]", r.Unsettled, b.Number)
	}

	open(t, ledger.Options{Dir: dir})
	all := read(t, dir)
	last := all[len(all)-1]
	if last.Kind != gate.KindOutcome || last.Verdict != gate.OutcomeUnknown || last.Intent != b.Number || last.Tool != "mcp_demo_b" {
		t.Errorf("got %+v", last)
	}
	if r := verifyGood(t, dir); len(r.Unsettled) != 0 {
		t.Errorf("unsettled: %v, want none", r.Unsettled)
	}
}

func TestClosedLedgerTakesNothing(t *testing.T) {
	l := open(t, ledger.Options{Dir: t.TempDir()})
	closeLedger(t, l)
	if err := l.Append(t.Context(), &gate.Entry{Kind: gate.KindStart}); !errors.Is(err, ledger.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func TestTail(t *testing.T) {
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir, SegmentBytes: 700})
	for range 10 {
		put(t, l, &gate.Entry{Kind: gate.KindImport})
	}
	var got []uint64
	stop := errors.New("enough")
	err := ledger.Tail(t.Context(), dir, 3, true, func(_ []byte, e gate.Entry) error {
		got = append(got, e.Number)
		if e.Number == 10 {
			// The next ones arrive while the tail follows.
			for range 5 {
				put(t, l, &gate.Entry{Kind: gate.KindImport})
			}
		}
		if e.Number == 15 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || len(got) != 8 || got[0] != 8 || got[7] != 15 {
		t.Errorf("got %v, %v; want 8 to 15", got, err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl")); len(files) < 3 {
		t.Errorf("%d segments, want several", len(files))
	}
	verifyGood(t, dir)
}

// Entries can be longer than any buffer.
func TestLongEntries(t *testing.T) {
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir})
	long := strings.Repeat("0123456789", 100_000)
	put(t, l, &gate.Entry{Kind: gate.KindIntent, Arguments: long}, &gate.Entry{Kind: gate.KindIntent, Arguments: long})
	closeLedger(t, l)
	open(t, ledger.Options{Dir: dir})
	all := read(t, dir)
	if len(all) != 4 || all[0].Arguments != long || all[2].Intent != 1 {
		t.Errorf("%d entries", len(all))
	}
	verifyGood(t, dir)
	var last []uint64
	err := ledger.Tail(t.Context(), dir, 3, false, func(_ []byte, e gate.Entry) error {
		last = append(last, e.Number)
		return nil
	})
	if err != nil || len(last) != 3 || last[0] != 2 {
		t.Errorf("the last three are %v, %v", last, err)
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{&ledger.InUseError{Dir: "x.ledger", PID: 4711}, "x.ledger: in use by process 4711"},
		{&ledger.InUseError{Dir: "x.ledger"}, "x.ledger: in use by another process"},
		{&ledger.Fault{Number: 4, File: "1.jsonl", Line: 3, Text: "does not follow 3"}, "1.jsonl:3: record 4: does not follow 3"},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if _, err := ledger.Open(ledger.Options{}); err == nil {
		t.Error("a ledger without a directory was opened")
	}
	if _, err := ledger.Verify(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a directory that does not exist was verified")
	}
}
