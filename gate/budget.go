package gate

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// slotPatience is how long a call waits for a concurrency slot before it is
// told to come back. It is well under the shortest time that clients allow a
// call, and the operation's own budget has not begun.
const slotPatience = 5 * time.Second

// A budget counts calls per minute and calls at once, for each caller and for
// each server. It lives in memory: after a restart everybody starts afresh.
type budget struct {
	mu     sync.Mutex
	now    func() time.Time
	meters map[meterKey]*meter
	crowd  int // look for meters at rest when there are more than this
}

type meterKey struct {
	server bool
	name   string
}

// A meter is a token bucket and a set of slots. A bucket holds one minute's
// worth of calls, so a caller may use a quiet minute's calls at once.
type meter struct {
	tokens  float64
	perMin  int
	filled  time.Time
	slots   int // limit, 0: none
	busy    int
	waiting []chan struct{} // oldest first; closed when the slot is theirs
}

// take charges caller and server with one call, or neither of them.
func (b *budget) take(c *Caller, t *Tool) *Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	caller, server := b.of(c, t)
	caller.fill(now, c.CallsPerMinute)
	server.fill(now, t.ServerCallsPerMinute)
	if wait := caller.shortBy(); wait > 0 {
		return overBudget(wait, fmt.Sprintf("caller %q has used its %d calls a minute", c.Name, c.CallsPerMinute))
	}
	if wait := server.shortBy(); wait > 0 {
		return overBudget(wait, fmt.Sprintf("server %q has had its %d calls a minute", t.Server, t.ServerCallsPerMinute))
	}
	caller.tokens--
	server.tokens--
	return nil
}

func overBudget(wait time.Duration, detail string) *Refusal {
	return &Refusal{Reason: BudgetSpent, RetryAfter: wait, Detail: detail}
}

// refund undoes take, for a call that was refused after all.
func (b *budget) refund(c *Caller, t *Tool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	caller, server := b.of(c, t)
	caller.tokens++
	server.tokens++
}

// enter waits for a slot of the caller and then for one of the server. The
// order is the same for all, so nobody waits in a circle. release is to be
// called once.
func (b *budget) enter(ctx context.Context, c *Caller, t *Tool) (release func(), short *Refusal) {
	until := time.Now().Add(slotPatience)
	b.mu.Lock()
	caller, server := b.of(c, t)
	caller.slots, server.slots = c.ConcurrentCalls, t.ServerConcurrentCalls
	b.mu.Unlock()
	if !b.occupy(ctx, until, caller) {
		return nil, noSlot(ctx, fmt.Sprintf("caller %q has %d calls running", c.Name, c.ConcurrentCalls))
	}
	if !b.occupy(ctx, until, server) {
		b.leave(caller)
		return nil, noSlot(ctx, fmt.Sprintf("server %q has %d calls running", t.Server, t.ServerConcurrentCalls))
	}
	return func() { b.leave(server); b.leave(caller) }, nil
}

func noSlot(ctx context.Context, detail string) *Refusal {
	if ctx.Err() == context.Canceled {
		return gone()
	}
	return overBudget(time.Second, detail)
}

// occupy takes a slot of m, waiting in a queue that is at most twice as long as
// there are slots.
func (b *budget) occupy(ctx context.Context, until time.Time, m *meter) bool {
	b.mu.Lock()
	if m.free() && len(m.waiting) == 0 {
		m.busy++
		b.mu.Unlock()
		return true
	}
	if len(m.waiting) >= 2*m.slots {
		b.mu.Unlock()
		return false
	}
	turn := make(chan struct{})
	m.waiting = append(m.waiting, turn)
	b.mu.Unlock()
	patience := time.NewTimer(time.Until(until)) // only here: a call that need not wait needs none
	defer patience.Stop()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	case <-patience.C:
	}
	return b.giveUp(m, turn)
}

// giveUp leaves the queue, unless the slot came in the same moment.
func (b *budget) giveUp(m *meter, turn chan struct{}) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, w := range m.waiting {
		if w == turn {
			m.waiting = append(m.waiting[:i], m.waiting[i+1:]...)
			return false
		}
	}
	return true
}

func (b *budget) leave(m *meter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.busy--
	for len(m.waiting) > 0 && m.free() {
		m.busy++
		close(m.waiting[0])
		m.waiting = m.waiting[1:]
	}
}

func (m *meter) free() bool { return m.slots <= 0 || m.busy < m.slots }

// fill adds what time has earned. A limit that changed starts with a full bucket.
func (m *meter) fill(now time.Time, perMin int) {
	if perMin != m.perMin || m.filled.IsZero() {
		m.perMin, m.tokens = perMin, float64(perMin)
	} else if passed := now.Sub(m.filled); passed > 0 {
		m.tokens = min(float64(perMin), m.tokens+passed.Minutes()*float64(perMin))
	}
	m.filled = now
}

// shortBy is how long it takes until there is a whole call in the bucket. What
// rounding took away must not make somebody who waited as told wait again.
func (m *meter) shortBy() time.Duration {
	const rounding = 1e-6
	if m.perMin <= 0 || m.tokens >= 1-rounding {
		return 0
	}
	return max(time.Duration((1-m.tokens)*float64(time.Minute)/float64(m.perMin)), time.Millisecond)
}

func (b *budget) of(c *Caller, t *Tool) (caller, server *meter) {
	return b.meter(meterKey{name: string(c.Name)}), b.meter(meterKey{server: true, name: string(t.Server)})
}

func (b *budget) meter(k meterKey) *meter {
	if m := b.meters[k]; m != nil {
		return m
	}
	if len(b.meters) >= max(b.crowd, 1024) {
		b.forgetIdle()
	}
	if b.meters == nil {
		b.meters = make(map[meterKey]*meter)
	}
	m := new(meter)
	b.meters[k] = m
	return m
}

// forgetIdle drops meters that say nothing: full and unused. Callers known by
// their tokens' subjects are many.
func (b *budget) forgetIdle() {
	for k, m := range b.meters {
		if m.busy == 0 && len(m.waiting) == 0 && b.now().Sub(m.filled) > time.Minute {
			delete(b.meters, k)
		}
	}
	b.crowd = 2 * len(b.meters)
}
