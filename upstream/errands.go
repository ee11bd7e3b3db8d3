package upstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errands are the operations and goroutines of a Client. Closing waits for all
// of them.
type errands struct {
	mu     sync.RWMutex // orders enter against shut
	closed bool
	group  sync.WaitGroup

	ctx    context.Context // ends what still runs when Close has no more time
	cancel context.CancelFunc

	// slots bounds how many closing requests are on the wire at once, so that
	// ten thousand sessions that end together are not ten thousand connections.
	slots chan struct{}
}

const closingAtOnce = 32

func newErrands() *errands {
	e := &errands{slots: make(chan struct{}, closingAtOnce)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// enter counts something in, unless the client is closing. Who entered leaves.
func (e *errands) enter() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closed {
		return false
	}
	e.group.Add(1)
	return true
}

func (e *errands) leave() { e.group.Done() }

// run does a closing request in a goroutine of its own, for at most limit from
// now. It is called from within something that has entered.
func (e *errands) run(limit time.Duration, errand func(context.Context)) {
	deadline := time.Now().Add(limit)
	e.group.Go(func() { // shut waits for it
		ctx, cancel := context.WithDeadline(e.ctx, deadline)
		defer cancel()
		select {
		case e.slots <- struct{}{}:
			defer func() { <-e.slots }()
			errand(ctx)
		case <-ctx.Done():
		}
	})
}

// stop lets nobody in any more.
func (e *errands) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// wait returns when everybody has left. When ctx ends first, what still runs is
// cut short and waited for until grace has passed.
func (e *errands) wait(ctx context.Context, grace time.Duration) error {
	done := make(chan struct{})
	go func() { // ends with the last that leaves
		e.group.Wait()
		close(done)
	}()
	defer e.cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	e.cancel()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errors.New("upstream client: an operation is still running; its caller has not given up")
	}
}
