package gatetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
)

// A Store is a ledger under test.
type Store struct {
	gate.Ledger
	// Entries returns what is on record, in order, everything that was enqueued
	// included.
	Entries func() []gate.Entry
}

// TestLedger is the suite that every gate.Ledger has to pass. open returns an
// empty ledger.
func TestLedger(t *testing.T, open func(t *testing.T) Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"numbers follow each other", numbersFollow},
		{"a batch is written whole and in order", batchIsWhole},
		{"an approval is used once by each kind", approvalOnce},
		{"an approval needs a question and a yes", approvalNeedsYes},
		{"a refused batch leaves nothing behind", refusedBatch},
		{"one approval, many at once", approvalRace},
		{"what is enqueued is kept", enqueueKept},
		{"a caller who is gone writes nothing", cancelled},
		{"entries are copies", copies},
		{"nothing is lost of an entry", roundTrip},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func appendAll(t *testing.T, s Store, entries ...*gate.Entry) {
	t.Helper()
	if err := s.Append(t.Context(), entries...); err != nil {
		t.Fatal(err)
	}
}

func numbersFollow(t *testing.T, s Store) {
	for want := uint64(1); want <= 5; want++ {
		e := gate.Entry{Kind: gate.KindImport}
		appendAll(t, s, &e)
		if e.Number != want || e.Time.IsZero() || e.Time.Location() != time.UTC {
			t.Fatalf("entry has number %d and time %v, want number %d and a time in UTC", e.Number, e.Time, want)
		}
	}
}

// ask puts a question on record and returns its number.
func ask(t *testing.T, s Store) uint64 {
	t.Helper()
	q := gate.Entry{Kind: gate.KindQuestion, Until: time.Now().Add(time.Hour)}
	appendAll(t, s, &q)
	return q.Number
}

func yes(n uint64) *gate.Entry    { return &gate.Entry{Kind: gate.KindAnswer, Approval: n} }
func intent(n uint64) *gate.Entry { return &gate.Entry{Kind: gate.KindIntent, Approval: n} }

func no(n uint64) *gate.Entry {
	return &gate.Entry{Kind: gate.KindAnswer, Approval: n, Verdict: gate.Declined}
}

func refuseAll(t *testing.T, s Store, what string, entries ...*gate.Entry) {
	t.Helper()
	if err := s.Append(t.Context(), entries...); !errors.Is(err, gate.ErrSpent) {
		t.Errorf("%s: got %v, want ErrSpent", what, err)
	}
}

func batchIsWhole(t *testing.T, s Store) {
	n := ask(t, s)
	a, b := yes(n), intent(n)
	appendAll(t, s, a, b)
	got := s.Entries()
	if len(got) != 3 || got[1].Kind != gate.KindAnswer || got[2].Kind != gate.KindIntent || b.Number != a.Number+1 {
		t.Errorf("got %+v", got)
	}
}

func approvalOnce(t *testing.T, s Store) {
	n := ask(t, s)
	appendAll(t, s, yes(n))
	refuseAll(t, s, "a second answer", yes(n))
	appendAll(t, s, intent(n))
	refuseAll(t, s, "a second intent", intent(n))
	refuseAll(t, s, "both again", yes(n), intent(n))
	appendAll(t, s, &gate.Entry{Kind: gate.KindOutcome, Approval: n}, &gate.Entry{Kind: gate.KindDenied, Approval: n},
		&gate.Entry{Kind: gate.KindIntent}, &gate.Entry{Kind: gate.KindIntent})
}

func approvalNeedsYes(t *testing.T, s Store) {
	refuseAll(t, s, "an answer to nothing", yes(4711))
	refuseAll(t, s, "an intent without a question", intent(4711))
	n := ask(t, s)
	refuseAll(t, s, "an intent without an answer", intent(n))
	refuseAll(t, s, "an intent before its answer", intent(n), yes(n))
	appendAll(t, s, no(n))
	refuseAll(t, s, "an intent after a no", intent(n))
	refuseAll(t, s, "a yes after a no", yes(n), intent(n))
	other := gate.Entry{Kind: gate.KindDenied}
	appendAll(t, s, &other)
	refuseAll(t, s, "an answer to what is no question", yes(other.Number))
}

func refusedBatch(t *testing.T, s Store) {
	n, m := ask(t, s), ask(t, s)
	refuseAll(t, s, "a batch with one bad entry", yes(n), intent(m))
	if got := s.Entries(); len(got) != 2 {
		t.Errorf("%d entries, want the questions alone", len(got))
	}
	refuseAll(t, s, "twice in one batch", yes(n), intent(n), intent(n))
	appendAll(t, s, yes(n), intent(n))
	appendAll(t, s, yes(m), intent(m))
}

func approvalRace(t *testing.T, s Store) {
	n := ask(t, s)
	var won, lost sync.Map
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			switch err := s.Append(t.Context(), yes(n), intent(n)); {
			case err == nil:
				won.Store(i, true)
			case errors.Is(err, gate.ErrSpent):
				lost.Store(i, true)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if count(&won) != 1 || count(&lost) != 15 {
		t.Errorf("%d used the approval and %d were refused, want 1 and 15", count(&won), count(&lost))
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func enqueueKept(t *testing.T, s Store) {
	intent := gate.Entry{Kind: gate.KindIntent}
	appendAll(t, s, &intent)
	s.Enqueue(&gate.Entry{Kind: gate.KindOutcome, Intent: intent.Number, Verdict: gate.OK})
	appendAll(t, s, &gate.Entry{Kind: gate.KindStop})
	got := s.Entries()
	if len(got) != 3 || got[1].Kind != gate.KindOutcome || got[1].Intent != intent.Number || got[1].Number == 0 {
		t.Errorf("got %+v", got)
	}
}

func cancelled(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, &gate.Entry{Kind: gate.KindIntent}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if got := s.Entries(); len(got) != 0 {
		t.Errorf("%d entries, want none", len(got))
	}
}

func copies(t *testing.T, s Store) {
	e := gate.Entry{Kind: gate.KindOutcome, Detail: "as it was"}
	s.Enqueue(&e)
	e.Detail = "changed afterwards"
	appendAll(t, s, &gate.Entry{Kind: gate.KindStop})
	if got := s.Entries(); len(got) != 2 || got[0].Detail != "as it was" {
		t.Errorf("got %+v", got)
	}
}

func roundTrip(t *testing.T, s Store) {
	want := FullEntry()
	appendAll(t, s, &want)
	got := s.Entries()
	if len(got) != 1 {
		t.Fatalf("%d entries, want 1", len(got))
	}
	if diff := Differ(got[0], want); diff != "" {
		t.Errorf("what was read is not what was written: %s", diff)
	}
}
