package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxOpen bounds the questions of one caller that are open at once: people stop
// reading long before that.
const maxOpen = 256

// maxOpenBytes bounds the arguments of one caller's open questions together:
// whoever waits for an answer holds the call.
const maxOpenBytes = 16 << 20

// expiryGrace is how long after a deadline the alarm closes a question. Whoever
// holds the call open notices the deadline first, and knows more.
const expiryGrace = 2 * time.Second

// ErrNoQuestion says that no question of that number waits for a decision.
var ErrNoQuestion = errors.New("no such open question")

// A ForbiddenError says why an approver may not decide about a call.
type ForbiddenError struct {
	Approver CallerName
	Reason   Reason
	Detail   string
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("%q may not decide this: %s", e.Approver, e.Detail)
}

// An Open is a question that waits for its answer.
type Open struct {
	Number     uint64
	Asked      time.Time
	Until      time.Time
	Caller     CallerName
	Zone       Zone
	Tool       LocalName
	Server     ServerID
	ServerName string
	Origin     string
	RemoteName RemoteName
	Class      Class
	Message    string // what the person reads
	Arguments  Digest // RFC 8785
}

// pending holds the questions that were asked and are not over. Those for the
// console are decided here; those for a client only wait here for their silence
// to be recorded.
type pending struct {
	mu     sync.Mutex
	asked  map[uint64]*asked
	counts map[CallerName]openCount
}

// An openCount is what one caller has open.
type openCount struct{ questions, bytes int }

type asked struct {
	Open
	sealed sealed
	bytes  int   // of the arguments
	answer Entry // ready to be completed
	tool   *Tool

	state   openState
	record  uint64 // the answer's entry
	by      CallerName
	decided chan struct{} // closed when state is approved, denied or over
}

type openState uint8

const (
	stateOpen openState = iota
	stateDeciding
	stateApproved
	stateDenied
	stateExpired
)

// reserve counts a question about r, or says why there may not be one more.
func (p *pending) reserve(r *request) *Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	caller := r.caller.Name
	n := p.counts[caller]
	switch {
	case n.questions >= maxOpen:
		return overBudget(time.Second, fmt.Sprintf("caller %q has %d questions open; come back when some are answered", caller, n.questions))
	case n.questions > 0 && n.bytes+len(r.raw) > maxOpenBytes:
		return overBudget(time.Second, fmt.Sprintf("caller %q has %d questions open about %d bytes of arguments, and %d are allowed; come back when some are answered",
			caller, n.questions, n.bytes, maxOpenBytes))
	}
	if p.counts == nil {
		p.counts, p.asked = make(map[CallerName]openCount), make(map[uint64]*asked)
	}
	p.counts[caller] = openCount{n.questions + 1, n.bytes + len(r.raw)}
	return nil
}

func (p *pending) unreserve(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discount(r.caller.Name, len(r.raw))
}

func (p *pending) discount(caller CallerName, bytes int) {
	n := p.counts[caller]
	if n.questions--; n.questions <= 0 {
		delete(p.counts, caller)
		return
	}
	n.bytes -= bytes
	p.counts[caller] = n
}

