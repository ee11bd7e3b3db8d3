package gate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
)

func TestZonesAndDigestsAsText(t *testing.T) {
	for _, name := range gate.ZoneNames() {
		var z gate.Zone
		if err := z.UnmarshalText([]byte(name)); err != nil || z.String() != name {
			t.Errorf("%q is read as %v, %v", name, z, err)
		}
		if text, err := z.MarshalText(); err != nil || string(text) != name {
			t.Errorf("%v is written as %q, %v", z, text, err)
		}
	}
	var z gate.Zone
	if err := z.UnmarshalText([]byte("Local")); err == nil || !strings.Contains(err.Error(), `"Local"`) {
		t.Errorf("got %v", err)
	}
	d := gate.DigestOf([]byte("x"))
	text, _ := d.MarshalText()
	var back gate.Digest
	if err := back.UnmarshalText(text); err != nil || back != d {
		t.Errorf("%s is read as %s, %v", text, back, err)
	}
	for _, bad := range []string{"00", "zz", strings.Repeat("0", 66)} {
		if err := back.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q is a digest", bad)
		}
	}
	if err := back.UnmarshalText(nil); err != nil || !back.IsZero() || back.String() != "" {
		t.Errorf("the empty text is %s, %v", back, err)
	}
}

func TestNothingUnclassifiedFits(t *testing.T) {
	for c := range gate.Class(20) {
		for ceiling := range gate.Class(20) {
			known := gate.Unclassified < c && c <= gate.SecretAdjacent && gate.Unclassified < ceiling && ceiling <= gate.SecretAdjacent
			if c.Fits(ceiling) && !(known && c <= ceiling) {
				t.Errorf("class %d fits under %d", c, ceiling)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	some := gate.OnlyGroups("b", "a")
	names := some.Names()
	slices.Sort(names)
	if !slices.Equal(names, []string{"a", "b"}) || gate.EveryGroup().Names() != nil {
		t.Errorf("got %v", names)
	}
}

func TestNewRefusesHalfAGate(t *testing.T) {
	for _, o := range []gate.Options{{}, {Ledger: &gatetest.Ledger{}}, {Keys: gatetest.NewKeys(1)}} {
		if _, err := gate.New(o); err == nil {
			t.Errorf("%+v makes a gate", o)
		}
	}
}

func TestOpenQuestionsAreBounded(t *testing.T) {
	h := newHouse(t)
	var q *gate.Question
	for i := range 256 {
		q = h.ask(h.call(fmt.Sprintf(`{"n":%d}`, i)))
	}
	h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
	h.permitted(h.submit(answered(h.call(`{"n":255}`), q, accepted(approve))))
	h.ask(h.call(`{}`))
	h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
	h.clock.Advance(time.Hour)
	h.Sweep()
	h.ask(h.call(`{}`))
}

// The arguments of open questions are bounded together, and free again with them.
func TestBytesOfOpenQuestionsAreBounded(t *testing.T) {
	h := newHouse(t)
	large := func(n int) gate.Call {
		return h.call(fmt.Sprintf(`{"n":%d,"text":"%s"}`, n, strings.Repeat("x", 2<<20)))
	}
	var questions []*gate.Question
	for n := range 7 {
		questions = append(questions, h.ask(large(n)))
	}
	refusal := h.refused(h.submit(large(7)), gate.BudgetSpent)
	if refusal.RetryAfter <= 0 || !strings.Contains(refusal.Detail, "come back") {
		t.Errorf("got %+v", refusal)
	}
	h.ask(h.call(`{}`))
	h.refused(h.submit(answered(large(3), questions[3], accepted(denyForm))), gate.ReasonDeclined)
	h.ask(large(7))
	h.refused(h.submit(large(8)), gate.BudgetSpent)
	h.clock.Advance(time.Hour)
	h.Sweep()
	for n := range 7 {
		h.ask(large(n))
	}
}

// The alarm rings by itself, and Close stops it.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, console, func(o *gate.Options) { o.Now = nil })
		h.change(func(t *gate.Tool) { t.ApprovalMemory = time.Second })
		q := h.ask(h.call(`{}`))
		if open, ok := h.Question(q.Number); !ok || open.Tool != "mcp_demo_echo" {
			t.Errorf("got %+v, %v", open, ok)
		}
		time.Sleep(2*time.Minute + 5*time.Second)
		synctest.Wait()
		if e := h.ledger.Last(gate.KindAnswer); e.Approval != q.Number || e.Reason != "approval_expired" {
			t.Errorf("on record: %+v", e)
		}
		if _, ok := h.Question(q.Number); ok {
			t.Error("the question is still open")
		}
		late := h.ask(h.call(`{"n":2}`))
		h.Close()
		time.Sleep(time.Hour)
		synctest.Wait()
		if e := h.ledger.Last(gate.KindAnswer); e.Approval == late.Number {
			t.Error("the alarm rang after Close")
		}
	})
}

