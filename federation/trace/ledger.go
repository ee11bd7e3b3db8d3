package trace

import (
	"context"
	"time"

	"gatehouse/gate"
)

// callKey is the context key of the call that is being traced.
type callKey struct{}

// Context returns ctx with the call in it, for the ledger to find.
func (c *Call) Context(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, c)
}

// Ledger returns l with the writes of traced calls recorded. Without a tracer it
// is l itself.
func (t *Tracer) Ledger(l gate.Ledger) gate.Ledger {
	if t == nil {
		return l
	}
	return tracedLedger{l}
}

type tracedLedger struct{ gate.Ledger }

func (l tracedLedger) Append(ctx context.Context, entries ...*gate.Entry) error {
	c, _ := ctx.Value(callKey{}).(*Call)
	if c == nil {
		return l.Ledger.Append(ctx, entries...)
	}
	began := time.Now()
	if c.judged.IsZero() {
		c.judged = began
	}
	err := l.Ledger.Append(ctx, entries...)
	c.wrote(began, entries, err)
	return err
}
