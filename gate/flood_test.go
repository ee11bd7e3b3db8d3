package gate_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
)

func TestIdenticalDenialsShareAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := waived(t, func(o *gate.Options) { o.Now = nil })
		missing := h.call(`{}`)
		missing.Tool = "mcp_demo_gone"
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if refusal := h.submit(missing).Refusal; refusal == nil || refusal.Record == 0 {
					t.Errorf("got %+v, want a refusal with a number", refusal)
				}
			})
		}
		all.Wait()
		other := missing
		other.Tool = "mcp_demo_other"
		h.refused(h.submit(other), gate.NotRegistered)
		if n := h.count(gate.KindDenied); n != 2 {
			t.Errorf("%d entries in the first second, want 2", n)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		e := h.ledger.Last(gate.KindDenied)
		if h.count(gate.KindDenied) != 3 || e.Count != 99 || e.Tool != "mcp_demo_gone" || e.Caller != "alice" {
			t.Errorf("%d entries, the last is %+v", h.count(gate.KindDenied), e)
		}
		h.refused(h.submit(missing), gate.NotRegistered)
		h.refused(h.submit(missing), gate.NotRegistered)
		h.Close()
		if e := h.ledger.Last(gate.KindDenied); h.count(gate.KindDenied) != 5 || e.Count != 1 {
			t.Errorf("after the end: %d entries, the last is %+v", h.count(gate.KindDenied), e)
		}
	})
}

func TestDenyRecordsWhatNeverBecameACall(t *testing.T) {
	h := newHouse(t)
	refusal := h.Deny(t.Context(), nil, nil, gate.Call{Request: `"7"`}, gate.InvalidArguments, "a batch\nof calls")
	e := h.ledger.Last(gate.KindDenied)
	if refusal.Record != e.Number || e.Request != `"7"` || e.Detail != "a batch of calls" || !e.ArgumentDigest.IsZero() {
		t.Errorf("got %+v and %+v", refusal, e)
	}
	h.Deny(t.Context(), h.tools, h.alice, h.call(`{}`), gate.InvalidArguments, "duplicate keys")
	if e := h.ledger.Last(gate.KindDenied); e.Server != "demo" || e.Caller != "alice" {
		t.Errorf("got %+v", e)
	}
}
