package upstream

import (
	"context"
	"sync"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// A keeper holds the sessions of one server with session = "caller". Whoever
// uses a session is its key, so nobody can be given somebody else's.
type keeper struct {
	client *Client
	lane   *lane

	mu       sync.Mutex // guards what follows and the fields of every kept session
	sessions map[keptKey]*kept
	closed   bool
	watched  bool // a janitor is at work

	wake chan struct{} // has the janitor look again
}

type keptKey struct {
	caller gate.CallerName
	holder string
}

// A kept session is opening until ready is closed; then it is open, or gone.
type kept struct {
	key    keptKey
	ready  chan struct{}
	agreed legacySession
	open   bool
	users  int
	last   time.Time
	over   bool // nobody new may use it; it ends with its last user
}

func newKeeper(c *Client, l *lane) *keeper {
	return &keeper{client: c, lane: l, sessions: map[keptKey]*kept{}, wake: make(chan struct{}, 1)}
}

// session gives the session for a call: a fresh one, or the one that is kept
// for this caller. Done takes it back, with what became of the call.
func (op *operation) session(caller gate.CallerName, holder string) (s legacySession, done func(*fault), f *fault) {
	if op.lane.server.Session == PerCaller {
		s, done, f, ok := op.lane.keeper.take(op, keptKey{caller, holder})
		if ok {
			return s, done, f
		}
	}
	s, _, f = op.handshake()
	return s, func(*fault) { op.part(s) }, f
}

// take joins the session of key or opens it. It reports false when the keeper
// keeps nothing any more.
func (k *keeper) take(op *operation, key keptKey) (legacySession, func(*fault), *fault, bool) {
	for {
		s, mine, f, ok := k.reserve(key)
		if f != nil || !ok {
			return legacySession{}, nil, f, ok
		}
		done := func(f *fault) { k.put(s, f) }
		if mine {
			agreed, _, f := op.handshake()
			k.opened(s, agreed, f)
			if f != nil {
				return legacySession{}, nil, f, true
			}
			return agreed, done, nil, true
		}
		if f := op.await(s.ready); f != nil {
			k.put(s, nil)
			return legacySession{}, nil, f, true
		}
		if k.isOpen(s) {
			op.settled = true
			return s.agreed, done, nil, true
		}
		k.put(s, nil) // whoever was opening it failed; try for ourselves
	}
}

// reserve finds the session of key or makes room for it. Mine says that the
// caller has to open it.
func (k *keeper) reserve(key keptKey) (s *kept, mine bool, f *fault, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, false, nil, false
	}
	if s := k.sessions[key]; s != nil {
		s.users++
		return s, false, nil, true
	}
	if len(k.sessions) >= k.lane.server.MaxSessions && !k.dropOldest() {
		return nil, false, k.full(), true
	}
	s = &kept{key: key, ready: make(chan struct{}), users: 1}
	k.sessions[key] = s
	return s, true, nil, true
}

func (k *keeper) full() *fault {
	return &fault{leg: "initialize", reason: ReasonSessions,
		text: "initialize was not sent: every session that is kept for this server is in use"}
}

// opened settles what became of opening s.
func (k *keeper) opened(s *kept, agreed legacySession, f *fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f != nil {
		s.users--
		k.forget(s)
	} else {
		s.agreed, s.open, s.last = agreed, true, k.client.now()
		k.watch()
	}
	close(s.ready)
}

func (k *keeper) isOpen(s *kept) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return s.open
}

// put takes a session back after a call. A 404 means that the server has
// forgotten it; there is nothing left to end then.
func (k *keeper) put(s *kept, f *fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.users--
	s.last = k.client.now()
	if gone(f) {
		f.reason = ReasonSessionGone
		f.text += "; the kept session and what it held are gone, the next call opens a new one"
		k.forget(s)
		s.open = false
	}
	if s.over && s.users == 0 {
		k.end(s)
	}
}

// gone reports whether a call failed because its session is no more.
func gone(f *fault) bool { return f != nil && f.wire != nil && f.wire.Status == 404 }

// forget lets nobody find s any more. The lock is held.
func (k *keeper) forget(s *kept) {
	if k.sessions[s.key] == s {
		delete(k.sessions, s.key)
	}
}

// retire ends s, at once or with its last user. The lock is held.
func (k *keeper) retire(s *kept) {
	k.forget(s)
	s.over = true
	if s.users == 0 {
		k.end(s)
	}
}

// end sends the DELETE for a session that nobody uses. The lock is held.
func (k *keeper) end(s *kept) {
	if !s.open || s.agreed.id == "" {
		return
	}
	s.open = false
	c, l := k.client, k.lane
	c.errands.run(l.server.Timeout, func(ctx context.Context) {
		session, err := c.options.Credentials.Open(l.server.Auth, credential.Execution(s.key.caller, credential.Secret{}))
		if err != nil {
			c.log.Debug("session not ended", "server", string(l.server.ID), "error", err)
			return
		}
		defer session.Close()
		l.sendDelete(ctx, c.log, s.agreed, session)
	})
}

// dropOldest ends the session that has been idle for longest; false when all
// are in use. The lock is held.
func (k *keeper) dropOldest() bool {
	var oldest *kept
	for _, s := range k.sessions {
		if s.users == 0 && (oldest == nil || s.last.Before(oldest.last)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	k.retire(oldest)
	return true
}

// endHolder ends what is kept for one downstream session.
func (k *keeper) endHolder(holder string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, s := range k.sessions {
		if key.holder == holder {
			k.retire(s)
		}
	}
}

// close ends everything that is kept and keeps nothing more.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, s := range k.sessions {
		k.retire(s)
	}
	select {
	case k.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// watch starts the janitor unless it is at work. The lock is held.
func (k *keeper) watch() {
	if k.watched {
		return
	}
	k.watched = true
	k.client.errands.group.Go(k.janitor) // ends with the last session or the client, which waits for it
}

// janitor ends idle sessions for as long as there are any.
func (k *keeper) janitor() {
	for {
		wait := k.sweep()
		if wait < 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.wake:
			timer.Stop()
		}
	}
}

// sweep ends what has been idle for too long and says when to look again,
// negative when nothing is kept any more.
func (k *keeper) sweep() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, idle := k.client.now(), k.lane.server.SessionIdle
	next := idle
	for _, s := range k.sessions {
		if s.users > 0 {
			continue
		}
		if left := idle - now.Sub(s.last); left > 0 {
			next = min(next, left)
			continue
		}
		k.retire(s)
	}
	if len(k.sessions) == 0 {
		k.watched = false
		return -1
	}
	return next
}

// await waits until ready, within the budget.
func (op *operation) await(ready <-chan struct{}) *fault {
	timer := time.NewTimer(op.left())
	defer timer.Stop()
	select {
	case <-ready:
		return nil
	case <-op.ctx.Done():
		return op.gaveUp("initialize", false)
	case <-timer.C:
		return op.exhausted("tools/call", false, "")
	}
}
