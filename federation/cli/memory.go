package cli

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// collectAt is the heap's growth, in percent, at which a daemon collects. What
// it keeps is small and what a call needs is gone with it, so that the runtime's
// own default collects many times a second under load and finds little.
const collectAt = 200

// tune sets the runtime up for a daemon, unless the environment says otherwise.
func (a *app) tune() {
	if a.getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if a.getenv("GOMAXPROCS") == "" {
		// The ledger's writer is nearly always in a sync, and takes a processor along
		// until the runtime notices.
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

const (
	// quietAfter is how long nothing may be put on record before a daemon counts
	// as quiet.
	quietAfter = 500 * time.Millisecond
	// burst is how many entries are worth a collection when it is quiet again:
	// calls that come one by one leave nothing behind that the next needs not.
	burst = 1000
)

// A record says how far it has come. News is closed by what comes next.
type record interface {
	Recorded() uint64
	News() <-chan struct{}
}

// giveBack calls release when it is quiet after the start, and again after every
// burst: what those needed goes back to the system at once, where the runtime by
// itself takes minutes. Wait returns when ctx has ended and nothing runs any more.
func giveBack(ctx context.Context, r record, release func()) (wait func()) {
	var running sync.WaitGroup
	running.Go(func() { // ends with ctx, waited for by wait
		for {
			last, ok := quiet(ctx, r)
			if !ok {
				return
			}
			release()
			if !reached(ctx, r, last+burst) {
				return
			}
		}
	})
	return running.Wait
}

// quiet waits for quietAfter without an entry, and returns the last one's number.
func quiet(ctx context.Context, r record) (last uint64, ok bool) {
	look := time.NewTicker(quietAfter)
	defer look.Stop()
	for last = r.Recorded(); ; {
		select {
		case <-ctx.Done():
			return 0, false
		case <-look.C:
		}
		now := r.Recorded()
		if now == last {
			return last, true
		}
		last = now
	}
}

// reached waits until an entry of that number is on record.
func reached(ctx context.Context, r record, number uint64) bool {
	for {
		news := r.News() // before the look, so that nothing is missed
		if r.Recorded() >= number {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-news:
		}
	}
}
