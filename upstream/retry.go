package upstream

import (
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"gatehouse/upstream/wire"
)

// retries is how often a leg before the work request is tried again. A server
// that fails three times within seconds is better reported than waited for.
const retries = 2

func waits() backoff.BackOff {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(200*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(0), // the operation's budget is the limit
	)
	return backoff.WithMaxRetries(b, retries)
}

// retried makes a request that may be made more than once: any but the work
// request of a call.
func (op *operation) retried(name string, r wire.Request) (*wire.Reply, *fault) {
	var waits = waits()
	for {
		reply, f := op.leg(name, r)
		if f == nil || !passing(f) {
			return reply, f
		}
		wait := waits.NextBackOff()
		if wait == backoff.Stop {
			return nil, f
		}
		wait = max(wait, f.retry)
		if left := op.left(); wait >= left {
			if f.retry > 0 {
				f.text += fmt.Sprintf("; the wait does not fit into the %.1fs that are left of our limit", max(left, 0).Seconds())
			}
			return nil, f
		}
		if !op.pause(wait) {
			return nil, op.gaveUp(name, false)
		}
	}
}

// passing reports whether a fault may pass by itself.
func passing(f *fault) bool {
	if f.wire == nil || f.reason == ReasonCancelled {
		return false
	}
	switch f.wire.Kind {
	case wire.Transport:
		return true
	case wire.HTTPStatus, wire.RPCError:
		switch f.wire.Status {
		case 429, 502, 503, 504:
			return true
		}
	}
	return false
}

// pause waits, and reports false when the caller gave up meanwhile.
func (op *operation) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-op.ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
