package ledger

import (
	"fmt"
	"runtime"
	"time"

	"gatehouse/gate"
)

const (
	// lagLimit is how long a written entry stays without a sync when nothing
	// else asks for one.
	lagLimit = 200 * time.Millisecond
	// retryEvery is how often a ledger that cannot be written is tried again.
	retryEvery = time.Second
	// batchLimit bounds what shares one commit, and so how long it takes.
	batchLimit = 4096
)

// run is the writer. It ends after Close, when all that can be written is.
func (l *Ledger) run() {
	defer close(l.done)
	defer l.closeFiles()
	timer := time.NewTimer(retryEvery)
	defer timer.Stop()
	for {
		// Whoever is about to hand something over goes first: on a busy machine a
		// commit so takes more along, on an idle one this is nothing.
		runtime.Gosched()
		batch, closed := l.take()
		switch {
		case len(batch) > 0:
			l.commit(batch, false)
			l.maintain()
		case closed:
			if len(l.lagging)+len(l.backlog) > 0 {
				l.commit(nil, true)
			}
			l.sign()
			l.trim()
			if n := len(l.backlog); n > 0 {
				l.log.Error("ledger: closed while it could not be written; outcomes will be unknown", "entries", n)
			}
			return
		default:
			l.wait(timer)
		}
	}
}

// wait returns when there is something to do, and does what is due without being asked.
func (l *Ledger) wait(timer *time.Timer) {
	var due <-chan time.Time
	switch {
	case l.Health() != nil:
		timer.Reset(retryEvery)
		due = timer.C
	case len(l.lagging) > 0:
		timer.Reset(lagLimit)
		due = timer.C
	}
	select {
	case <-l.wake:
	case <-due:
		l.commit(nil, true)
	}
}

func (l *Ledger) take() (batch []*request, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), batchLimit)
	batch = append(batch, l.queue[:n]...)
	clear(l.queue[:n])
	if l.queue = l.queue[n:]; len(l.queue) == 0 {
		l.queue = nil
	}
	for _, r := range batch {
		r.taken = true
	}
	return batch, l.closed
}

// commit writes the backlog and batch, in that order, and syncs if anybody waits
// for it or force is set. Either all of it is in the file afterwards or none.
func (l *Ledger) commit(batch []*request, force bool) {
	all := append(l.backlog, batch...)
	l.backlog = nil
	if recovery := l.recovery(); recovery != nil {
		all, force = append([]*request{recovery}, all...), true
	}
	began := time.Now()
	err := l.repair()
	if err == nil {
		err = l.write(all)
	}
	for _, r := range all {
		force = force || r.done != nil && r.err == nil
	}
	if err == nil && force {
		err = l.flush()
	}
	if err != nil {
		l.fail(all, err)
		return
	}
	l.well()
	for _, r := range all {
		if !force && r.done == nil {
			l.lagging = append(l.lagging, r)
		}
	}
	took := time.Since(began)
	l.answer(all)
	l.tell(all, took, force)
}

// recovery is the entry that says, once the ledger can be written again, that it
// could not be. Trying to write it is also how that is found out.
func (l *Ledger) recovery() *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sick == nil {
		return nil
	}
	return &request{entries: []gate.Entry{{
		Kind: gate.KindCheckpoint, Reason: string(gate.LedgerUnavailable),
		Detail: fmt.Sprintf("the ledger could not be written since %s: %v", l.sick.since.UTC().Format(time.RFC3339), l.sick.cause),
	}}, probe: true}
}

// repair cuts off what a failed commit may have left in the file.
func (l *Ledger) repair() error {
	if !l.torn {
		return nil
	}
	if err := l.file.Truncate(l.at.size); err != nil {
		return err
	}
	l.room, l.torn = l.at.size, false
	return nil
}

