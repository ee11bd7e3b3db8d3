package gate_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

// queued submits a call behind one that holds the only slot, does meanwhile while
// it waits, frees the slot and returns what became of it.
func (h *house) queued(meanwhile func()) gate.Ruling {
	h.t.Helper()
	h.change(func(t *gate.Tool) { t.ServerConcurrentCalls = 1 })
	slow := h.permitted(h.submit(h.call(`{}`)))
	second := h.call(`{}`)
	second.Current = func() (gate.Snapshot, *gate.Caller) { return h.tools, h.alice }
	result := make(chan gate.Ruling, 1)
	go func() { result <- h.submit(second) }()
	synctest.Wait()
	meanwhile()
	h.Settle(slow, gate.Outcome{})
	return <-result
}

// What was decided while a call stood in the queue holds for it.
func TestQueuedCallsAreJudgedAgain(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile func(h *house)
		want      gate.Reason // "" is a permit
	}{
		{"nothing happens", func(*house) {}, ""},
		{"the tool is disabled", func(h *house) { h.change(func(t *gate.Tool) { t.Availability = gate.Disabled }) }, gate.ToolDisabled},
		{"the tool is gone", func(h *house) { h.tools = gatetest.NewSnapshot() }, gate.NotRegistered},
		{"the caller loses a right", func(h *house) { h.alice = caller(noAdmin) }, gate.RequiresAdmin},
		{"the caller is nobody", func(h *house) { h.alice = nil }, gate.RequiresAdmin},
		{"another server's table", func(h *house) { h.change(func(t *gate.Tool) { t.ServerName = "other" }) }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := waived(t, func(o *gate.Options) { o.Now = nil })
				h.alice.CallsPerMinute, h.alice.ConcurrentCalls = 2, 1
				as, tools := h.alice, h.tools
				ruling := h.queued(func() { test.meanwhile(h) })
				if test.want == "" {
					h.permitted(ruling)
					return
				}
				refusal := h.refused(ruling, test.want)
				if h.count(gate.KindIntent) != 1 || refusal.Record == 0 {
					t.Errorf("%d intents, refusal %+v", h.count(gate.KindIntent), refusal)
				}
				// It cost nothing and left its slot.
				h.alice, h.tools = as, tools
				h.permitted(h.submit(h.call(`{}`)))
			})
		})
	}
}

func TestQueuedCallsAreAskedAboutOnceTheyHaveTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := waived(t, func(o *gate.Options) { o.Now = nil })
		ruling := h.queued(func() { h.change(func(t *gate.Tool) { t.ApprovalWaived = false }) })
		if ruling.Question == nil || h.count(gate.KindIntent) != 1 {
			t.Errorf("got %+v with %d intents, want a question", ruling, h.count(gate.KindIntent))
		}
	})
}

// An approval that can no longer be used is on record as what the person said.
func TestQueuedApprovals(t *testing.T) {
	for _, test := range []struct {
		name      string
		meanwhile func(h *house, hangUp context.CancelFunc)
		want      gate.Reason
		verdict   gate.Verdict
		says      string
	}{
		{"its time passes", func(h *house, _ context.CancelFunc) { time.Sleep(3 * time.Second) }, gate.ApprovalExpired, gate.Declined, "time was over"},
		{"the tool is disabled", func(h *house, _ context.CancelFunc) {
			h.change(func(t *gate.Tool) { t.Availability = gate.Disabled })
		}, gate.ToolDisabled, gate.Refused, "disabled"},
		{"the definition changes", func(h *house, _ context.CancelFunc) {
			h.change(func(t *gate.Tool) { t.Definition = gate.DigestOf([]byte("new")) })
		}, gate.ApprovalInvalid, gate.Refused, "definition changed"},
		{"a second person has to decide", func(h *house, _ context.CancelFunc) {
			if err := h.Configure(gate.Options{SecondPerson: true, Channel: gate.ConsoleChannel}); err != nil {
				h.t.Error(err)
			}
		}, gate.ApprovalInvalid, gate.Refused, "second person"},
		{"the caller hangs up", func(_ *house, hangUp context.CancelFunc) { hangUp() }, gate.CallerGone, gate.Cancelled, "hung up"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, func(o *gate.Options) { o.Now = nil })
				h.change(func(t *gate.Tool) { t.ServerConcurrentCalls = 1 })
				first, second := h.call(`{"first":1}`), h.call(`{}`)
				slow := h.permitted(h.submit(answered(first, h.ask(first), accepted(approve))))
				question := h.ask(second)
				second = answered(second, question, accepted(approve))
				second.Current = func() (gate.Snapshot, *gate.Caller) { return h.tools, h.alice }
				time.Sleep(2*time.Minute - 2*time.Second)
				ctx, hangUp := context.WithCancel(t.Context())
				result := make(chan gate.Ruling, 1)
				go func() { result <- h.Submit(ctx, h.tools, h.alice, second) }()
				synctest.Wait()
				test.meanwhile(h, hangUp)
				synctest.Wait()
				h.Settle(slow, gate.Outcome{})
				refusal := h.refused(<-result, test.want)
				hangUp()
				if refusal.Verdict != test.verdict || !strings.Contains(refusal.Detail, test.says) {
					t.Errorf("got %+v", refusal)
				}
				time.Sleep(time.Minute) // long enough for the silence to be recorded
				answer := h.ledger.Last(gate.KindAnswer)
				if answer.Approval != question.Number || answer.Reason != "approved" || answer.Verdict != gate.Refused ||
					answer.AnsweredBy != "alice" || !strings.Contains(answer.Detail, "too late") || h.count(gate.KindIntent) != 1 {
					t.Errorf("on record: %+v, and %d intents", answer, h.count(gate.KindIntent))
				}
			})
		})
	}
}

// Where nobody can come back for another try, a yes for which no slot came free
// is settled at once, as the yes it was.
func TestApprovalsOfCallersWhoCannotComeBack(t *testing.T) {
	for _, final := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, func(o *gate.Options) { o.Now = nil })
			h.change(func(t *gate.Tool) { t.ServerConcurrentCalls = 1 })
			first, second := h.call(`{"first":1}`), h.call(`{}`)
			slow := h.permitted(h.submit(answered(first, h.ask(first), accepted(approve))))
			question := h.ask(second)
			second = answered(second, question, accepted(approve))
			second.Final = final
			h.refused(h.submit(second), gate.BudgetSpent)
			answer := h.ledger.Last(gate.KindAnswer)
			if settled := answer.Approval == question.Number && answer.Reason == "approved" && answer.Verdict == gate.Refused; settled != final {
				t.Errorf("final %v: the last answer on record is %+v", final, answer)
			}
			h.Settle(slow, gate.Outcome{})
			if ruling := h.submit(second); (ruling.Permit != nil) == final {
				t.Errorf("final %v: another try got %+v", final, ruling)
			}
		})
	}
}

// A caller who leaves in the moment of the console's yes has spent nothing.
func TestConsoleApprovalOfACallerWhoLeaves(t *testing.T) {
	for _, final := range []bool{true, false} {
		h := newHouse(t, console)
		h.alice.CallsPerMinute = 1
		call := h.call(`{}`)
		call.Final = final
		q := h.ask(call)
		if err := h.decide(q.Number, gatetest.Admin("bob"), true); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		returning := call
		returning.State = q.State
		h.refused(h.Submit(ctx, h.tools, h.alice, returning), gate.CallerGone)
		if ruling := h.submit(call); (ruling.Question != nil) != final {
			t.Errorf("final %v: the next call got %+v", final, ruling)
		}
		if !final {
			h.permitted(h.submit(returning))
		}
	}
}