// add keeps a question that was reserved, unless it is kept already.
func (p *pending) add(r *request, s sealed, now time.Time) *asked {
	a := &asked{
		Open: Open{
			Number: s.question, Asked: now.UTC(), Until: s.until,
			Caller: r.caller.Name, Zone: r.caller.Zone, Tool: r.Tool.Name, Server: r.Tool.Server,
			ServerName: r.Tool.ServerName, Origin: r.Tool.Origin, RemoteName: r.Tool.Remote,
			Class: r.Tool.Class, Arguments: r.arguments,
		},
		sealed: s, bytes: len(r.raw), answer: r.answer(s, "", ""), tool: r.Tool, decided: make(chan struct{}),
	}
	if s.channel == ConsoleChannel {
		a.Message = r.message(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.asked[s.question]; before != nil {
		p.discount(r.caller.Name, len(r.raw))
		return before
	}
	p.asked[s.question] = a
	return a
}

// remove forgets a question that is over.
func (p *pending) remove(number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.asked[number]; a != nil {
		delete(p.asked, number)
		p.discount(a.Caller, a.bytes)
	}
}

func (p *pending) find(number uint64) *asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[number]
}

// look returns a's state and, once it is decided, by whom and where that is recorded.
func (p *pending) look(a *asked) (openState, CallerName, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return a.state, a.by, a.record
}

// claim makes the caller the only one to decide a.
func (p *pending) claim(a *asked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.state != stateOpen {
		return false
	}
	a.state = stateDeciding
	return true
}

// settle ends a claim: with another open, or with a decision that wakes whoever waits.
func (p *pending) settle(a *asked, to openState, by CallerName, record uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.state, a.by, a.record = to, by, record
	if to != stateOpen {
		close(a.decided)
	}
}

// Questions lists the calls that wait for somebody at the console, oldest first.
func (g *Gate) Questions() []Open {
	now := g.now()
	g.pending.mu.Lock()
	defer g.pending.mu.Unlock()
	var open []Open
	for _, a := range g.pending.asked {
		if a.waits(now) {
			open = append(open, a.Open)
		}
	}
	slices.SortFunc(open, func(a, b Open) int { return cmp.Compare(a.Number, b.Number) })
	return open
}

// Question returns the question of that number if it waits for somebody at the console.
func (g *Gate) Question(number uint64) (Open, bool) {
	g.pending.mu.Lock()
	defer g.pending.mu.Unlock()
	if a := g.pending.asked[number]; a != nil && a.waits(g.now()) {
		return a.Open, true
	}
	return Open{}, false
}

func (a *asked) waits(now time.Time) bool {
	return a.sealed.channel == ConsoleChannel && a.state == stateOpen && now.Before(a.Until)
}

// Decide answers a question in the name of approver. He must not be the caller
// himself, and has to pass checks 1 to 5 for the tool in s, whose definition must
// be the one that was asked about. The answer is durable when Decide returns.
func (g *Gate) Decide(ctx context.Context, s Snapshot, number uint64, approver *Caller, approve bool) error {
	a := g.pending.find(number)
	if a == nil || !a.waitsNow(g) {
		return ErrNoQuestion
	}
	if forbidden := g.forbids(s, a, approver); forbidden != nil {
		denied := a.answer
		denied.Kind, denied.Verdict, denied.Reason, denied.Detail = KindDenied, Refused, string(forbidden.Reason), forbidden.Detail
		denied.Caller, denied.Via, denied.Zone, denied.Ceiling = forbidden.Approver, "", "", Unclassified
		g.recordDenial(ctx, denied)
		return forbidden
	}
	if !g.pending.claim(a) {
		return ErrNoQuestion
	}
	answer, to := a.answer, stateDenied
	answer.AnsweredBy, answer.Reason, answer.Verdict = approver.Name, answerDenied, Declined
	if approve {
		answer.Reason, answer.Verdict, to = answerApproved, "", stateApproved
	}
	switch err := g.write(ctx, &answer); {
	case errors.Is(err, ErrSpent):
		g.pending.settle(a, stateExpired, "", 0)
		return ErrNoQuestion
	case err != nil:
		g.pending.settle(a, stateOpen, "", 0)
		return fmt.Errorf("question %d is still open: the decision cannot be recorded: %w", number, err)
	}
	g.pending.settle(a, to, approver.Name, answer.Number)
	return nil
}

func (a *asked) waitsNow(g *Gate) bool {
	g.pending.mu.Lock()
	defer g.pending.mu.Unlock()
	return a.waits(g.now())
}

func (g *Gate) forbids(s Snapshot, a *asked, approver *Caller) *ForbiddenError {
	if approver == nil {
		return &ForbiddenError{Reason: RequiresAdmin, Detail: "there is no approver"}
	}
	if approver.Name == a.Caller {
		return &ForbiddenError{approver.Name, ApproverUnavailable, "nobody approves a call of his own; another administrator has to"}
	}
	var t *Tool
	if s != nil {
		t = s.Tool(a.Tool)
	}
	if reason, detail := Approves(t, approver, g.settings.Load().Enforcement); reason != "" {
		return &ForbiddenError{approver.Name, reason, detail}
	}
	if t.Definition != a.tool.Definition || t.Origin != a.tool.Origin || t.Class != a.tool.Class {
		return &ForbiddenError{approver.Name, ApprovalInvalid, "the tool changed after the question"}
	}
	if !approver.Admin {
		return &ForbiddenError{approver.Name, RequiresAdmin, "only an administrator decides"}
	}
	return nil
}

// Wait returns when the console question behind state is decided, when limit is
// over, or with ctx. What was decided shows when the call is submitted with state.
func (g *Gate) Wait(ctx context.Context, state string, limit time.Duration) {
	s, err := g.unseal(state)
	if err != nil {
		return
	}
	a := g.pending.find(s.question)
	if a == nil {
		return
	}
	timer := time.NewTimer(min(limit, s.until.Sub(g.now())))
	defer timer.Stop()
	select {
	case <-a.decided:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// resumeConsole looks what became of a question at the console. One that this
// process does not know, because it was started since, is open again under its
// old number: the ledger still refuses a second answer.
func (g *Gate) resumeConsole(ctx context.Context, r *request, s sealed) Ruling {
	a := g.pending.find(s.question)
	if a == nil {
		if full := g.pending.reserve(r); full != nil {
			return g.refuse(ctx, r, *full)
		}
		now := g.now()
		a = g.pending.add(r, s, now)
		g.clock.set(now, s.until.Add(expiryGrace))
	}
	state, by, record := g.pending.look(a)
	switch state {
	case stateApproved:
		return g.admit(ctx, r, consent{asked: s, by: by})
	case stateDenied:
		why := declined(answerDenied, s)
		why.Record = record
		return Ruling{Refusal: &why}
	case stateExpired:
		return g.refuse(ctx, r, Refusal{Reason: ApprovalInvalid, Detail: fmt.Sprintf("question %d was answered before", s.question)})
	}
	if answer := r.call.Answer; answer != nil && answer.Failure != "" && g.pending.claim(a) {
		g.pending.settle(a, stateExpired, "", 0)
		return g.decline(ctx, r, s, answer.code())
	}
	return g.question(ctx, r, s, r.call.State)
}

// expireQuestions records the silence of questions whose time is over, and
// forgets those that were decided. It returns when the next one is due.
func (g *Gate) expireQuestions(now time.Time) (next time.Time) {
	var silent []*asked
	g.pending.mu.Lock()
	for n, a := range g.pending.asked {
		due := a.Until.Add(expiryGrace)
		if a.state == stateDeciding {
			due = now.Add(expiryGrace)
		}
		switch {
		case now.Before(due):
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		case a.state == stateOpen:
			a.state = stateExpired
			close(a.decided)
			silent = append(silent, a)
		}
		delete(g.pending.asked, n)
		g.pending.discount(a.Caller, a.bytes)
	}
	g.pending.mu.Unlock()
	for _, a := range silent {
		answer := a.answer
		answer.Reason, answer.Verdict, answer.Detail = answerExpired, Declined, "nobody answered"
		// ErrSpent says that the answer was recorded in the last moment after all.
		_ = g.write(context.Background(), &answer)
	}
	return next
}
