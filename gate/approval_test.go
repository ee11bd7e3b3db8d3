package gate_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

func TestApprovedCallRunsOnceWithItsBytes(t *testing.T) {
	h := newHouse(t)
	const arguments = `{"id":9007199254740993, "z":-0,"e":1E400}`
	call := h.call(arguments)
	q := h.ask(call)
	p := h.permitted(h.submit(answered(call, q, accepted(approve))))
	order, err := p.Spend()
	if err != nil || string(order.Arguments) != arguments {
		t.Fatalf("got %q, %v", order.Arguments, err)
	}
	h.Settle(p, gate.Outcome{Verdict: gate.OK})
	var story []string
	for _, e := range h.ledger.Entries() {
		story = append(story, string(e.Kind))
		if e.Kind != gate.KindQuestion && e.Approval != q.Number {
			t.Errorf("%s has approval %d, want %d", e.Kind, e.Approval, q.Number)
		}
	}
	if got := strings.Join(story, " "); got != "question answer intent outcome" {
		t.Errorf("the record reads %q", got)
	}
	if e := h.ledger.Last(gate.KindIntent); e.AnsweredBy != "alice" || e.Number != p.Record() {
		t.Errorf("intent: %+v", e)
	}
	h.refused(h.submit(answered(call, q, accepted(approve))), gate.ApprovalInvalid)
	if n := h.count(gate.KindIntent); n != 1 {
		t.Errorf("%d intents, want 1", n)
	}
}

// Every way of not answering yes has its own code on record, and none runs the call.
func TestNotAnApproval(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer *gate.Answer
		reason gate.Reason
		code   string
	}{
		{"deny", accepted(denyForm), gate.ReasonDeclined, "denied"},
		{"decline", &gate.Answer{Action: "decline"}, gate.ReasonDeclined, "declined"},
		{"decline with an approval in it", &gate.Answer{Action: "decline", Content: []byte(approve)}, gate.ReasonDeclined, "declined"},
		{"cancel", &gate.Answer{Action: "cancel"}, gate.ReasonDeclined, "cancelled"},
		{"no action", &gate.Answer{Content: []byte(approve)}, gate.ReasonDeclined, "not_an_approval"},
		{"another action", &gate.Answer{Action: "Accept", Content: []byte(approve)}, gate.ReasonDeclined, "not_an_approval"},
		{"accept without content", &gate.Answer{Action: "accept"}, gate.ReasonDeclined, "not_an_approval"},
		{"another case", accepted(`{"Decision":"approve"}`), gate.ReasonDeclined, "not_an_approval"},
		{"another spelling", accepted(`{"decision":"Approve"}`), gate.ReasonDeclined, "not_an_approval"},
		{"a boolean", accepted(`{"decision":true}`), gate.ReasonDeclined, "not_an_approval"},
		{"a list", accepted(`{"decision":["approve"]}`), gate.ReasonDeclined, "not_an_approval"},
		{"both", accepted(`{"decision":"approve","decision":"deny"}`), gate.ReasonDeclined, "not_an_approval"},
		{"both the other way", accepted(`{"decision":"deny","decision":"approve"}`), gate.ReasonDeclined, "not_an_approval"},
		{"something beside it", accepted(`{"decision":"approve","note":"x"}`), gate.ReasonDeclined, "not_an_approval"},
		{"something after it", accepted(`{"decision":"approve"} {}`), gate.ReasonDeclined, "not_an_approval"},
		{"cut off", accepted(`{"decision":"approve"`), gate.ReasonDeclined, "not_an_approval"},
		{"silence", &gate.Answer{Failure: gate.FailureTimeout}, gate.ApprovalExpired, "approval_expired"},
		{"a broken stream", &gate.Answer{Failure: gate.FailureLost}, gate.ApproverUnavailable, "lost"},
		{"a client that cannot", &gate.Answer{Failure: gate.FailureClient}, gate.ApproverUnavailable, "client_error"},
		{"a failure with an approval in it", &gate.Answer{Action: "accept", Content: []byte(approve), Failure: "other"}, gate.ApproverUnavailable, "client_error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			call := h.call(`{}`)
			q := h.ask(call)
			refusal := h.refused(h.submit(answered(call, q, test.answer)), test.reason)
			if refusal.Verdict != gate.Declined {
				t.Errorf("verdict %q, want declined", refusal.Verdict)
			}
			e := h.ledger.Last(gate.KindAnswer)
			if e.Reason != test.code || e.Verdict != gate.Declined || e.Approval != q.Number || e.Number != refusal.Record {
				t.Errorf("on record: %+v", e)
			}
			h.refused(h.submit(answered(call, q, accepted(approve))), gate.ApprovalInvalid)
			if h.count(gate.KindIntent) != 0 {
				t.Error("there is an intent")
			}
		})
	}
}

