package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"gatehouse/gate"
)

// ErrClosed says that the ledger was closed before the entry was handed over.
var ErrClosed = errors.New("ledger: closed")

// A Ledger is the one writer of a directory. It is safe for concurrent use.
type Ledger struct {
	dir          string
	sync         func(*os.File) error
	now          func() time.Time
	retention    time.Duration
	log          *slog.Logger
	segmentBytes int64
	signer       ed25519.PrivateKey
	lock         *os.File
	observe      func(Commit)
	put          func(f *os.File, b []byte, at int64) (int, error) // WriteAt, but for tests

	wake chan struct{} // holds one, when there may be something to do
	done chan struct{} // closed when the writer has ended

	mu     sync.Mutex // guards what follows, down to the blank line
	queue  []*request
	closed bool
	sick   *sickness // why nothing can be written, nil when all is well

	// The rest belongs to the writer alone.
	file, head   *os.File
	path         string
	segmentFirst time.Time  // time of the segment's first entry, zero while it is empty
	at           point      // after the last entry in the file
	room         int64      // how far the file is laid out
	cramped      time.Time  // until when no room is tried for
	synced       point      // after the last entry that is durable
	torn         bool       // the file may be longer than at.size
	lagging      []*request // written and not yet synced, in order
	backlog      []*request // to be written once that is possible again
	questions    questions
	buf          []byte
	pruned       time.Time
	signed       time.Time // when, and up to where, with the checkpoint itself
	signedUpTo   uint64
}

// A point is a place in the chain: where the file ends, and the last entry.
type point struct {
	size   int64
	number uint64
	hash   gate.Digest
}

type sickness struct {
	since time.Time
	cause error
}

// A request is entries that are written together. They are copies: whoever
// handed them over may be gone before they are written.
type request struct {
	entries []gate.Entry
	done    chan error // receives once; nil for entries that may lag
	err     error      // owned by the writer until it is sent
	probe   bool       // not tried again: made anew with every try

	// guarded by Ledger.mu
	taken     bool // by the writer
	abandoned bool // nobody waits any more
}

// Append implements gate.Ledger. When ctx ends while the entries are being
// written, it returns an error although they may become durable; an intent among
// them is then settled as not sent. A crash while they are written may leave the
// first of them: then nobody was told that they are there, and an approval among
// them counts as used.
func (l *Ledger) Append(ctx context.Context, entries ...*gate.Entry) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ledger: nothing was written: %w", err)
	}
	r := &request{entries: make([]gate.Entry, len(entries)), done: make(chan error, 1)}
	for i, e := range entries {
		r.entries[i] = *e
	}
	if !l.submit(r) {
		return ErrClosed
	}
	if err := l.await(ctx, r); err != nil {
		return err
	}
	for i := range entries {
		entries[i].Number, entries[i].Time = r.entries[i].Number, r.entries[i].Time
	}
	return nil
}

// await returns how r ended, or that ctx ended first.
func (l *Ledger) await(ctx context.Context, r *request) error {
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
	}
	if !l.abandon(r) {
		return fmt.Errorf("ledger: nothing was written: %w", ctx.Err())
	}
	select {
	case err := <-r.done: // in the same moment
		return err
	default:
		return fmt.Errorf("ledger: the disk did not answer in time: %w", ctx.Err())
	}
}

// Enqueue implements gate.Ledger. The entry is written at once, and is durable
// with the next one that somebody waits for, or a moment later.
func (l *Ledger) Enqueue(entry *gate.Entry) {
	if !l.submit(&request{entries: []gate.Entry{*entry}}) {
		l.log.Error("ledger: an entry came after the end and is lost", "kind", entry.Kind, "intent", entry.Intent)
	}
}

func (l *Ledger) submit(r *request) bool {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.queue = append(l.queue, r)
	}
	l.mu.Unlock()
	if !closed {
		l.rouse()
	}
	return !closed
}

func (l *Ledger) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// abandon gives up waiting for r. It reports whether r may be written all the same.
func (l *Ledger) abandon(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.abandoned = true
	if !r.taken {
		l.queue = slices.DeleteFunc(l.queue, func(q *request) bool { return q == r })
	}
	return r.taken
}

// Health is nil while entries can be written, and says why they cannot.
func (l *Ledger) Health() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sick == nil {
		return nil
	}
	return fmt.Errorf("ledger: not writable since %s: %w", l.sick.since.UTC().Format(time.RFC3339), l.sick.cause)
}

// Close writes what was handed over, makes it durable and gives the directory
// back. When ctx ends first, Close returns and the writer goes on by itself.
func (l *Ledger) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.rouse()
	select {
	case <-l.done:
		return l.Health()
	case <-ctx.Done():
		return fmt.Errorf("ledger: still writing: %w", ctx.Err())
	}
}
