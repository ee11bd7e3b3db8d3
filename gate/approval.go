package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Question has to be answered by a person before the call can happen.
type Question struct {
	Number  uint64 // of its entry
	Message string // what the person reads, complete and escaped
	Schema  []byte // raw JSON of the form's requestedSchema
	State   string // to be sent back with the answer
	Until   time.Time
	// Channel is ClientChannel when the caller's client has to show the form, and
	// ConsoleChannel when the caller can only wait and come back with the state.
	Channel Channel
}

// An Answer is what came back for a question. An accepted form whose only
// member is "decision": "approve" is a yes; everything else is not.
type Answer struct {
	Action  string // accept, decline, cancel
	Content []byte // raw JSON object, or nil
	Failure string // when no answer came: FailureTimeout, FailureLost or FailureClient
}

// Why there is no answer.
const (
	FailureTimeout = "timeout"      // nobody answered until the deadline
	FailureLost    = "lost"         // the connection broke while the question was open
	FailureClient  = "client_error" // the client refused to ask
)

// Codes of answer entries. An approval has "approved" and no verdict; all others
// have the verdict declined.
const (
	answerApproved    = "approved"
	answerDenied      = "denied"          // the form was accepted with "deny"
	answerDeclined    = "declined"        // the form was declined
	answerCancelled   = "cancelled"       // the form was closed
	answerNotApproval = "not_an_approval" // accepted with something else
	answerExpired     = "approval_expired"
	answerLost        = "lost"
	answerClientError = "client_error"
)

// ask puts the question on record and hands it out.
func (g *Gate) ask(ctx context.Context, r *request) Ruling {
	channel, ok := r.channel()
	if !ok {
		g.budget.refund(r.caller, r.Tool)
		return g.refuse(ctx, r, Refusal{Reason: ApprovalRequired,
			Detail: "a person has to approve this call, and this client does not show forms; use one that declares elicitation, or set [approval] channel = \"client_then_console\" or \"console\""})
	}
	if full := g.pending.reserve(r); full != nil {
		g.budget.refund(r.caller, r.Tool)
		return g.refuse(ctx, r, *full)
	}
	now := g.now()
	until := now.Add(r.settings.ApprovalTimeout).UTC().Truncate(time.Millisecond)
	question := r.entry(KindQuestion)
	question.Until = until
	if err := g.write(ctx, &question); err != nil {
		g.pending.unreserve(r)
		g.budget.refund(r.caller, r.Tool)
		return Ruling{Refusal: unwritable(err)}
	}
	s := sealed{question.Number, until, channel, r.binding()}
	g.pending.add(r, s, now)
	g.clock.set(now, until.Add(expiryGrace))
	return g.question(ctx, r, s, "")
}

// channel is where this call's question goes.
func (r *request) channel() (Channel, bool) {
	switch set := r.settings; {
	case set.Channel == ConsoleChannel || set.SecondPerson:
		return ConsoleChannel, true
	case r.call.CanAsk:
		return ClientChannel, true
	case set.Channel == ClientThenConsole:
		return ConsoleChannel, true
	}
	return ClientChannel, false
}

// question renders s; state is its sealed form if there is one already.
func (g *Gate) question(ctx context.Context, r *request, s sealed, state string) Ruling {
	if state == "" {
		var err error
		if state, err = g.seal(s); err != nil {
			g.pending.remove(s.question)
			return g.refuse(ctx, r, Refusal{Reason: ApproverUnavailable, Detail: "the question cannot be sealed: " + err.Error()})
		}
	}
	return Ruling{Question: &Question{
		Number: s.question, Message: r.message(s), Schema: []byte(formSchema),
		State: state, Until: s.until, Channel: s.channel,
	}}
}

// formSchema offers two choices and no default, so that a form that is sent
// untouched approves nothing.
const formSchema = `{"type":"object","properties":{"decision":{"type":"string","title":"Decision",` +
	`"description":"approve sends exactly this call, once; deny sends nothing","enum":["approve","deny"]}},"required":["decision"]}`

// resume goes on with a call that brings a state back.
func (g *Gate) resume(ctx context.Context, r *request) Ruling {
	if r.Tool == nil || r.caller == nil {
		return g.refuse(ctx, r, Refusal{Reason: r.Reason, Detail: r.Detail})
	}
	s, err := g.unseal(r.call.State)
	switch {
	case err != nil && r.Reason != "":
		// Noise in place of a state must not tell whoever may not use the tool
		// that it is there.
		return g.refuse(ctx, r, Refusal{Reason: r.Reason, Detail: r.Detail, Argument: r.Argument})
	case err != nil:
		return g.refuse(ctx, r, Refusal{Reason: ApprovalInvalid, Detail: err.Error()})
	}
	differs := s.differs(r.binding())
	switch {
	case r.Reason != "":
		return g.void(ctx, r, s, differs, Refusal{Reason: r.Reason, Argument: r.Argument,
			Detail: fmt.Sprintf("%s; question %d was asked before that and no longer counts", r.Detail, s.question)})
	case differs != "":
		return g.void(ctx, r, s, differs, Refusal{Reason: ApprovalInvalid, Detail: fmt.Sprintf("question %d: %s", s.question, differs)})
	case !g.now().Before(s.until):
		return g.decline(ctx, r, s, answerExpired)
	case s.channel == ConsoleChannel:
		return g.resumeConsole(ctx, r, s)
	}
	return g.resumeClient(ctx, r, s)
}

