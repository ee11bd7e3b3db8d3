package gate_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

// waived is a house whose tool needs no approval.
func waived(t *testing.T, change ...func(*gate.Options)) *house {
	h := newHouse(t, change...)
	h.change(func(t *gate.Tool) { t.ApprovalWaived = true })
	return h
}

func TestPermitIsSpentOnce(t *testing.T) {
	h := waived(t)
	p := h.permitted(h.submit(h.call(`{}`)))
	duplicate := *p
	var spent, refused atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			one := p
			if i%2 == 0 {
				one = &duplicate
			}
			switch _, err := one.Spend(); {
			case err == nil:
				spent.Add(1)
			case errors.Is(err, gate.ErrPermitSpent):
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if spent.Load() != 1 || refused.Load() != 15 {
		t.Errorf("spent %d times and refused %d times, want 1 and 15", spent.Load(), refused.Load())
	}
}

func TestNoPermitBuysNothing(t *testing.T) {
	var none *gate.Permit
	for _, p := range []*gate.Permit{none, {}} {
		if _, err := p.Spend(); !errors.Is(err, gate.ErrNoPermit) || p.Record() != 0 || p.Tool() != nil {
			t.Errorf("got %v and record %d", err, p.Record())
		}
		waived(t).Settle(p, gate.Outcome{})
	}
}

func TestPermitExpires(t *testing.T) {
	h := waived(t)
	p := h.permitted(h.submit(h.call(`{}`)))
	h.clock.Advance(time.Minute)
	if _, err := p.Spend(); !errors.Is(err, gate.ErrPermitExpired) {
		t.Errorf("got %v, want ErrPermitExpired", err)
	}
}

func TestSettleOnceAndForWhatItWas(t *testing.T) {
	for _, test := range []struct {
		name  string
		spend bool
		out   gate.Outcome
		want  gate.Verdict
	}{
		{"never spent", false, gate.Outcome{}, gate.NotSent},
		{"spent and nothing known", true, gate.Outcome{}, gate.OutcomeUnknown},
		{"spent and done", true, gate.Outcome{Verdict: gate.OK}, gate.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := waived(t)
			p := h.permitted(h.submit(h.call(`{}`)))
			if test.spend {
				if _, err := p.Spend(); err != nil {
					t.Fatal(err)
				}
			}
			h.Settle(p, test.out)
			h.Settle(p, gate.Outcome{Verdict: gate.ToolError})
			if _, err := p.Spend(); !errors.Is(err, gate.ErrPermitSpent) {
				t.Errorf("after settling: got %v, want ErrPermitSpent", err)
			}
			e := h.ledger.Last(gate.KindOutcome)
			if h.count(gate.KindOutcome) != 1 || e.Verdict != test.want || e.Intent != p.Record() {
				t.Errorf("on record: %+v", e)
			}
		})
	}
}

// Settling and spending at once must never record as not sent what was sent.
func TestSpendRacesSettle(t *testing.T) {
	h := waived(t)
	h.alice.CallsPerMinute, h.alice.ConcurrentCalls = 0, 0
	for range 300 {
		p := h.permitted(h.submit(h.call(`{}`)))
		var sent atomic.Bool
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := p.Spend(); err == nil {
				sent.Store(true)
			}
		})
		both.Go(func() { h.Settle(p, gate.Outcome{}) })
		both.Wait()
		want := gate.NotSent
		if sent.Load() {
			want = gate.OutcomeUnknown
		}
		if got := h.ledger.Last(gate.KindOutcome).Verdict; got != want {
			t.Fatalf("sent %v and on record as %s", sent.Load(), got)
		}
	}
}

func FuzzJudgedBytesAreSentBytes(f *testing.F) {
	for _, seed := range []string{`{}`, ` {"a" : 1e400 }`, `{"a":"\ud800"}`, `{"a":1,"a":2}`, `[]`, "{\"<\":\"\u2028\"}", ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := waived(t)
		kept := string(raw)
		call := h.call(kept)
		call.Arguments = raw
		r := h.submit(call)
		if r.Permit == nil {
			if r.Refusal.Reason != gate.InvalidArguments {
				t.Fatalf("refused for %s", r.Refusal.Reason)
			}
			return
		}
		order, err := r.Permit.Spend()
		if raw == nil {
			kept = `{}`
		}
		if err != nil || string(order.Arguments) != kept {
			t.Fatalf("%q was judged, %q goes out (%v)", kept, order.Arguments, err)
		}
		if want, err := gatetest.Digest([]byte(kept)); err != nil || h.ledger.Last(gate.KindIntent).ArgumentDigest != want {
			t.Fatalf("the record has another digest than %q", kept)
		}
	})
}
