package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// Reasons, as errors and the ledger carry them. A refusal of the credential
// session comes with that session's own reason.
const (
	ReasonPermit        = "permit_invalid"
	ReasonUnknownServer = "unknown_server"
	ReasonUnusable      = "server_unusable" // its settings cannot be put to use
	ReasonClosed        = "shutting_down"
	ReasonBudget        = "budget_spent"
	ReasonCancelled     = "cancelled"
	ReasonHostRefused   = "host_refused"
	ReasonTransport     = "transport"
	ReasonStatus        = "http_status"
	ReasonRedirect      = "redirect"
	ReasonServerError   = "server_error" // a JSON-RPC error
	ReasonMalformed     = "malformed_reply"
	ReasonTooLarge      = "reply_too_large"
	ReasonContentType   = "content_type"
	ReasonInput         = "input_required"
	ReasonVersion       = "version_unsupported"
	ReasonSessions      = "too_many_sessions"
	ReasonSessionGone   = "session_gone"
	ReasonPages         = "endless_list"
	ReasonArgument      = "argument_not_sendable"
)

var kindReasons = map[wire.Kind]string{
	wire.HostRefused:   ReasonHostRefused,
	wire.Transport:     ReasonTransport,
	wire.HTTPStatus:    ReasonStatus,
	wire.Redirect:      ReasonRedirect,
	wire.RPCError:      ReasonServerError,
	wire.Malformed:     ReasonMalformed,
	wire.TooLarge:      ReasonTooLarge,
	wire.ContentType:   ReasonContentType,
	wire.InputRequired: ReasonInput,
}

// A CallError says why an operation failed, in a sentence for operators.
// Callers branch on Verdict and Reason. Of Test and List the verdict says no
// more than that no tool was run.
type CallError struct {
	Server     gate.ServerID
	Verdict    gate.Verdict // NotSent, UpstreamError, OutcomeUnknown or Cancelled
	Reason     string       // one of the Reason constants, or a credential's
	Code       int64        // JSON-RPC error of the server, when HasCode
	HasCode    bool
	Message    string        // the server's own words, clipped
	Data       []byte        // raw error.data
	RetryAfter time.Duration // what the server asked for, 0 when it did not
	Outcome    gate.Outcome  // what to settle the permit with

	text string
}

func (e *CallError) Error() string { return e.text }

// refusal is the error of an operation that did not begin.
func refusal(id gate.ServerID, reason, text string) *CallError {
	e := &CallError{Server: id, Verdict: gate.NotSent, Reason: reason, text: text}
	if id != "" {
		e.text = fmt.Sprintf("server %q: %s", id, text)
	}
	e.Outcome = gate.Outcome{Verdict: e.Verdict, Reason: reason, Detail: e.text}
	return e
}

// A fault is a failed leg on its way to becoming an error.
type fault struct {
	leg    string
	reason string
	text   string // what happened, without the server's name
	sent   bool   // the leg's request may have reached the server
	work   bool   // the leg is the work request of a call
	wire   *wire.Error
	retry  time.Duration
}

// exhausted says that the budget is spent: whose it is, what used it up, and
// which leg it ended.
func (op *operation) exhausted(leg string, underWay bool, unanswered string) *fault {
	var b strings.Builder
	fmt.Fprintf(&b, "our limit of %s is spent", op.lane.server.Timeout)
	if len(op.legs) > 0 {
		b.WriteString(" (")
		for i, l := range op.legs {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %.1fs", l.Name, l.Took.Seconds())
		}
		b.WriteByte(')')
	}
	if underWay {
		fmt.Fprintf(&b, "; %s was cut short", leg)
	} else {
		fmt.Fprintf(&b, "; %s was not sent", leg)
	}
	if unanswered != "" {
		fmt.Fprintf(&b, " while the server waited for an answer to %q, which we never give", wire.Clip(unanswered))
	}
	b.WriteString("; raise [operation] timeout, or timeout of this server")
	return &fault{leg: leg, reason: ReasonBudget, text: b.String()}
}

