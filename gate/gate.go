package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Channel says where a person is asked.
type Channel uint8

// The channels. ClientThenConsole asks by the caller's own client when that can
// show a form, and at the console otherwise.
const (
	ClientChannel Channel = iota
	ConsoleChannel
	ClientThenConsole
)

// An ArgumentRecord says how much of a call's arguments the ledger keeps.
type ArgumentRecord uint8

// KeepDigest keeps none of it, KeepRedacted everything but the text of strings,
// KeepAll the bytes.
const (
	KeepDigest ArgumentRecord = iota
	KeepRedacted
	KeepAll
)

// A KeyRing holds the keys that seal states. A key that is no longer current
// still opens what it sealed as long as it is in the ring.
type KeyRing interface {
	Current() (id uint32, key [32]byte)
	Key(id uint32) (key [32]byte, ok bool)
}

// Options make a Gate.
type Options struct {
	Ledger Ledger  // required
	Keys   KeyRing // required

	Enforcement     Enforcement
	ApprovalTimeout time.Duration // how long a question can be answered; 0: five minutes
	Channel         Channel
	SecondPerson    bool // whoever calls may not be who approves; needs a channel with a console
	Arguments       ArgumentRecord

	Digest func([]byte) (Digest, error) // RFC 8785 digest of arguments; nil: digest of the bytes
	Now    func() time.Time             // nil: time.Now
}

const defaultApprovalTimeout = 5 * time.Minute

// recordTimeout bounds a write to the ledger, which does not share the caller's
// cancellation: hanging up must not be a way to leave no trace.
const recordTimeout = 10 * time.Second

// A Gate judges calls, asks people, issues permits and keeps the record. It is
// safe for concurrent use.
type Gate struct {
	ledger Ledger
	keys   KeyRing
	digest func([]byte) (Digest, error)
	now    func() time.Time

	settings atomic.Pointer[Options] // replaced by Configure, never edited

	budget  budget
	pending pending
	floods  floods
	memory  memory
	clock   alarm
}

// New makes a gate. It refuses options that would leave it without a record or
// without a way to ask.
func New(o Options) (*Gate, error) {
	if o.Ledger == nil || o.Keys == nil {
		return nil, errors.New("gate: a ledger and a key ring are required")
	}
	g := &Gate{ledger: o.Ledger, keys: o.Keys, digest: o.Digest, now: o.Now}
	if g.digest == nil {
		g.digest = func(b []byte) (Digest, error) { return DigestOf(b), nil }
	}
	if g.now == nil {
		g.now = time.Now
	}
	g.budget.now, g.clock.ring = g.now, g.sweep
	return g, g.Configure(o)
}

// Configure replaces what an operator can change while calls run: enforcement,
// channel, approval timeout, second person and what is kept of arguments.
// Everything else in o is ignored.
func (g *Gate) Configure(o Options) error {
	if o.SecondPerson && o.Channel == ClientChannel {
		return errors.New("gate: a second person cannot be asked by the caller's own client; set channel to console or client_then_console")
	}
	if o.ApprovalTimeout <= 0 {
		o.ApprovalTimeout = defaultApprovalTimeout
	}
	g.settings.Store(&o)
	return nil
}

// Close writes what is still counted and ends the gate's alarm. It waits for an
// alarm that is just ringing.
func (g *Gate) Close() {
	g.clock.stop()
	g.floods.flush(time.Time{}, g.ledger.Enqueue)
}

// sweep writes what silence has decided: floods that are over, and questions
// that nobody answered.
func (g *Gate) sweep() {
	now := g.now()
	next := g.floods.flush(now, g.ledger.Enqueue)
	if at := g.expireQuestions(now); next.IsZero() || !at.IsZero() && at.Before(next) {
		next = at
	}
	g.memory.forget(now)
	if !next.IsZero() {
		g.clock.set(now, next)
	}
}

// write appends entries with a limit of the gate's own.
func (g *Gate) write(ctx context.Context, entries ...*Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return g.ledger.Append(ctx, entries...)
}

// An alarm rings at the earliest time anybody asked for. The owner stops it,
// and stop waits until it no longer rings.
type alarm struct {
	ring func()

	mu      sync.Mutex
	timer   *time.Timer
	at      time.Time
	stopped bool
	ringing sync.WaitGroup
}

// set makes the alarm ring at the given time, unless it rings before that anyway.
func (a *alarm) set(now, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	wait := max(at.Sub(now), time.Millisecond)
	if a.timer == nil {
		a.timer = time.AfterFunc(wait, a.expired)
		return
	}
	a.timer.Reset(wait)
}

func (a *alarm) expired() {
	a.mu.Lock()
	if a.stopped {
		a.mu.Unlock()
		return
	}
	a.at = time.Time{}
	a.ringing.Add(1)
	a.mu.Unlock()
	defer a.ringing.Done()
	a.ring()
}

func (a *alarm) stop() {
	a.mu.Lock()
	a.stopped = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	a.ringing.Wait()
}
