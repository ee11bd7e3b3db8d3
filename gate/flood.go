package gate

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// floodWindow is how long identical denials of one caller share one entry.
const floodWindow = time.Second

// maxDenials is how many different denials of one caller have an entry of their
// own within one window. The rest share one for each reason.
const maxDenials = 20

// floods counts denials that say the same. The first of a window is written at
// once and lends its number to all; one more entry at the end says how many
// there were. So a caller that hammers costs two entries a second, and one that
// varies what it hammers with a few dozen.
type floods struct {
	mu      sync.Mutex
	open    map[floodKey]*flood
	callers map[CallerName]*denials
}

// denials is how many entries a caller's denials have had in a window.
type denials struct {
	entries int
	until   time.Time
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
// the caller then writes the entry and closes f.written. Where the caller has had
// its entries, e becomes the one that counts the others.
func (f *floods) join(now time.Time, e *Entry) (found *flood, joined bool) {
	k := floodKey{e.Caller, e.Tool, e.Reason, e.Detail}
	f.mu.Lock()
	defer f.mu.Unlock()
	if found = f.open[k]; found != nil && now.Before(found.until) {
		found.count(e)
		return found, true
	}
	if !f.admit(now, e.Caller) {
		*e = Entry{Kind: KindDenied, Caller: e.Caller, Via: e.Via, Zone: e.Zone, Ceiling: e.Ceiling, Verdict: e.Verdict, Reason: e.Reason,
			Detail: fmt.Sprintf("more than %d different denials within %s; from here on they are only counted", maxDenials, floodWindow)}
		k = floodKey{e.Caller, "", e.Reason, e.Detail}
		if found = f.open[k]; found != nil && now.Before(found.until) {
			found.more++
			return found, true
		}
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

// admit counts an entry of a caller, if it may have another.
func (f *floods) admit(now time.Time, caller CallerName) bool {
	d := f.callers[caller]
	if d == nil || !now.Before(d.until) {
		if f.callers == nil {
			f.callers = make(map[CallerName]*denials)
		}
		d = &denials{until: now.Add(floodWindow)}
		f.callers[caller] = d
	}
	if d.entries >= maxDenials {
		return false
	}
	d.entries++
	return true
}

// count takes one more denial into f. Where it is about other arguments, those of
// the first are not what the count stands for.
func (f *flood) count(e *Entry) {
	f.more++
	if e.ArgumentDigest != f.denial.ArgumentDigest {
		f.denial.ArgumentDigest, f.denial.Arguments = Digest{}, ""
	}
}

// flush hands over the counts of all windows that ended before now, or of all
// when now is zero. It returns when the next one ends.
func (f *floods) flush(now time.Time, enqueue func(*Entry)) (next time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for caller, d := range f.callers {
		if now.IsZero() || !now.Before(d.until) {
			delete(f.callers, caller)
		}
	}
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
