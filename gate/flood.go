package gate

import (
	"context"
	"sync"
	"time"
)

// floodWindow is how long identical denials of one caller share one entry.
const floodWindow = time.Second

// floods counts denials that say the same. The first of a window is written at
// once and lends its number to all; one more entry at the end says how many
// there were. So a caller that hammers costs two entries a second.
type floods struct {
	mu   sync.Mutex
	open map[floodKey]*flood
}

type floodKey struct {
	caller CallerName
	tool   LocalName
	reason string
	detail string
}

type flood struct {
	denial  Entry         // what is repeated, without a number
	written chan struct{} // closed when number is set, which is 0 if it could not be written
	number  uint64
	until   time.Time
	more    int
}

// join counts e if the same was denied just now. Otherwise it opens a window;
// the caller then writes the entry and closes f.written.
func (f *floods) join(now time.Time, e *Entry) (found *flood, joined bool) {
	k := floodKey{e.Caller, e.Tool, e.Reason, e.Detail}
	f.mu.Lock()
	defer f.mu.Unlock()
	if found = f.open[k]; found != nil && now.Before(found.until) {
		found.more++
		return found, true
	}
	if f.open == nil {
		f.open = make(map[floodKey]*flood)
	}
	after := &flood{denial: *e, written: make(chan struct{}), until: now.Add(floodWindow)}
	if found != nil {
		// The alarm has not come round to the window before; its count moves on.
		after.more = found.more
	}
	f.open[k] = after
	return after, false
}

// flush hands over the counts of all windows that ended before now, or of all
// when now is zero. It returns when the next one ends.
func (f *floods) flush(now time.Time, enqueue func(*Entry)) (next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, fl := range f.open {
		if !now.IsZero() && now.Before(fl.until) {
			if next.IsZero() || fl.until.Before(next) {
				next = fl.until
			}
			continue
		}
		delete(f.open, k)
		if fl.more > 0 {
			fl.denial.Count = fl.more
			enqueue(&fl.denial)
		}
	}
	return next
}

// recordDenial writes a denial, or counts it, and returns the number of the
// entry that stands for it; 0 when nothing could be written.
func (g *Gate) recordDenial(ctx context.Context, e Entry) uint64 {
	now := g.now()
	f, joined := g.floods.join(now, &e)
	if joined {
		select {
		case <-f.written:
			return f.number
		case <-ctx.Done():
			return 0
		}
	}
	g.clock.set(now, f.until)
	if err := g.write(ctx, &e); err == nil {
		f.number = e.Number
	}
	close(f.written)
	return f.number
}
