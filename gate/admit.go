package gate

import (
	"context"
	"errors"
	"fmt"
)

// A consent is why check 9 is passed: nobody had to be asked (the zero value),
// somebody said yes to this call, or a yes to an earlier one covers it.
type consent struct {
	asked  sealed // the question, to be used up with the intent; without a number there is none
	by     CallerName
	note   string
	answer *Entry // written together with the intent, when it is not on record yet
}

// admit is the end of a good call: a slot, the intent on disk, the permit.
func (g *Gate) admit(ctx context.Context, r *request, yes consent) Ruling {
	caller, tool := r.caller, r.Tool
	refund := func() { g.budget.refund(caller, tool) }
	release, short := g.budget.enter(ctx, caller, tool)
	if short == nil && ctx.Err() != nil {
		release()
		short = gone()
	}
	if short != nil {
		return g.turnAway(ctx, r, yes, refund, *short)
	}
	// Nothing but the write of the intent comes after this judgement: what was
	// switched off while the call stood in the queue stays off.
	if why := g.lapsed(r, yes); why != nil {
		release()
		if why.Reason == ApprovalRequired {
			return g.ask(ctx, r)
		}
		return g.turnAway(ctx, r, yes, refund, *why)
	}
	intent := r.entry(KindIntent)
	intent.Approval, intent.AnsweredBy, intent.Detail = yes.asked.question, yes.by, yes.note
	entries := []*Entry{&intent}
	if yes.answer != nil {
		entries = []*Entry{yes.answer, &intent}
	}
	if err := g.write(ctx, entries...); err != nil {
		release()
		return g.unrecorded(ctx, r, yes, refund, err)
	}
	if yes.answer != nil {
		g.pending.remove(yes.asked.question)
	}
	if keep := r.Tool.ApprovalMemory; yes.asked.question != 0 && keep > 0 {
		now := g.now()
		g.memory.keep(r.binding(), yes, now.Add(keep))
		g.clock.set(now, now.Add(keep))
	}
	return Ruling{Permit: &Permit{&grant{
		order:   Order{Tool: r.Tool, Caller: r.caller, Arguments: r.raw, Record: intent.Number, Session: r.call.Session},
		intent:  intent,
		expires: g.now().Add(permitLife),
		now:     g.now,
		release: release,
	}}}
}

func gone() *Refusal {
	return &Refusal{Verdict: Cancelled, Reason: CallerGone, Detail: "the caller hung up before there was a permit"}
}

// lapsed judges a call once more, on what holds now, and says why it may not go
// out any more. ApprovalRequired means that a person has to be asked meanwhile.
func (g *Gate) lapsed(r *request, yes consent) *Refusal {
	question := yes.asked.question
	if question != 0 && !g.now().Before(yes.asked.until) {
		return &Refusal{Verdict: Declined, Reason: ApprovalExpired,
			Detail: fmt.Sprintf("question %d was answered, and its time was over before the call could go out", question)}
	}
	if r.call.Current == nil {
		return nil
	}
	s, c := r.call.Current()
	settings, tool := g.settings.Load(), (*Tool)(nil)
	if s != nil {
		tool = s.Tool(r.call.Tool)
	}
	if tool == r.Tool && c == r.caller && settings == r.settings {
		return nil // what the first judgement looked at is what there is
	}
	before := r.binding()
	r.settings, r.caller = settings, c
	if s != nil {
		r.generation = s.Generation()
	}
	r.Decision = Judge(s, c, r.call, settings.Enforcement)
	if r.Reason != "" {
		return &Refusal{Reason: r.Reason, Detail: r.Detail + "; it was so when the call's turn came", Argument: r.Argument}
	}
	if !r.Ask {
		return nil
	}
	switch differs := before.differs(r.binding()); {
	case question != 0 && differs != "":
		return &Refusal{Reason: ApprovalInvalid, Detail: fmt.Sprintf("question %d: %s", question, differs)}
	case question != 0 && settings.SecondPerson && yes.asked.channel == ClientChannel:
		return &Refusal{Reason: ApprovalInvalid,
			Detail: fmt.Sprintf("question %d was put to the caller's own client, and a second person has to decide now", question)}
	case question == 0 && (differs != "" || yes.by == ""):
		return &Refusal{Reason: ApprovalRequired}
	}
	return nil
}

// turnAway refuses a call that was good until it had to wait. Where it was only
// told to come back, and can, an approval stays good for another try; its call was
// charged when asked. Otherwise an answer that is not on record yet is recorded as
// what it was, a yes that nothing may be done with, and so used up; one from the
// console is on record, and its question is closed.
func (g *Gate) turnAway(ctx context.Context, r *request, yes consent, refund func(), why Refusal) Ruling {
	switch {
	case yes.asked.question == 0:
		refund()
	case yes.answer == nil && r.call.Final:
		g.pending.remove(yes.asked.question)
		refund()
	case yes.answer != nil && (r.call.Final || why.Reason != BudgetSpent):
		yes.answer.Verdict, yes.answer.Detail = Refused, "too late: "+clipText(why.Detail, detailLimit)
		if err := g.write(ctx, yes.answer); err == nil {
			g.pending.remove(yes.asked.question)
			refund()
		}
	}
	return g.refuse(ctx, r, why)
}

// unrecorded is what becomes of a call whose intent could not be written.
func (g *Gate) unrecorded(ctx context.Context, r *request, yes consent, refund func(), err error) Ruling {
	if errors.Is(err, ErrSpent) {
		return g.refuse(ctx, r, Refusal{Reason: ApprovalInvalid,
			Detail: fmt.Sprintf("approval %d was used before", yes.asked.question)})
	}
	if yes.asked.question == 0 {
		refund()
	}
	return Ruling{Refusal: unwritable(err)}
}
