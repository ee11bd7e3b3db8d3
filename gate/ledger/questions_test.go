package ledger_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/gate/ledger"
)

// Whatever the order of questions, answers, uses, failing disks, restarts and
// clocks that jump both ways: an approval is used once, after a yes, and never
// after a no, however much of it was forgotten.
func TestApprovalsAreUsedOnceWhateverIsForgotten(t *testing.T) {
	clock, dir := gatetest.NewClock(), t.TempDir()
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	var broken atomic.Bool
	var l *ledger.Ledger
	start := func() {
		l = open(t, ledger.Options{Dir: dir, Now: clock.Now, SegmentBytes: 300 << 10, Sync: func(*os.File) error {
			if broken.Load() {
				return errors.New("the disk failed")
			}
			return nil
		}})
	}
	start()
	type truth struct{ yes, no, used int }
	asked := map[uint64]*truth{}
	var numbers []uint64
	steps := 12000
	if testing.Short() {
		steps = 2000
	}
	for range steps {
		broken.Store(rng.IntN(50) == 0)
		var n uint64
		if len(numbers) > 0 {
			n = numbers[rng.IntN(len(numbers))]
			if recent := min(len(numbers), 20); rng.IntN(4) > 0 {
				n = numbers[len(numbers)-1-rng.IntN(recent)]
			}
		}
		switch action := rng.IntN(100); {
		case action < 50:
			q := gate.Entry{Kind: gate.KindQuestion, Until: clock.Now().Add(time.Minute)}
			if l.Append(t.Context(), &q) == nil {
				asked[q.Number] = &truth{}
				numbers = append(numbers, q.Number)
			}
		case n == 0:
		case action < 62:
			if l.Append(t.Context(), &gate.Entry{Kind: gate.KindAnswer, Approval: n}) == nil {
				asked[n].yes++
			}
		case action < 68:
			if l.Append(t.Context(), &gate.Entry{Kind: gate.KindAnswer, Approval: n, Verdict: gate.Declined}) == nil {
				asked[n].no++
			}
		case action < 86:
			if l.Append(t.Context(), &gate.Entry{Kind: gate.KindIntent, Approval: n}) == nil {
				asked[n].used++
			}
		case action < 96:
			clock.Advance(time.Duration(rng.IntN(5)-1) * time.Minute)
		case action < 97:
			clock.Advance(time.Duration(rng.IntN(7)-3) * time.Hour)
		case action < 98:
			broken.Store(false)
			put(t, l, &gate.Entry{Kind: gate.KindStop})
			closeLedger(t, l)
			start()
		}
		if n != 0 {
			if is := *asked[n]; is.yes+is.no > 1 || is.used > is.yes {
				t.Fatalf("question %d: %+v", n, is)
			}
		}
	}
	broken.Store(false)
	put(t, l, &gate.Entry{Kind: gate.KindStop})
	closeLedger(t, l)
	used := 0
	for _, is := range asked {
		used += is.used
	}
	if used < steps/100 {
		t.Errorf("only %d of %d approvals were used", used, len(asked))
	}
}

// What the ledger remembers is bounded by the questions of one approval timeout
// and the grace after it, not by how many there ever were.
func TestForgottenQuestions(t *testing.T) {
	clock, dir := gatetest.NewClock(), t.TempDir()
	options := ledger.Options{Dir: dir, Now: clock.Now, Sync: func(*os.File) error { return nil }}
	l := open(t, options)
	var batch []*gate.Entry
	for range 6000 { // one a minute, unanswered, each open for five
		clock.Advance(time.Minute)
		batch = append(batch, &gate.Entry{Kind: gate.KindQuestion, Until: clock.Now().Add(5 * time.Minute)})
		if len(batch) == 10 {
			put(t, l, batch...)
			batch = batch[:0]
		}
	}
	closeLedger(t, l)
	if n := l.OpenQuestions(); n > 1100 {
		t.Errorf("%d questions are remembered", n)
	}
	l = open(t, options)
	closeLedger(t, l)
	if n := l.OpenQuestions(); n == 0 || n > 70 {
		t.Errorf("%d questions are remembered after a restart, want those of an hour", n)
	}
	l = open(t, options)
	put(t, l, &gate.Entry{Kind: gate.KindAnswer, Approval: 6000, Verdict: gate.Declined})
	clock.Advance(-50 * time.Hour) // what is forgotten does not come back with the time
	if err := l.Append(t.Context(), &gate.Entry{Kind: gate.KindAnswer, Approval: 3000}); !errors.Is(err, gate.ErrSpent) {
		t.Errorf("an old question: %v", err)
	}
}