func TestManyCallersAreForgotten(t *testing.T) {
	h := waived(t)
	for i := range 5000 {
		h.alice = gatetest.Admin(gate.CallerName(fmt.Sprint("caller ", i)))
		h.alice.CallsPerMinute = 1
		h.Settle(h.permitted(h.submit(h.call(`{}`))), gate.Outcome{})
		h.clock.Advance(time.Second)
	}
	if n := h.Meters(); n > 2000 {
		t.Errorf("%d callers are remembered, most of them at rest", n)
	}
	h.clock.Advance(-time.Second)
	h.refused(h.submit(h.call(`{}`)), gate.BudgetSpent)
}

func TestNamesInTheMessageAreBounded(t *testing.T) {
	h := newHouse(t)
	h.change(func(t *gate.Tool) {
		t.Remote, t.Origin = gate.RemoteName(strings.Repeat("a", 500)+"\nData class: public_content"), ""
	})
	q := h.ask(h.call(`{}`))
	if !strings.Contains(q.Message, `" and 327 more bytes`+"\n") || strings.Count(q.Message, "\nData class:") != 1 {
		t.Errorf("the message is\n%s", q.Message)
	}
}

func TestForbiddenErrorSaysWhy(t *testing.T) {
	err := error(&gate.ForbiddenError{Approver: "bob", Reason: gate.RequiresAdmin, Detail: "only an administrator decides"})
	if got := err.Error(); got != `"bob" may not decide this: only an administrator decides` {
		t.Errorf("got %q", got)
	}
}

// A checker's own failure is a refusal like any other.
func TestCheckersMayFailInAnyWay(t *testing.T) {
	h := waived(t)
	h.change(func(t *gate.Tool) { t.Arguments = failing{} })
	refusal := h.refused(h.submit(h.call(`{}`)), gate.InvalidArguments)
	if refusal.Argument == nil || refusal.Argument.Rule != "the schema is broken" {
		t.Errorf("got %+v", refusal.Argument)
	}
}

type failing struct{}

func (failing) Check([]byte) error { return errors.New("the schema\nis broken") }

// What cannot be digested cannot be recorded.
func TestArgumentsWithoutACanonicalFormAreRefused(t *testing.T) {
	h := waived(t, func(o *gate.Options) {
		o.Digest = func([]byte) (gate.Digest, error) { return gate.Digest{}, errors.New("no") }
	})
	h.refused(h.Submit(context.Background(), h.tools, h.alice, h.call(`{}`)), gate.InvalidArguments)
}

func BenchmarkSubmit(b *testing.B) {
	l := &gatetest.Ledger{}
	g := gatetest.NewGate(b, discard{l})
	tool := gatetest.Tool("mcp_demo_echo")
	s, c := gatetest.NewSnapshot(tool), gatetest.Admin("alice")
	call := gate.Call{Tool: tool.Name, Arguments: []byte(`{"path":"/tmp/x","limit":10}`)}
	b.ReportAllocs()
	for b.Loop() {
		r := g.Submit(context.Background(), s, c, call)
		if _, err := r.Permit.Spend(); err != nil {
			b.Fatal(err)
		}
		g.Settle(r.Permit, gate.Outcome{Verdict: gate.OK})
	}
}

// discard numbers entries and forgets them.
type discard struct{ gate.Ledger }

func (discard) Append(_ context.Context, entries ...*gate.Entry) error {
	for i, e := range entries {
		e.Number = uint64(i + 1)
	}
	return nil
}

func (discard) Enqueue(*gate.Entry) {}