// An approval is for one caller, session, tool, definition and spelling of the arguments.
func TestApprovalIsBound(t *testing.T) {
	const arguments = `{"a":1,"b":2}`
	for _, test := range []struct {
		name   string
		change func(h *house, call *gate.Call)
		want   gate.Reason
		says   string
	}{
		{"another session", func(_ *house, c *gate.Call) { c.SessionKey = "s2" }, gate.ApprovalInvalid, "another session"},
		{"no session", func(_ *house, c *gate.Call) { c.SessionKey = "" }, gate.ApprovalInvalid, "another session"},
		{"another caller", func(h *house, _ *gate.Call) { h.alice = gatetest.Admin("bob") }, gate.ApprovalInvalid, "another caller"},
		{"another order of keys", func(_ *house, c *gate.Call) { c.Arguments = []byte(`{"b":2,"a":1}`) }, gate.ApprovalInvalid, "arguments"},
		{"another spelling of a number", func(_ *house, c *gate.Call) { c.Arguments = []byte(`{"a":1.0,"b":2}`) }, gate.ApprovalInvalid, "arguments"},
		{"another space", func(_ *house, c *gate.Call) { c.Arguments = []byte(`{"a":1, "b":2}`) }, gate.ApprovalInvalid, "arguments"},
		{"another tool", func(h *house, c *gate.Call) {
			other := *h.tools[c.Tool]
			c.Tool, other.Name = "mcp_demo_other", "mcp_demo_other"
			h.tools[c.Tool] = &other
		}, gate.ApprovalInvalid, "another tool"},
		{"another definition, accepted meanwhile", func(h *house, c *gate.Call) {
			h.change(func(t *gate.Tool) { t.Definition = gate.DigestOf([]byte("new")) })
		}, gate.ApprovalInvalid, "definition changed"},
		{"another url", func(h *house, c *gate.Call) {
			h.change(func(t *gate.Tool) { t.Origin = "https://elsewhere.example.org" })
		}, gate.ApprovalInvalid, "changed after the question"},
		{"another class", func(h *house, c *gate.Call) {
			h.change(func(t *gate.Tool) { t.Class = gate.SecretAdjacent })
		}, gate.ApprovalInvalid, "changed after the question"},
		{"changed at an import", func(h *house, c *gate.Call) {
			h.change(func(t *gate.Tool) { t.Availability = gate.Changed })
		}, gate.ToolDisabled, "changed; question 1"},
		{"disabled meanwhile", func(h *house, c *gate.Call) {
			h.change(func(t *gate.Tool) { t.Availability = gate.Disabled })
		}, gate.ToolDisabled, "no longer counts"},
		{"gone meanwhile", func(h *house, c *gate.Call) { delete(h.tools, c.Tool) }, gate.NotRegistered, ""},
		{"no longer an administrator", func(h *house, c *gate.Call) { h.alice = caller(noAdmin) }, gate.RequiresAdmin, "no longer counts"},
		{"moved to another zone", func(h *house, c *gate.Call) { h.alice = caller(zone(gate.PrivateHosted)) }, gate.ApprovalInvalid, "another caller"},
		{"a state that was cut", func(_ *house, c *gate.Call) { c.State = c.State[:len(c.State)-4] }, gate.ApprovalInvalid, "not sealed here"},
		{"a state that is noise", func(_ *house, c *gate.Call) { c.State = "AAAA" }, gate.ApprovalInvalid, "not sealed here"},
		{"a state with padding", func(_ *house, c *gate.Call) { c.State += "=" }, gate.ApprovalInvalid, "not sealed here"},
		{"a key that is gone", func(h *house, _ *gate.Call) { h.keys.Rotate(); h.keys.Drop() }, gate.ApprovalInvalid, "no longer in the ring"},
		{"too late", func(h *house, _ *gate.Call) { h.clock.Advance(2 * time.Minute) }, gate.ApprovalExpired, "nobody answered"},
		{"a second person is wanted meanwhile", func(h *house, _ *gate.Call) {
			if err := h.Configure(gate.Options{Channel: gate.ConsoleChannel, SecondPerson: true}); err != nil {
				h.t.Fatal(err)
			}
		}, gate.ApprovalInvalid, "second person"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t)
			call := h.call(arguments)
			call = answered(call, h.ask(call), accepted(approve))
			test.change(h, &call)
			refusal := h.refused(h.submit(call), test.want)
			if !strings.Contains(refusal.Detail, test.says) {
				t.Errorf("the refusal says %q, want %q in it", refusal.Detail, test.says)
			}
			if h.count(gate.KindIntent) != 0 {
				t.Error("there is an intent")
			}
		})
	}
}

