package gate_test

import (
	"context"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

const approve, denyForm = `{"decision":"approve"}`, `{"decision":"deny"}`

// A house is a gate with everything around it.
type house struct {
	*gate.Gate
	t      *testing.T
	ledger *gatetest.Ledger
	keys   *gatetest.Keys
	clock  *gatetest.Clock
	tools  gatetest.Snapshot
	alice  *gate.Caller
}

// newHouse has one tool, mcp_demo_echo, that needs approval.
func newHouse(t *testing.T, change ...func(*gate.Options)) *house {
	t.Helper()
	h := &house{t: t, clock: gatetest.NewClock(), keys: gatetest.NewKeys(1), alice: gatetest.Admin("alice")}
	h.ledger = &gatetest.Ledger{Now: h.clock.Now}
	asked := gatetest.Tool("mcp_demo_echo")
	asked.ApprovalWaived = false
	h.tools = gatetest.NewSnapshot(asked)
	o := gate.Options{Ledger: h.ledger, Keys: h.keys, Digest: gatetest.Digest, Now: h.clock.Now, ApprovalTimeout: 2 * time.Minute}
	for _, f := range change {
		f(&o)
	}
	g, err := gate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	h.Gate = g
	return h
}

func console(o *gate.Options)      { o.Channel = gate.ConsoleChannel }
func thenConsole(o *gate.Options)  { o.Channel = gate.ClientThenConsole }
func secondPerson(o *gate.Options) { o.SecondPerson = true }

// call is alice's call, by a client that shows forms.
func (h *house) call(arguments string) gate.Call {
	return gate.Call{Tool: "mcp_demo_echo", Arguments: []byte(arguments), CanAsk: true, SessionKey: "s1", Session: "0011223344556677"}
}

func (h *house) submit(call gate.Call) gate.Ruling {
	return h.Submit(context.Background(), h.tools, h.alice, call)
}

// ask submits a call that has to come back as a question.
func (h *house) ask(call gate.Call) *gate.Question {
	h.t.Helper()
	r := h.submit(call)
	if r.Question == nil || r.Permit != nil || r.Refusal != nil {
		h.t.Fatalf("got %+v, want a question", r)
	}
	return r.Question
}

func accepted(content string) *gate.Answer {
	return &gate.Answer{Action: "accept", Content: []byte(content)}
}

// answered is call with q's state and an answer.
func answered(call gate.Call, q *gate.Question, a *gate.Answer) gate.Call {
	call.State, call.Answer = q.State, a
	return call
}

func (h *house) permitted(r gate.Ruling) *gate.Permit {
	h.t.Helper()
	if r.Permit == nil || r.Question != nil || r.Refusal != nil {
		h.t.Fatalf("got %+v, refusal %+v, want a permit", r, r.Refusal)
	}
	return r.Permit
}

func (h *house) refused(r gate.Ruling, want gate.Reason) *gate.Refusal {
	h.t.Helper()
	if r.Refusal == nil || r.Permit != nil || r.Question != nil {
		h.t.Fatalf("got %+v, want a refusal for %s", r, want)
	}
	if r.Refusal.Reason != want {
		h.t.Fatalf("refused for %q (%s), want %q", r.Refusal.Reason, r.Refusal.Detail, want)
	}
	return r.Refusal
}

// count says how many entries of a kind are on record.
func (h *house) count(kind gate.Kind) (n int) {
	for _, e := range h.ledger.Entries() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}