// void refuses a call whose circumstances changed. An answer that came from the
// very caller who was asked is recorded, and so used up.
func (g *Gate) void(ctx context.Context, r *request, s sealed, differs string, why Refusal) Ruling {
	now := r.binding()
	own := s.caller == now.caller && s.session == now.session && s.place == now.place && s.arguments == now.arguments
	if r.call.Answer == nil || !own || s.channel != ClientChannel {
		return g.refuse(ctx, r, why)
	}
	code := r.call.Answer.code()
	answer := r.answer(s, code, r.caller.Name)
	if code == answerApproved {
		answer.Verdict = Refused // a yes that nothing may be done with
		if differs == "" {
			answer.Detail = "too late: " + clipText(why.Detail, detailLimit)
		}
	}
	if err := g.write(ctx, &answer); err == nil {
		g.pending.remove(s.question)
		g.budget.refund(r.caller, r.Tool)
	}
	return g.refuse(ctx, r, why)
}

func (g *Gate) resumeClient(ctx context.Context, r *request, s sealed) Ruling {
	if r.call.Answer == nil {
		return g.question(ctx, r, s, r.call.State)
	}
	code := r.call.Answer.code()
	if code != answerApproved {
		return g.decline(ctx, r, s, code)
	}
	if r.settings.SecondPerson {
		return g.void(ctx, r, s, "", Refusal{Reason: ApprovalInvalid,
			Detail: fmt.Sprintf("question %d was put to the caller's own client, and a second person has to decide now", s.question)})
	}
	answer := r.answer(s, code, r.caller.Name)
	return g.admit(ctx, r, consent{asked: s, by: r.caller.Name, answer: &answer})
}

// decline records an answer that is not a yes.
func (g *Gate) decline(ctx context.Context, r *request, s sealed, code string) Ruling {
	why := declined(code, s)
	answer := r.answer(s, code, "")
	if code == answerDenied || code == answerDeclined || code == answerCancelled || code == answerNotApproval {
		answer.AnsweredBy = r.caller.Name
	}
	switch err := g.write(ctx, &answer); {
	case err == nil:
		if s.channel == ClientChannel {
			g.pending.remove(s.question)
		}
		why.Record = answer.Number
		return Ruling{Refusal: &why}
	case errors.Is(err, ErrSpent) && code == answerExpired:
		return g.refuse(ctx, r, why)
	case errors.Is(err, ErrSpent):
		return g.refuse(ctx, r, Refusal{Reason: ApprovalInvalid, Detail: fmt.Sprintf("question %d was answered before", s.question)})
	}
	why.Detail += "; this answer could not be recorded"
	return Ruling{Refusal: &why}
}

// declined is the refusal that follows from an answer.
func declined(code string, s sealed) Refusal {
	why := Refusal{Verdict: Declined, Reason: ReasonDeclined}
	switch code {
	case answerExpired:
		why.Reason, why.Detail = ApprovalExpired, fmt.Sprintf("nobody answered question %d until %s", s.question, clockText(s.until))
	case answerLost:
		why.Reason, why.Detail = ApproverUnavailable, fmt.Sprintf("the connection was lost while question %d was open", s.question)
	case answerClientError:
		why.Reason, why.Detail = ApproverUnavailable, fmt.Sprintf("the client could not ask question %d", s.question)
	case answerCancelled:
		why.Detail = fmt.Sprintf("question %d was closed without a decision", s.question)
	case answerNotApproval:
		why.Detail = fmt.Sprintf("what came back for question %d is not exactly an approval", s.question)
	default:
		why.Detail = fmt.Sprintf("a person answered no to question %d", s.question)
	}
	return why
}

// answer is the entry that closes a question.
func (r *request) answer(s sealed, code string, by CallerName) Entry {
	e := r.entry(KindAnswer)
	e.Approval, e.AnsweredBy, e.Reason, e.Arguments = s.question, by, code, ""
	if code != answerApproved {
		e.Verdict = Declined
	}
	return e
}

// code says what an answer amounts to.
func (a *Answer) code() string {
	switch a.Failure {
	case "":
	case FailureTimeout:
		return answerExpired
	case FailureLost:
		return answerLost
	default:
		return answerClientError
	}
	switch a.Action {
	case "decline":
		return answerDeclined
	case "cancel":
		return answerCancelled
	case "accept":
		return decision(a.Content)
	}
	return answerNotApproval
}

// decision reads a form. It takes the object token by token, because a decoder
// that fills a struct would let "Decision" overrule "decision", and the last of
// two equal keys the first.
func decision(content []byte) string {
	d := json.NewDecoder(bytes.NewReader(content))
	var form [4]json.Token
	for i := range form {
		var err error
		if form[i], err = d.Token(); err != nil {
			return answerNotApproval
		}
	}
	_, err := d.Token()
	if err != io.EOF || form[0] != json.Delim('{') || form[1] != "decision" || form[3] != json.Delim('}') {
		return answerNotApproval
	}
	switch form[2] {
	case "approve":
		return answerApproved
	case "deny":
		return answerDenied
	}
	return answerNotApproval
}