// change replaces the tool by a copy that differs.
func (h *house) change(f func(*gate.Tool)) {
	other := *h.tools["mcp_demo_echo"]
	f(&other)
	h.tools = gatetest.NewSnapshot(&other)
}

// Somebody else's attempt must not use up the approval.
func TestForeignAttemptsLeaveTheQuestionOpen(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	q := h.ask(call)
	foreign := answered(call, q, accepted(denyForm))
	foreign.SessionKey = "s2"
	h.refused(h.submit(foreign), gate.ApprovalInvalid)
	h.refused(h.Submit(context.Background(), h.tools, gatetest.Admin("bob"), answered(call, q, accepted(denyForm))), gate.ApprovalInvalid)
	h.permitted(h.submit(answered(call, q, accepted(approve))))
}

func TestApprovalDoesNotOutliveAChange(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	q := h.ask(call)
	before := h.tools
	h.change(func(t *gate.Tool) { t.Availability = gate.Disabled })
	h.refused(h.submit(answered(call, q, accepted(approve))), gate.ToolDisabled)
	if e := h.ledger.Last(gate.KindAnswer); e.Approval != q.Number {
		t.Errorf("the answer is not on record: %+v", e)
	}
	h.tools = before
	h.refused(h.submit(answered(call, q, accepted(approve))), gate.ApprovalInvalid)
}

func TestAnswerWithoutStateIsIgnored(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	call.Answer = accepted(approve)
	if q := h.ask(call); q.Number == 0 || h.count(gate.KindAnswer) != 0 {
		t.Errorf("question %d, %d answers", q.Number, h.count(gate.KindAnswer))
	}
}

func TestStateWithoutAnswerAsksTheSameAgain(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	first := h.ask(call)
	call.State = first.State
	again := h.ask(call)
	if again.Number != first.Number || again.State != first.State || again.Message != first.Message || h.count(gate.KindQuestion) != 1 {
		t.Errorf("got question %d, want %d once", again.Number, first.Number)
	}
}

func TestReplicasAcceptEachOthersKeys(t *testing.T) {
	here, there := newHouse(t), newHouse(t)
	there.keys = gatetest.NewKeys(2)
	there = newHouse(t, func(o *gate.Options) { o.Keys, o.Ledger = there.keys, here.ledger })
	call := here.call(`{}`)
	q := there.ask(call)
	here.refused(here.submit(answered(call, q, accepted(approve))), gate.ApprovalInvalid)
	other := gatetest.NewKeys(2)
	here.keys.Trust(other)
	here.permitted(here.submit(answered(call, q, accepted(approve))))
	there.refused(there.submit(answered(call, q, accepted(approve))), gate.ApprovalInvalid)
	// A replica with a record of its own cannot know whether the approval was used.
	alone := newHouse(t, func(o *gate.Options) { o.Keys = here.keys })
	alone.refused(alone.submit(answered(call, here.ask(call), accepted(approve))), gate.ApprovalInvalid)
}

