package cli

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A pace is a record that the test moves on.
type pace struct {
	mu   sync.Mutex
	last uint64
	news chan struct{}
}

func (p *pace) Recorded() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *pace) News() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.news
}

func (p *pace) record(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last += n
	close(p.news)
	p.news = make(chan struct{})
}

func TestMemoryIsGivenBackWhenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{news: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		var released atomic.Int32
		wait := giveBack(ctx, p, func() { released.Add(1) })
		after := func(d time.Duration, want int32, when string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := released.Load(); n != want {
				t.Errorf("%s: given back %d times, not %d", when, n, want)
			}
		}
		after(quietAfter+time.Millisecond, 1, "after the start")
		p.record(burst - 1)
		after(time.Hour, 1, "after a few calls")
		for range 100 {
			p.record(burst)
			after(quietAfter/2, 1, "in the middle of a burst")
		}
		after(2*quietAfter, 2, "after a burst")
		after(time.Hour, 2, "while nothing happens")
		p.record(burst)
		after(2*quietAfter, 3, "after the next burst")
		stop()
		wait()
	})
}
