package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
)

// What a caller may not use it cannot write to the disk with.
func TestNoArgumentsOfWhoMayNotCall(t *testing.T) {
	for _, keep := range []gate.ArgumentRecord{gate.KeepAll, gate.KeepRedacted} {
		h := waived(t, func(o *gate.Options) { o.Arguments = keep })
		h.alice.CallsPerMinute = 1
		h.permitted(h.submit(h.call(`{"a":"kept"}`)))
		h.refused(h.submit(h.call(`{"a":"kept"}`)), gate.BudgetSpent)
		if e := h.ledger.Last(gate.KindDenied); e.Arguments == "" {
			t.Errorf("%d: the arguments of a caller who may call are not kept", keep)
		}
		missing := h.call(`{"a":"kept"}`)
		missing.Tool = "mcp_demo_gone"
		h.refused(h.submit(missing), gate.NotRegistered)
		if e := h.ledger.Last(gate.KindDenied); e.Arguments != "" || e.ArgumentDigest.IsZero() {
			t.Errorf("%d: on record: %+v", keep, e)
		}
		h.alice = caller(noAdmin)
		h.refused(h.submit(h.call(`{"a":"kept"}`)), gate.RequiresAdmin)
		h.Deny(context.Background(), h.tools, h.alice, h.call(`{"a":"kept"}`), gate.InvalidArguments, "duplicate keys")
		for _, e := range h.ledger.Entries()[4:] {
			if e.Arguments != "" {
				t.Errorf("%d: on record: %+v", keep, e)
			}
		}
	}
}

// Denials that differ from each other are as many entries only up to a point.
func TestDifferentDenialsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(o *gate.Options) { o.Now = nil })
		deny := func(n int) {
			call := h.call(`{}`)
			for i := range n {
				call.Tool = gate.LocalName(fmt.Sprint("mcp_demo_none", i))
				if refusal := h.refused(h.submit(call), gate.NotRegistered); refusal.Record == 0 {
					t.Error("a denial has no number")
				}
			}
		}
		deny(500)
		if n := h.count(gate.KindDenied); n != 21 {
			t.Errorf("%d entries for 500 denials, want 20 and one that counts", n)
		}
		h.alice = caller(func(c *gate.Caller) { c.Name = "bob" })
		deny(1)
		if e := h.ledger.Last(gate.KindDenied); e.Caller != "bob" || strings.Contains(e.Detail, "only counted") {
			t.Errorf("one caller's flood hides another's denial: %+v", e)
		}
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if e := h.ledger.Last(gate.KindDenied); e.Caller != "alice" || e.Reason != string(gate.NotRegistered) || !strings.Contains(e.Detail, "only counted") || e.Count != 479 || e.Tool != "" || e.Arguments != "" {
			t.Errorf("the count is %+v", e)
		}
		deny(1)
		if e := h.ledger.Last(gate.KindDenied); strings.Contains(e.Detail, "only counted") {
			t.Errorf("a second later: %+v", e)
		}
	})
}

// A count stands for calls with different arguments, and shows none of them.
func TestCountedDenialsOfDifferentArguments(t *testing.T) {
	for _, test := range []struct {
		second string
		kept   bool
	}{{`{"a":1}`, true}, {`{"a":2}`, false}} {
		h := waived(t, func(o *gate.Options) { o.Arguments = gate.KeepAll })
		h.alice.CallsPerMinute = 1
		h.permitted(h.submit(h.call(`{}`)))
		h.refused(h.submit(h.call(`{"a":1}`)), gate.BudgetSpent)
		h.refused(h.submit(h.call(test.second)), gate.BudgetSpent)
		h.Close()
		e := h.ledger.Last(gate.KindDenied)
		if e.Count != 1 || (e.Arguments != "") != test.kept || e.ArgumentDigest.IsZero() == test.kept {
			t.Errorf("%s: counted as %+v", test.second, e)
		}
	}
}