func TestWhoCannotBeAsked(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	call.CanAsk = false
	if refusal := h.refused(h.submit(call), gate.ApprovalRequired); refusal.Verdict != gate.Refused {
		t.Errorf("verdict %q", refusal.Verdict)
	}
	if h.count(gate.KindQuestion) != 0 {
		t.Error("a question was put")
	}
	h = newHouse(t, thenConsole)
	if q := h.ask(call); q.Channel != gate.ConsoleChannel {
		t.Errorf("asked at channel %d, want the console", q.Channel)
	}
	call.CanAsk = true
	if q := h.ask(call); q.Channel != gate.ClientChannel {
		t.Errorf("asked at channel %d, want the client", q.Channel)
	}
}

func TestAnswersInReverseOrder(t *testing.T) {
	h := newHouse(t)
	a, b := h.call(`{"n":1}`), h.call(`{"n":2}`)
	qa, qb := h.ask(a), h.ask(b)
	for _, call := range []gate.Call{answered(b, qb, accepted(approve)), answered(a, qa, accepted(approve))} {
		order, err := h.permitted(h.submit(call)).Spend()
		if err != nil || string(order.Arguments) != string(call.Arguments) {
			t.Errorf("got %q, %v; want %q", order.Arguments, err, call.Arguments)
		}
	}
	h.refused(h.submit(answered(a, qb, accepted(approve))), gate.ApprovalInvalid)
}

func TestOneApprovalManyAtOnce(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	q := h.ask(call)
	var permits, refusals atomic.Int32
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if r := h.submit(answered(call, q, accepted(approve))); r.Permit != nil {
				permits.Add(1)
			} else if r.Refusal.Reason == gate.ApprovalInvalid {
				refusals.Add(1)
			}
		})
	}
	all.Wait()
	if permits.Load() != 1 || refusals.Load() != 31 {
		t.Errorf("%d permits and %d refusals, want 1 and 31", permits.Load(), refusals.Load())
	}
}

func TestMemoryCoversTheIdenticalCall(t *testing.T) {
	h := newHouse(t)
	h.change(func(t *gate.Tool) { t.ApprovalMemory = time.Minute })
	call := h.call(`{"a":1}`)
	h.permitted(h.submit(answered(call, h.ask(call), accepted(approve))))
	h.permitted(h.submit(call))
	if e := h.ledger.Last(gate.KindIntent); e.Approval != 0 || !strings.Contains(e.Detail, "covered by approval 1") || e.AnsweredBy != "alice" {
		t.Errorf("intent: %+v", e)
	}
	h.ask(h.call(`{"a":2}`))
	other := call
	other.SessionKey = "s2"
	h.ask(other)
	h.clock.Advance(time.Minute)
	h.ask(call)
}

func TestNothingHappensUnrecorded(t *testing.T) {
	h := newHouse(t)
	call := h.call(`{}`)
	q := h.ask(call)
	full := context.DeadlineExceeded
	h.ledger.Fail(full)
	h.refused(h.submit(answered(call, q, accepted(approve))), gate.LedgerUnavailable)
	h.refused(h.submit(call), gate.LedgerUnavailable)
	h.change(func(t *gate.Tool) { t.ApprovalWaived = true })
	h.refused(h.submit(call), gate.LedgerUnavailable)
	h.change(func(t *gate.Tool) { t.ApprovalWaived = false })
	h.ledger.Fail(nil)
	h.permitted(h.submit(answered(call, q, accepted(approve))))
}

func TestSilenceIsRecorded(t *testing.T) {
	h := newHouse(t)
	q := h.ask(h.call(`{}`))
	h.clock.Advance(3 * time.Minute)
	h.Sweep()
	if e := h.ledger.Last(gate.KindAnswer); e.Approval != q.Number || e.Reason != "approval_expired" || e.Verdict != gate.Declined {
		t.Errorf("on record: %+v", e)
	}
}