// gaveUp says that the caller's context ended.
func (op *operation) gaveUp(leg string, sent bool) *fault {
	text := leg + " was not sent: the caller gave up"
	if sent {
		text = leg + " was cut short: the caller gave up"
	}
	return &fault{leg: leg, reason: ReasonCancelled, text: text, sent: sent}
}

// refusedCredential says why there is no credential to call with.
func refusedCredential(leg string, err error) *fault {
	f := &fault{leg: leg, reason: credential.ReasonUnresolved, text: "credential: " + err.Error()}
	if ce := (*credential.Error)(nil); errors.As(err, &ce) {
		f.reason = ce.Reason
	}
	return f
}

// explain puts a round trip's error into words.
func (op *operation) explain(leg string, we *wire.Error, err error) *fault {
	if we.Kind == wire.CredentialFailed {
		f := refusedCredential(leg, err)
		f.wire, f.sent = we, we.Wrote
		return f
	}
	f := &fault{leg: leg, reason: kindReasons[we.Kind], sent: we.Wrote, wire: we, retry: we.RetryAfter}
	if f.reason == "" {
		f.reason = ReasonTransport
	}
	f.text = leg + ": " + err.Error()
	if f.retry > 0 {
		f.text += fmt.Sprintf("; the server asks to wait %s", f.retry)
	}
	if we.Status == http.StatusUnauthorized || we.Status == http.StatusForbidden {
		f.text += fmt.Sprintf("; we authenticate with mode %q, check its credential", op.lane.authMode())
		if op.lane.authMode() == credential.OAuth {
			f.text += fmt.Sprintf(", or log in again with: gatehouse login %s", op.lane.server.ID)
		}
	}
	return f
}

// refuse is a fault that was found in an accepted reply.
func (op *operation) refuse(leg, reason, format string, args ...any) *fault {
	return &fault{leg: leg, reason: reason, text: leg + ": " + fmt.Sprintf(format, args...), sent: true}
}

// error makes the error that callers see, with the verdict that is known.
func (op *operation) error(f *fault) *CallError {
	e := &CallError{Server: op.lane.server.ID, Verdict: verdict(f), Reason: f.reason, RetryAfter: f.retry}
	if f.wire != nil && f.wire.HasCode {
		e.HasCode, e.Code, e.Data = true, f.wire.Code, f.wire.Data
		e.Message = wire.Clip(f.wire.Message)
	}
	e.text = fmt.Sprintf("server %q: %s", e.Server, f.text)
	if e.Verdict == gate.OutcomeUnknown {
		e.text += "; whether the tool ran is unknown"
	}
	e.Outcome = op.outcome(e.Verdict)
	e.Outcome.Reason, e.Outcome.Detail = e.Reason, e.text
	return e
}

// verdict says what a fault means for the tool: only a work request that may
// have reached the server leaves anything open, and only proof that it was not
// run closes that again.
func verdict(f *fault) gate.Verdict {
	switch {
	case !f.work || !f.sent:
		if f.reason == ReasonCancelled {
			return gate.Cancelled
		}
		return gate.NotSent
	case f.wire != nil && provesNotRun(f.wire):
		return gate.UpstreamError
	}
	return gate.OutcomeUnknown
}

// provesNotRun reports whether the server said no before it ran anything.
func provesNotRun(e *wire.Error) bool {
	switch e.Kind {
	case wire.RPCError:
		return true
	case wire.HTTPStatus:
		switch e.Status {
		case 400, 401, 403, 404, 405, 406, 413, 415, 422, 429:
			return true
		}
	}
	return false
}

func (op *operation) outcome(v gate.Verdict) gate.Outcome {
	o := gate.Outcome{Verdict: v, Legs: op.legs, Status: op.status, BytesIn: op.in, BytesOut: op.out}
	if op.subject != "" {
		o.Subject, o.Audience = op.subject, op.lane.server.Auth.Audience
	}
	return o
}
