package gate

import (
	"errors"
	"sync/atomic"
	"time"
)

// What Spend says of a permit that buys nothing.
var (
	ErrNoPermit      = errors.New("this is no permit")
	ErrPermitSpent   = errors.New("the permit was spent before")
	ErrPermitExpired = errors.New("the permit has expired")
)

// permitLife bounds the time between the decision and the first request. A
// permit is for a call that is ready to go, not for keeping.
const permitLife = time.Minute

// A Permit allows one call, once, with the very arguments that were judged.
// Only a Gate makes one that works. The zero value buys nothing, and a copy is
// the same permit.
type Permit struct{ grant *grant }

// A grant is what all copies of one permit share.
type grant struct {
	order   Order
	intent  Entry // as recorded
	expires time.Time
	now     func() time.Time
	release func() // gives the concurrency slots back

	// state goes from fresh to spent to settled, or from fresh to settled. One
	// word, so that a call cannot be spent while it is settled as not sent.
	state atomic.Uint32
}

const (
	permitFresh = iota
	permitSpent
	permitSettled
)

// An Order is the call that a permit stood for. Arguments are the bytes that
// were judged; whoever holds them must not change them.
type Order struct {
	Tool      *Tool
	Caller    *Caller
	Arguments []byte
	Record    uint64 // the number of the intent
	Session   string
}

// Spend trades the permit for the order, once.
func (p *Permit) Spend() (Order, error) {
	if p == nil || p.grant == nil {
		return Order{}, ErrNoPermit
	}
	g := p.grant
	if !g.now().Before(g.expires) {
		return Order{}, ErrPermitExpired
	}
	if !g.state.CompareAndSwap(permitFresh, permitSpent) {
		return Order{}, ErrPermitSpent
	}
	return g.order, nil
}

// Record is the number of the intent, 0 for the zero value.
func (p *Permit) Record() uint64 {
	if p == nil || p.grant == nil {
		return 0
	}
	return p.grant.order.Record
}

// Tool is what the permit is for, as it was judged; nil for the zero value.
func (p *Permit) Tool() *Tool {
	if p == nil || p.grant == nil {
		return nil
	}
	return p.grant.order.Tool
}

// An Outcome is how a permitted call ended. A missing verdict stands for the
// worst that is possible: OutcomeUnknown when the permit was spent, NotSent when
// it was not.
type Outcome struct {
	Verdict           Verdict
	Reason, Detail    string
	Legs              []Leg
	Status            int
	BytesIn, BytesOut int64
	ResultDigest      Digest
	Subject, Audience string
}
