package gate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

func (h *house) decide(number uint64, approver *gate.Caller, yes bool) error {
	return h.Decide(context.Background(), h.tools, number, approver, yes)
}

func TestConsoleApproval(t *testing.T) {
	h := newHouse(t, console)
	call := h.call(`{"a":1}`)
	q := h.ask(call)
	open := h.Questions()
	if len(open) != 1 || open[0].Number != q.Number || open[0].Message != q.Message || q.Channel != gate.ConsoleChannel {
		t.Fatalf("open questions: %+v", open)
	}
	call.State = q.State
	if again := h.ask(call); again.Number != q.Number {
		t.Errorf("a retry got question %d, want %d", again.Number, q.Number)
	}
	call.Answer = accepted(approve)
	if again := h.ask(call); again.Number != q.Number {
		t.Error("the caller's own client answered a question for the console")
	}
	call.Answer = nil
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); err != nil {
		t.Fatal(err)
	}
	if len(h.Questions()) != 0 {
		t.Error("the question is still listed")
	}
	p := h.permitted(h.submit(call))
	if e := h.ledger.Last(gate.KindIntent); e.AnsweredBy != "bob" || e.Approval != q.Number || e.Number != p.Record() {
		t.Errorf("intent: %+v", e)
	}
	h.refused(h.submit(call), gate.ApprovalInvalid)
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); !errors.Is(err, gate.ErrNoQuestion) {
		t.Errorf("a second decision: got %v", err)
	}
}

func TestConsoleDenial(t *testing.T) {
	h := newHouse(t, console)
	call := h.call(`{}`)
	q := h.ask(call)
	if err := h.decide(q.Number, gatetest.Admin("bob"), false); err != nil {
		t.Fatal(err)
	}
	call.State = q.State
	for range 2 {
		refusal := h.refused(h.submit(call), gate.ReasonDeclined)
		if e := h.ledger.Last(gate.KindAnswer); e.Number != refusal.Record || e.AnsweredBy != "bob" || e.Reason != "denied" {
			t.Errorf("on record: %+v", e)
		}
	}
	if h.count(gate.KindIntent) != 0 {
		t.Error("there is an intent")
	}
}

func TestWhoMayDecide(t *testing.T) {
	for _, test := range []struct {
		name     string
		approver *gate.Caller
		change   func(*gate.Tool)
		want     gate.Reason
	}{
		{"nobody", nil, nil, gate.RequiresAdmin},
		{"the caller", gatetest.Admin("alice"), nil, gate.ApproverUnavailable},
		{"not an administrator", &gate.Caller{Name: "bob", Zone: gate.Local, Groups: gate.EveryGroup()}, nil, gate.RequiresAdmin},
		{"another group", caller(func(c *gate.Caller) { c.Name = "bob" }, groups("mcp_other")), nil, gate.ConfigurationGroup},
		{"below the class", caller(func(c *gate.Caller) { c.Name = "bob" }, zone(gate.ExternalGlobal)), func(t *gate.Tool) { t.Class = gate.SourceCode }, gate.TrustZone},
		{"a tool that is off now", gatetest.Admin("bob"), func(t *gate.Tool) { t.Availability = gate.Disabled }, gate.ToolDisabled},
		{"a tool that is another now", gatetest.Admin("bob"), func(t *gate.Tool) { t.Definition = gate.Digest{1} }, gate.ApprovalInvalid},
		{"our own tool, not an administrator", &gate.Caller{Name: "bob", Zone: gate.Local, Groups: gate.EveryGroup()}, func(t *gate.Tool) { t.Own = true }, gate.RequiresAdmin},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHouse(t, console)
			q := h.ask(h.call(`{}`))
			if test.change != nil {
				h.change(test.change)
			}
			err := h.decide(q.Number, test.approver, true)
			forbidden, ok := errors.AsType[*gate.ForbiddenError](err)
			if !ok || forbidden.Reason != test.want {
				t.Fatalf("got %v, want a ForbiddenError for %s", err, test.want)
			}
			if e := h.ledger.Last(gate.KindDenied); e.Reason != string(test.want) || e.Approval != q.Number {
				t.Errorf("on record: %+v", e)
			}
			if h.count(gate.KindAnswer) != 0 || len(h.Questions()) != 1 {
				t.Error("the question was answered")
			}
		})
	}
}

func TestSecondPerson(t *testing.T) {
	if _, err := gate.New(gate.Options{Ledger: &gatetest.Ledger{}, Keys: gatetest.NewKeys(1), SecondPerson: true}); err == nil {
		t.Error("a second person behind the client's own channel was accepted")
	}
	h := newHouse(t, thenConsole, secondPerson)
	if q := h.ask(h.call(`{}`)); q.Channel != gate.ConsoleChannel {
		t.Error("the caller's own client was asked")
	}
}

