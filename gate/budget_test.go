package gate_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
)

func TestCallsPerMinute(t *testing.T) {
	h := waived(t)
	h.alice.CallsPerMinute = 3
	for range 3 {
		h.Settle(h.permitted(h.submit(h.call(`{}`))), gate.Outcome{})
	}
	refusal := h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
	if refusal.RetryAfter != 20*time.Second || !strings.Contains(refusal.Detail, "3 calls a minute") {
		t.Errorf("got %+v", refusal)
	}
	h.clock.Advance(refusal.RetryAfter - time.Millisecond)
	h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
	h.clock.Advance(time.Millisecond)
	h.permitted(h.submit(h.call(`{}`)))
	h.clock.Advance(time.Hour)
	for range 3 {
		h.permitted(h.submit(h.call(`{}`)))
	}
	h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
}

func TestServersHaveABudgetOfTheirOwn(t *testing.T) {
	h := waived(t)
	h.change(func(t *gate.Tool) { t.ServerCallsPerMinute = 1 })
	h.alice.CallsPerMinute = 2
	h.permitted(h.submit(h.call(`{}`)))
	h.alice = caller(func(c *gate.Caller) { c.Name = "bob" })
	refusal := h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
	if !strings.Contains(refusal.Detail, `server "demo"`) {
		t.Errorf("got %q", refusal.Detail)
	}
}

// What is refused costs nothing, whatever it is refused for.
func TestRefusedCallsAreFree(t *testing.T) {
	h := waived(t)
	h.alice.CallsPerMinute = 1
	for range 5 {
		h.refused(h.submit(h.call(`[1]`)), gate.InvalidArguments)
	}
	h.change(func(t *gate.Tool) { t.ServerCallsPerMinute = 1; t.ApprovalWaived = false })
	silent := h.call(`{}`)
	silent.CanAsk = false
	h.refused(h.submit(silent), gate.ApprovalRequired)
	h.ledger.Fail(context.DeadlineExceeded)
	h.refused(h.submit(h.call(`{}`)), gate.LedgerUnavailable)
	h.ledger.Fail(nil)
	call := h.call(`{}`)
	q := h.ask(call)
	h.refused(h.submit(call), gate.BudgetSpent)
	h.permitted(h.submit(answered(call, q, accepted(approve))))
	h.refused(h.submit(call), gate.BudgetSpent)
}

func TestConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := waived(t, func(o *gate.Options) { o.Now = nil })
		h.alice.ConcurrentCalls = 2
		first, second := h.permitted(h.submit(h.call(`{}`))), h.permitted(h.submit(h.call(`{}`)))
		var admitted, refused atomic.Int32
		for range 10 {
			go func() {
				if r := h.submit(h.call(`{}`)); r.Permit != nil {
					admitted.Add(1)
				} else if r.Refusal.Reason == gate.BudgetSpent && r.Refusal.RetryAfter > 0 {
					refused.Add(1)
				}
			}()
		}
		synctest.Wait()
		if admitted.Load() != 0 || refused.Load() != 6 {
			t.Fatalf("%d admitted and %d refused, want 0 and 6 with 4 in the queue", admitted.Load(), refused.Load())
		}
		h.Settle(first, gate.Outcome{})
		h.Settle(first, gate.Outcome{})
		synctest.Wait()
		if admitted.Load() != 1 {
			t.Fatalf("%d admitted after one slot came free, want 1", admitted.Load())
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if admitted.Load() != 1 || refused.Load() != 9 {
			t.Fatalf("%d admitted and %d refused after the patience is over, want 1 and 9", admitted.Load(), refused.Load())
		}
		h.Settle(second, gate.Outcome{})
		h.permitted(h.submit(h.call(`{}`)))
	})
}

func TestWhoHangsUpInTheQueueLeavesNoIntent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := waived(t, func(o *gate.Options) { o.Now = nil })
		h.change(func(t *gate.Tool) { t.ServerConcurrentCalls = 1 })
		running := h.permitted(h.submit(h.call(`{}`)))
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan gate.Ruling, 1)
		go func() { result <- h.Submit(ctx, h.tools, h.alice, h.call(`{}`)) }()
		synctest.Wait()
		cancel()
		refusal := h.refused(<-result, gate.CallerGone)
		if refusal.Verdict != gate.Cancelled || refusal.Record == 0 || h.count(gate.KindIntent) != 1 {
			t.Errorf("got %+v with %d intents", refusal, h.count(gate.KindIntent))
		}
		h.Settle(running, gate.Outcome{})
		h.permitted(h.submit(h.call(`{}`)))
	})
}
