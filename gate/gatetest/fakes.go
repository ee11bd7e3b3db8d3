package gatetest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"gatehouse/gate"
)

// A Ledger keeps entries in memory. The zero value is ready to use.
type Ledger struct {
	mu      sync.Mutex
	entries []gate.Entry
	open    map[uint64]bool // questions, and whether the answer was yes
	fail    error

	// Now is the clock of the entries; nil means time.Now.
	Now func() time.Time
}

var _ gate.Ledger = (*Ledger)(nil)

// Append implements gate.Ledger.
func (l *Ledger) Append(ctx context.Context, entries ...*gate.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.fail != nil {
		return l.fail
	}
	if l.open == nil {
		l.open = make(map[uint64]bool)
	}
	open := maps.Clone(l.open)
	for i, e := range entries {
		if !take(open, e, uint64(len(l.entries)+i)+1) {
			return gate.ErrSpent
		}
	}
	for _, e := range entries {
		l.add(e)
	}
	return nil
}

// Enqueue implements gate.Ledger.
func (l *Ledger) Enqueue(entry *gate.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := *entry
	l.add(&e)
}

func (l *Ledger) add(e *gate.Entry) {
	e.Number = uint64(len(l.entries)) + 1
	if e.Time.IsZero() {
		now := time.Now
		if l.Now != nil {
			now = l.Now
		}
		e.Time = now().UTC().Truncate(time.Microsecond)
	}
	if l.open == nil {
		l.open = make(map[uint64]bool)
	}
	take(l.open, e, e.Number)
	l.entries = append(l.entries, *e)
}

// take notes what an entry does to a question; false when it may not.
func take(open map[uint64]bool, e *gate.Entry, number uint64) bool {
	agreed, asked := open[e.Approval]
	switch {
	case e.Kind == gate.KindQuestion:
		open[number] = false
	case e.Approval == 0:
	case e.Kind == gate.KindAnswer && e.Verdict == "":
		if !asked || agreed {
			return false
		}
		open[e.Approval] = true
	case e.Kind == gate.KindAnswer:
		if !asked || agreed {
			return false
		}
		delete(open, e.Approval)
	case e.Kind == gate.KindIntent:
		if !agreed {
			return false
		}
		delete(open, e.Approval)
	}
	return true
}

// Entries returns a copy of everything that is on record.
func (l *Ledger) Entries() []gate.Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Last returns the newest entry of a kind, or the zero entry.
func (l *Ledger) Last(kind gate.Kind) gate.Entry {
	for _, e := range slices.Backward(l.Entries()) {
		if e.Kind == kind {
			return e
		}
	}
	return gate.Entry{}
}

// Fail makes every Append return err, until it is nil again.
func (l *Ledger) Fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// A Clock stands still until it is advanced. It starts at the zero value's time.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock at a fixed moment.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
}

// Now is the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Keys is a key ring with made-up keys.
type Keys struct {
	mu   sync.Mutex
	keys map[uint32][32]byte
	last uint32
}

// NewKeys returns a ring with one key, which seed tells apart from others.
func NewKeys(seed byte) *Keys {
	k := &Keys{keys: make(map[uint32][32]byte)}
	k.last = uint32(seed) << 8
	k.Rotate()
	return k
}

// Current implements gate.KeyRing.
func (k *Keys) Current() (uint32, [32]byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last, k.keys[k.last]
}

// Key implements gate.KeyRing.
func (k *Keys) Key(id uint32) ([32]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, ok := k.keys[id]
	return key, ok
}

// Rotate adds a new current key; the others stay in the ring.
func (k *Keys) Rotate() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last++
	k.keys[k.last] = gate.DigestOf([]byte{byte(k.last >> 8), byte(k.last)})
}

// Drop takes all keys but the current one out of the ring.
func (k *Keys) Drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys = map[uint32][32]byte{k.last: k.keys[k.last]}
}

// Trust adds the keys of another ring, as replicas share theirs.
func (k *Keys) Trust(other *Keys) {
	id, key := other.Current()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys[id] = key
}

// A Snapshot is a catalogue in memory.
type Snapshot map[gate.LocalName]*gate.Tool

// NewSnapshot returns the snapshot of some tools.
func NewSnapshot(tools ...*gate.Tool) Snapshot {
	s := make(Snapshot, len(tools))
	for _, t := range tools {
		s[t.Name] = t
	}
	return s
}

// Tool implements gate.Snapshot.
func (s Snapshot) Tool(name gate.LocalName) *gate.Tool { return s[name] }

// Generation implements gate.Snapshot.
func (s Snapshot) Generation() uint64 { return 1 }