func TestApprovedButChangedBeforeRelease(t *testing.T) {
	h := newHouse(t, console)
	call := h.call(`{}`)
	q := h.ask(call)
	call.State = q.State
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); err != nil {
		t.Fatal(err)
	}
	before := h.tools
	h.change(func(t *gate.Tool) { t.Availability = gate.Changed })
	refusal := h.refused(h.submit(call), gate.ToolDisabled)
	if !strings.Contains(refusal.Detail, "no longer counts") {
		t.Errorf("the refusal says %q", refusal.Detail)
	}
	h.tools = before
	h.permitted(h.submit(call))
}

func TestWaitEndsWithTheDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, console, func(o *gate.Options) { o.Now = nil })
		call := h.call(`{}`)
		q := h.ask(call)
		call.State = q.State
		started := time.Now()
		h.Wait(t.Context(), q.State, 25*time.Second)
		if waited := time.Since(started); waited != 25*time.Second {
			t.Errorf("waited %s, want 25s", waited)
		}
		go func() {
			time.Sleep(10 * time.Second)
			if err := h.decide(q.Number, gatetest.Admin("bob"), true); err != nil {
				t.Error(err)
			}
		}()
		h.Wait(t.Context(), q.State, 25*time.Second)
		if waited := time.Since(started); waited != 35*time.Second {
			t.Errorf("waited %s in all, want 35s", waited)
		}
		h.permitted(h.submit(call))
		h.Wait(t.Context(), "nonsense", time.Hour)
		if waited := time.Since(started); waited != 35*time.Second {
			t.Error("a foreign state was waited for")
		}
	})
}

func TestConsoleSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, console, func(o *gate.Options) { o.Now = nil })
		call := h.call(`{}`)
		q := h.ask(call)
		call.State = q.State
		h.Wait(t.Context(), q.State, time.Hour)
		h.refused(h.submit(call), gate.ApprovalExpired)
		if err := h.decide(q.Number, gatetest.Admin("bob"), true); !errors.Is(err, gate.ErrNoQuestion) {
			t.Errorf("a late decision: got %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := h.count(gate.KindAnswer); n != 1 {
			t.Errorf("%d answers on record, want 1", n)
		}
	})
}

func TestCallerWhoGivesUpClosesTheQuestion(t *testing.T) {
	h := newHouse(t, console)
	call := h.call(`{}`)
	q := h.ask(call)
	h.refused(h.submit(answered(call, q, &gate.Answer{Failure: gate.FailureLost})), gate.ApproverUnavailable)
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); !errors.Is(err, gate.ErrNoQuestion) {
		t.Errorf("got %v, want ErrNoQuestion", err)
	}
	call.State = q.State
	h.refused(h.submit(call), gate.ApprovalInvalid)
}

// A question outlives a restart in the caller's hands, and is answered once all the same.
func TestConsoleQuestionAfterARestart(t *testing.T) {
	h := newHouse(t, console)
	call := h.call(`{}`)
	q := h.ask(call)
	call.State = q.State
	restart := func() {
		g, err := gate.New(gate.Options{Ledger: h.ledger, Keys: h.keys, Digest: gatetest.Digest, Now: h.clock.Now, Channel: gate.ConsoleChannel})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		h.Gate = g
	}
	restart()
	if again := h.ask(call); again.Number != q.Number || len(h.Questions()) != 1 {
		t.Fatalf("got question %d of %d", again.Number, len(h.Questions()))
	}
	if err := h.decide(q.Number, gatetest.Admin("bob"), false); err != nil {
		t.Fatal(err)
	}
	restart()
	h.ask(call)
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); !errors.Is(err, gate.ErrNoQuestion) {
		t.Errorf("got %v, want ErrNoQuestion", err)
	}
	h.refused(h.submit(call), gate.ApprovalInvalid)
}

func TestManyDecideAtOnce(t *testing.T) {
	h := newHouse(t, console)
	call := h.call(`{}`)
	q := h.ask(call)
	var decided atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if h.decide(q.Number, gatetest.Admin("bob"), i%2 == 0) == nil {
				decided.Add(1)
			}
		})
	}
	all.Wait()
	if decided.Load() != 1 || h.count(gate.KindAnswer) != 1 {
		t.Errorf("%d decisions and %d answers, want one", decided.Load(), h.count(gate.KindAnswer))
	}
}

func TestUndecidableWhileUnrecorded(t *testing.T) {
	h := newHouse(t, console)
	q := h.ask(h.call(`{}`))
	h.ledger.Fail(context.DeadlineExceeded)
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	h.ledger.Fail(nil)
	if err := h.decide(q.Number, gatetest.Admin("bob"), true); err != nil {
		t.Errorf("the question did not stay open: %v", err)
	}
}
