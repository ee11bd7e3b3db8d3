package upstream

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// An operation is what all requests of one Test, List or Call share: one
// budget, one credential session, and the account of what each leg took. One
// goroutine works on it.
type operation struct {
	client     *Client
	lane       *lane
	ctx        context.Context // the caller's; it ends when they give up
	began      time.Time
	credential credential.Session
	trace      trace
	subject    string // in whose name a delegated call is made; "" otherwise

	legs    []gate.Leg
	room    [6]gate.Leg // legs starts here, enough for most operations
	tokens  int         // how many of the credential's own legs are in the account
	latency time.Duration
	status  int
	in, out int64

	parting     legacySession // to be ended with the operation
	abandoned   string        // id of a request that the server need not answer any more
	abandonedIn legacySession

	// settled says that the server has answered in the era that is being spoken,
	// so a later failure says nothing about the era.
	settled bool
}

// begin opens the budget of one operation. Every operation that began must end.
func (c *Client) begin(ctx context.Context, l *lane, p credential.Purpose, t trace) (*operation, *fault) {
	op := &operation{client: c, lane: l, ctx: ctx, began: c.now(), trace: t}
	op.legs = op.room[:0]
	if l.unusable != nil {
		return op, &fault{reason: ReasonUnusable, text: l.unusable.Error()}
	}
	session, err := c.options.Credentials.Open(l.server.Auth, p)
	if err != nil {
		return op, refusedCredential("", err)
	}
	op.credential = session
	return op, nil
}

// end has the session ended, if there is one, and wipes the credential unless
// the closing request still needs it.
func (op *operation) end() {
	op.farewell()
	if op.credential != nil {
		op.credential.Close()
		op.credential = nil
	}
}

func (op *operation) spent() time.Duration { return op.client.now().Sub(op.began) }

func (op *operation) left() time.Duration { return op.lane.server.Timeout - op.spent() }

// leg makes one request with what is left of the budget.
func (op *operation) leg(name string, r wire.Request) (*wire.Reply, *fault) {
	if op.ctx.Err() != nil {
		return nil, op.gaveUp(name, false)
	}
	left := op.left()
	if left <= 0 {
		return nil, op.exhausted(name, false, "")
	}
	ctx, cancel := context.WithTimeout(op.ctx, left)
	defer cancel()
	r.Credential = op.header
	start := op.client.now()
	reply, err := op.lane.endpoint.Do(ctx, r)
	took := op.client.now().Sub(start)
	if err != nil {
		return nil, op.failed(name, took, err)
	}
	op.account(name, took, reply.Status)
	op.judged(reply.Status, "")
	op.in += reply.BytesIn
	op.out += reply.BytesOut
	return reply, nil
}

// header gives wire the credential, after the host gate.
func (op *operation) header(ctx context.Context) (name, value string, err error) {
	return op.credential.Header(ctx)
}

// account enters a leg, and before it the token requests it had to wait for,
// whose time is their own.
func (op *operation) account(name string, took time.Duration, status int) {
	tokens := op.credential.Legs()
	for _, leg := range tokens[min(op.tokens, len(tokens)):] {
		op.legs = append(op.legs, leg)
		took -= leg.Took
	}
	op.tokens = len(tokens)
	op.latency, op.status = max(took, 0), status
	op.legs = append(op.legs, gate.Leg{Name: name, Took: op.latency, Status: status})
}

// judged tells the credential session what the server thinks of its credential.
// Statuses that are about something else tell nothing.
func (op *operation) judged(status int, challenge string) {
	session, listens := op.credential.(credential.Rejecter)
	switch {
	case !listens:
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		// Detached: whoever calls may leave, and the token is no good all the same.
		// It waits at most for a token that somebody else is fetching.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(op.ctx), max(op.left(), 0))
		defer cancel()
		session.Rejected(ctx, status, challenge)
	case status >= 200 && status <= 299:
		session.Accepted()
	}
}

// failed turns the error of a round trip into a fault. Whose fault it is when
// time ran out depends on whose time that was.
func (op *operation) failed(name string, took time.Duration, err error) *fault {
	var we *wire.Error
	if !errors.As(err, &we) {
		we = &wire.Error{Kind: wire.Transport, Wrote: true}
	}
	op.account(name, took, we.Status)
	if we.Status != 0 {
		op.judged(we.Status, we.Challenge)
	}
	switch {
	case op.ctx.Err() != nil && (we.Kind == wire.Cancelled || we.Kind == wire.Deadline || we.Kind == wire.Transport):
		f := op.gaveUp(name, we.Wrote)
		f.wire = we
		return f
	case we.Kind == wire.Deadline:
		f := op.exhausted(name, we.Wrote, we.Unanswered)
		f.sent, f.wire = we.Wrote, we
		return f
	}
	return op.explain(name, we, err)
}

// contact remembers that an operation completed. A store that cannot is no
// reason to take a finished result away.
func (op *operation) contact() {
	id := op.lane.server.ID
	if err := op.client.options.Store.Contact(id, op.client.now(), op.latency); err != nil {
		op.client.log.Warn("contact not remembered", "server", string(id), "error", err)
	}
}
