package federation

import (
	"context"
	"fmt"
	"time"

	"gatehouse/gate"
)

const (
	// patience is how long a call that came back is held open while somebody at
	// the console decides, so that a client that comes back at once does not
	// spin. It is under the shortest limit that clients put on a request.
	patience = 25 * time.Second
	// newsEvery is how often a caller who waits is told that it goes on; clients
	// that count progress as a sign of life need one within half a minute.
	newsEvery = 10 * time.Second
	// lastLook is for a decision that is being written while the caller leaves.
	lastLook = time.Second
)

// awaitConsole waits for somebody at the console to decide q. It reports whether
// the call is to be submitted again, with the state and perhaps the failure that
// are now in inv; otherwise q goes back to the caller, who returns with its state.
func (g *Gateway) awaitConsole(ctx context.Context, inv *invocation, q *gate.Question) bool {
	if inv.connection == nil {
		return g.holdOpen(ctx, inv, q)
	}
	inv.state = q.State
	if inv.answer != nil {
		// They left, and the question is not over: a decision is on its way to the
		// record, and what it says counts.
		g.Gate.Wait(context.WithoutCancel(ctx), q.State, lastLook)
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(inv.connection, cancel)()
	defer context.AfterFunc(g.leaving, cancel)()
	news := make(chan struct{})
	go func() { // ends with the wait below, which ends ctx, and is waited for
		defer close(news)
		g.sayWaiting(ctx, inv, q)
	}()
	g.Gate.Wait(ctx, q.State, q.Until.Sub(g.now()))
	if ctx.Err() != nil {
		inv.answer = &gate.Answer{Failure: gate.FailureLost}
	}
	cancel()
	<-news
	return true
}

// A hold is one call that is held open for a question.
type hold struct{ release context.CancelFunc }

// holdOpen waits with a caller who came back with a state, once.
func (g *Gateway) holdOpen(ctx context.Context, inv *invocation, q *gate.Question) bool {
	if inv.state == "" || inv.held {
		return false
	}
	inv.held = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// One call is held for a question, the newest: others would hold their
	// arguments in memory for the same news.
	mine := &hold{cancel}
	if before, held := g.held.Swap(q.Number, mine); held {
		before.(*hold).release()
	}
	defer g.held.CompareAndDelete(q.Number, mine)
	defer context.AfterFunc(g.leaving, cancel)()
	g.Gate.Wait(ctx, q.State, patience)
	return ctx.Err() == nil
}

// sayWaiting tells a caller who listens what the call waits for, until ctx ends.
func (g *Gateway) sayWaiting(ctx context.Context, inv *invocation, q *gate.Question) {
	if inv.progress == nil {
		return
	}
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		// Progress has to rise, and a server's own begins at zero: this one counts
		// the seconds up to there.
		left := max(q.Until.Sub(g.now()), time.Second).Round(time.Second)
		inv.progress(fmt.Appendf(nil, `{"progress":-%d,"message":"waiting for somebody at the console to decide question %d; %s left"}`,
			left/time.Second, q.Number, left))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
