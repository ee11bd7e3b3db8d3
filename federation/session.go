package federation

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/gate"
)

// Bounds on legacy sessions. Nearly all clients leave without a DELETE, so what
// is not used goes away by itself, and nobody's sessions can crowd out another's.
const (
	sessionIdle       = 30 * time.Minute
	maxSessions       = 10_000
	maxCallerSessions = 2_500
)

// errBusy says that no session can be opened because all are at work.
var errBusy = errors.New("too many open sessions")

// A session is one legacy caller's, from initialize to DELETE or silence. It
// belongs to the caller who opened it; to anybody else it does not exist.
type session struct {
	id      string
	label   string // for the record: one-way, so that a reader of it cannot join
	caller  gate.CallerName
	version string
	elicits bool // declared form elicitation in a revision that has it

	began time.Time
	used  atomic.Int64 // unix nanoseconds of the monotonic clock's start plus elapsed
	calls atomic.Int32 // in flight; a session with one is never reaped

	ctx context.Context
	end context.CancelFunc

	mu      sync.Mutex
	asked   map[string]chan []byte        // questions out, by our request id
	running map[string]context.CancelFunc // calls in flight, by the caller's raw request id
	stream  *notices                      // the newest GET stream
}

// age is how long the session has been open.
func (s *session) age() time.Duration { return time.Since(s.began) }

// sessions is the table of all of them.
type sessions struct {
	ctx   context.Context // ends them all
	began time.Time
	ended func(*session) // told once for every session that ends

	byID sync.Map // string -> *session; reads take no lock

	mu       sync.Mutex
	total    int
	byCaller map[gate.CallerName]int
}

func newSessions(ctx context.Context, ended func(*session)) *sessions {
	return &sessions{ctx: ctx, began: time.Now(), ended: ended, byCaller: map[gate.CallerName]int{}}
}

// now is monotonic: setting the clock neither ends nor prolongs a session.
func (s *sessions) now() int64 { return int64(time.Since(s.began)) }

// open makes a session. At the caller's cap their own longest idle session makes
// room, at the cap of all the longest idle one of whoever holds most, so that
// nobody can crowd out another; errBusy when all of those are at work.
func (s *sessions) open(caller gate.CallerName, version string, elicits bool) (*session, error) {
	s.mu.Lock()
	for s.byCaller[caller] >= maxCallerSessions || s.total >= maxSessions {
		holder := caller
		if s.byCaller[caller] < maxCallerSessions {
			holder = s.largest()
		}
		victim := s.idlest(holder)
		if victim == nil {
			s.mu.Unlock()
			return nil, errBusy
		}
		s.drop(victim)
	}
	n := &session{id: unguessable(), caller: caller, version: version, elicits: elicits, began: time.Now()}
	n.label = label(n.id)
	n.ctx, n.end = context.WithCancel(s.ctx)
	n.used.Store(s.now())
	s.total++
	s.byCaller[caller]++
	s.byID.Store(n.id, n)
	s.mu.Unlock()
	return n, nil
}

// find returns the session of that id if it belongs to caller, and marks it used.
func (s *sessions) find(id string, caller gate.CallerName) *session {
	value, ok := s.byID.Load(id)
	if !ok {
		return nil
	}
	n := value.(*session)
	if n.caller != caller {
		return nil
	}
	n.used.Store(s.now())
	return n
}

// close ends a session; its questions are lost and its calls cancelled.
func (s *sessions) close(n *session) {
	s.mu.Lock()
	s.drop(n)
	s.mu.Unlock()
}

// drop takes n out of the table. mu is held.
func (s *sessions) drop(n *session) {
	if _, present := s.byID.LoadAndDelete(n.id); !present {
		return
	}
	s.total--
	if s.byCaller[n.caller]--; s.byCaller[n.caller] == 0 {
		delete(s.byCaller, n.caller)
	}
	n.end()
	s.ended(n)
}

// largest is the caller with the most sessions. mu is held.
func (s *sessions) largest() (holder gate.CallerName) {
	for name, n := range s.byCaller {
		if n > s.byCaller[holder] || n == s.byCaller[holder] && name < holder {
			holder = name
		}
	}
	return holder
}

// idlest finds the session of caller that has been idle for longest. mu is held.
func (s *sessions) idlest(caller gate.CallerName) *session {
	var found *session
	for n := range s.all() {
		if n.caller == caller && n.calls.Load() == 0 && (found == nil || n.used.Load() < found.used.Load()) {
			found = n
		}
	}
	return found
}

// reap ends what has been idle for too long.
func (s *sessions) reap() {
	oldest := s.now() - int64(sessionIdle)
	for n := range s.all() {
		if n.used.Load() < oldest && n.calls.Load() == 0 && !n.listening() {
			s.close(n)
		}
	}
}

func (s *sessions) all() func(func(*session) bool) {
	return func(yield func(*session) bool) {
		s.byID.Range(func(_, value any) bool { return yield(value.(*session)) })
	}
}

func (n *session) listening() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stream != nil
}

// begin registers a call in flight so that the caller can cancel it by its
// request id. It reports false when that id is in use already.
func (n *session) begin(id []byte, cancel context.CancelFunc) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, twice := n.running[string(id)]; twice {
		return false
	}
	if n.running == nil {
		n.running = map[string]context.CancelFunc{}
	}
	n.running[string(id)] = cancel
	n.calls.Add(1)
	return true
}

func (n *session) finish(id []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.running, string(id))
	n.calls.Add(-1)
}

// cancel stops the call with that request id, if there is one.
func (n *session) cancel(id []byte) {
	n.mu.Lock()
	stop := n.running[string(id)]
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// ask registers a question under an id that nobody can guess. Its answer
// arrives once on the channel.
func (n *session) ask() (id string, answer chan []byte) {
	id, answer = "q-"+unguessable(), make(chan []byte, 1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked == nil {
		n.asked = map[string]chan []byte{}
	}
	n.asked[id] = answer
	return id, answer
}

// forget ends the wait for an answer; one that arrives later finds nobody.
func (n *session) forget(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.asked, id)
}

// deliver hands the body of a response to whoever asked. The first answer wins;
// it reports false when nobody waits for that id.
func (n *session) deliver(id string, body []byte) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer, ok := n.asked[id]
	if ok {
		delete(n.asked, id)
		answer <- body
	}
	return ok
}

// unguessable is 192 random bits as visible ASCII.
func unguessable() string {
	var b [24]byte
	rand.Read(b[:]) // never fails: it ends the process instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// label stands for a session id in the ledger and in logs.
func label(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
