package gate

import (
	"context"
	"time"
)

// A Ruling is the answer to a submitted call; exactly one field is set.
type Ruling struct {
	Permit   *Permit
	Question *Question
	Refusal  *Refusal
}

// A Refusal says that a call does not happen. It is on record already.
type Refusal struct {
	Verdict    Verdict // Refused, Declined or Cancelled
	Reason     Reason
	Detail     string         // for administrators and the record, never for other callers
	Record     uint64         // number of the entry, 0 when it could not be written
	RetryAfter time.Duration  // with BudgetSpent: when to come back
	Argument   *ArgumentError // with InvalidArguments
}

// A request is one call on its way through the gate, with everything that was
// looked up for it once.
type request struct {
	Decision
	caller     *Caller
	call       Call
	raw        []byte
	arguments  Digest // RFC 8785
	generation uint64
	settings   *Options
}

// Submit judges one call against one snapshot. A first call of a tool that
// needs approval comes back as a Question; the answer is submitted with the
// question's state, and is judged again on the snapshot of that moment. A call
// that waits for a slot is judged again before its intent, on what call.Current
// returns; from the intent on it finishes under what it was judged on.
func (g *Gate) Submit(ctx context.Context, s Snapshot, c *Caller, call Call) Ruling {
	r := g.request(s, c, call)
	r.Decision = Judge(s, c, call, r.settings.Enforcement)
	if r.Reason == "" && r.arguments.IsZero() {
		r.Reason, r.Detail = InvalidArguments, "arguments have no canonical form"
		r.Argument = &ArgumentError{Rule: "arguments have no canonical form"}
	}
	switch {
	case call.State != "":
		return g.resume(ctx, r)
	case r.Reason != "":
		return g.refuse(ctx, r, Refusal{Reason: r.Reason, Detail: r.Detail, Argument: r.Argument})
	}
	// A call is charged here and only here. A question keeps what was charged,
	// whatever the answer is: what it spends is somebody's attention.
	if short := g.budget.take(r.caller, r.Tool); short != nil {
		return g.refuse(ctx, r, *short)
	}
	if !r.Ask {
		return g.admit(ctx, r, consent{})
	}
	if yes, ok := g.memory.recall(g.now(), r.binding()); ok {
		return g.admit(ctx, r, yes)
	}
	return g.ask(ctx, r)
}

func (g *Gate) request(s Snapshot, c *Caller, call Call) *request {
	r := &request{caller: c, call: call, raw: call.raw(), settings: g.settings.Load()}
	if s != nil {
		r.generation = s.Generation()
	}
	// What has no canonical form has no digest; a call with it is refused.
	r.arguments, _ = g.digest(r.raw)
	return r
}

// unwritable is the one refusal that is not on record.
func unwritable(err error) *Refusal {
	return &Refusal{Verdict: Refused, Reason: LedgerUnavailable, Detail: "the ledger cannot be written: " + clipText(err.Error(), 300)}
}

// refuse records a refusal. That the record fails does not make it a yes.
func (g *Gate) refuse(ctx context.Context, r *request, why Refusal) Ruling {
	if why.Verdict == "" {
		why.Verdict = Refused
	}
	denied := r.entry(KindDenied)
	denied.Verdict, denied.Reason, denied.Detail = why.Verdict, string(why.Reason), clipText(why.Detail, detailLimit)
	why.Record = g.recordDenial(ctx, denied)
	return Ruling{Refusal: &why}
}

// Deny records a refusal that was decided before there was a call to judge: a
// batch, duplicate keys, a caller that may not call at all. s and c may be nil.
func (g *Gate) Deny(ctx context.Context, s Snapshot, c *Caller, call Call, reason Reason, detail string) *Refusal {
	r := g.request(s, c, call)
	if s != nil {
		r.Tool = s.Tool(call.Tool)
	}
	if call.Arguments == nil {
		r.arguments = Digest{}
	}
	return g.refuse(ctx, r, Refusal{Reason: reason, Detail: detail}).Refusal
}

// Settle records how a permitted call ended and gives its slot back. Only the
// first settlement of a permit counts.
func (g *Gate) Settle(p *Permit, o Outcome) {
	if p == nil || p.grant == nil {
		return
	}
	before := p.grant.state.Swap(permitSettled)
	if before == permitSettled {
		return
	}
	p.grant.release()
	if o.Verdict == "" {
		o.Verdict = OutcomeUnknown
		if before == permitFresh {
			o.Verdict = NotSent
		}
	}
	intent := &p.grant.intent
	g.ledger.Enqueue(&Entry{
		Kind: KindOutcome, Intent: intent.Number, Approval: intent.Approval,
		Caller: intent.Caller, Request: intent.Request, Tool: intent.Tool,
		Server: intent.Server, Origin: intent.Origin, RemoteName: intent.RemoteName,
		Verdict: o.Verdict, Reason: clipText(o.Reason, 80), Detail: clipText(o.Detail, detailLimit),
		Legs: o.Legs, Status: o.Status, BytesIn: o.BytesIn, BytesOut: o.BytesOut,
		ResultDigest: o.ResultDigest, Generation: intent.Generation,
		Subject: clipText(o.Subject, 200), Audience: clipText(o.Audience, 200), Trace: intent.Trace,
	})
}