// write puts requests into the file. A request that uses an approval that cannot
// be used is left out and has its error set.
func (l *Ledger) write(requests []*request) error {
	l.buf = l.buf[:0]
	next, now := l.at, l.now().UTC().Truncate(time.Microsecond)
	for _, r := range requests {
		if r.err = l.spend(r, next.number, now); r.err != nil {
			continue
		}
		for i := range r.entries {
			e := &r.entries[i]
			if next.number++; e.Time.IsZero() {
				e.Time = now
			}
			e.Number = next.number
			l.buf, next.hash = appendLine(l.buf, e, next.hash)
		}
	}
	if len(l.buf) == 0 {
		return nil
	}
	if l.segmentFirst.IsZero() {
		l.segmentFirst = now
	}
	next.size += int64(len(l.buf))
	if next.size > l.room {
		l.extend(next.size, now)
	}
	if _, err := l.put(l.file, l.buf, l.at.size); err != nil {
		return err
	}
	l.room = max(l.room, next.size)
	l.at = next
	if cap(l.buf) > 4<<20 {
		l.buf = nil
	}
	return nil
}

// spend notes what r asks, answers and uses, all of it or none. last is the
// number before its first entry.
func (l *Ledger) spend(r *request, last uint64, now time.Time) error {
	from := len(l.questions.undo)
	for i := range r.entries {
		if !l.questions.take(&r.entries[i], last+uint64(i)+1, now) {
			l.questions.rollback(from)
			return gate.ErrSpent
		}
	}
	return nil
}

// flush makes everything in the file durable.
func (l *Ledger) flush() error {
	if l.at == l.synced {
		return nil
	}
	if err := l.sync(l.file); err != nil {
		return err
	}
	l.synced, l.lagging = l.at, nil
	l.questions.settle()
	// The head only helps to notice a loss. It needs no sync of its own: it must
	// never be ahead of the entries, and may be behind.
	var text [96]byte
	if _, err := l.head.WriteAt(appendHead(text[:0], head{l.at.number, l.at.hash}), 0); err != nil {
		l.log.Warn("ledger: the head cannot be written", "error", err)
	}
	return nil
}

// fail goes back to the last durable entry. After a failed sync nobody knows what
// of the file the disk has, so nothing that was written since counts: what may
// lag is written again, whoever waits is told.
func (l *Ledger) fail(requests []*request, err error) {
	l.at, l.torn = l.synced, true
	l.questions.rollback(0)
	if repair := l.repair(); repair != nil {
		l.log.Error("ledger: a failed write cannot be cut off yet", "error", repair)
	}
	l.backlog = append(l.backlog, l.lagging...)
	l.lagging = nil
	for _, r := range requests {
		switch {
		case r.done != nil:
			if r.err == nil {
				r.err = fmt.Errorf("ledger: %w", err)
			}
			r.done <- r.err
		case !r.probe:
			l.backlog = append(l.backlog, r)
		}
	}
	l.mu.Lock()
	first := l.sick == nil
	if first {
		l.sick = &sickness{since: l.now(), cause: err}
	}
	l.sick.cause = err
	l.mu.Unlock()
	if first {
		l.log.Error("ledger: not writable; no call is let through", "error", err)
	}
}

func (l *Ledger) well() {
	l.mu.Lock()
	before := l.sick
	l.sick = nil
	l.mu.Unlock()
	if before != nil {
		l.log.Info("ledger: writable again", "since", before.since)
	}
}

// answer tells whoever waits. For who gave up meanwhile, the intent is settled:
// nobody has a permit for it.
func (l *Ledger) answer(requests []*request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range requests {
		if r.done == nil {
			continue
		}
		r.done <- r.err
		if !r.abandoned || r.err != nil {
			continue
		}
		for _, e := range r.entries {
			if e.Kind == gate.KindIntent {
				l.queue = append(l.queue, &request{entries: []gate.Entry{{
					Kind: gate.KindOutcome, Verdict: gate.NotSent, Reason: string(gate.LedgerUnavailable),
					Detail: "the intent was on record too late for a permit",
					Intent: e.Number, Approval: e.Approval, Caller: e.Caller, Request: e.Request, Tool: e.Tool,
					Server: e.Server, Origin: e.Origin, RemoteName: e.RemoteName, Trace: e.Trace,
				}}})
			}
		}
	}
}
