package console

import (
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"gatehouse/federation"
	"gatehouse/gate"
)

const (
	cookieName = "gatehouse_console"
	// idleLimit ends a session that nobody used, lifeLimit every one.
	idleLimit = 30 * time.Minute
	lifeLimit = 12 * time.Hour
	// maxSessions bounds what is kept; the one unused for longest gives way.
	maxSessions = 256
)

// A notice is what came of a form, shown once.
type notice struct {
	Good bool
	Text string
}

// A session is one administrator's at one browser.
type session struct {
	person *federation.Person
	begun  time.Time

	mu      sync.Mutex // guards what follows
	used    time.Time
	notice  *notice
	reports map[string]*report // what tests and imports found, by server
	streams int                // open ones, of pages that are kept up to date
}

// stream counts one more stream, and reports false when there are too many.
func (s *session) stream() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams >= maxStreams {
		return false
	}
	s.streams++
	return true
}

func (s *session) streamEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}

func (s *session) tell(n notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = &n
}

// told takes the notice.
func (s *session) told() *notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.notice
	s.notice = nil
	return n
}

// keep holds on to a report of a server until the next one.
func (s *session) keep(server string, r *report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reports == nil {
		s.reports = map[string]*report{}
	}
	s.reports[server] = r
}

func (s *session) report(server string) *report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reports[server]
}

// live reports whether the session is still good, and with touch starts its
// idle time anew.
func (s *session) live(now time.Time, touch bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.used) >= idleLimit || now.Sub(s.begun) >= lifeLimit {
		return false
	}
	if touch {
		s.used = now
	}
	return true
}

func (s *session) lastUse() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// sessions are the open ones, by the digest of their id: who reads this
// process's memory finds no id that a browser could send.
type sessions struct {
	now func() time.Time

	mu   sync.Mutex
	open map[gate.Digest]*session
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, open: map[gate.Digest]*session{}}
}

// begin opens a session and returns its id, which is kept nowhere here.
func (all *sessions) begin(p *federation.Person) (id string) {
	id = rand.Text() + rand.Text()
	now := all.now()
	all.mu.Lock()
	defer all.mu.Unlock()
	var oldest gate.Digest
	for key, s := range all.open {
		if !s.live(now, false) {
			delete(all.open, key)
		} else if other := all.open[oldest]; other == nil || s.lastUse().Before(other.lastUse()) {
			oldest = key
		}
	}
	if len(all.open) >= maxSessions {
		delete(all.open, oldest)
	}
	all.open[gate.DigestOf([]byte(id))] = &session{person: p, begun: now, used: now}
	return id
}

// find returns the session of an id, nil when it is over.
func (all *sessions) find(id string, touch bool) *session {
	key := gate.DigestOf([]byte(id))
	all.mu.Lock()
	s := all.open[key]
	all.mu.Unlock()
	if s == nil {
		return nil
	}
	if !s.live(all.now(), touch) {
		all.end(id)
		return nil
	}
	return s
}

func (all *sessions) end(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.open, gate.DigestOf([]byte(id)))
}

// sessionOf returns r's session and the administrator it belongs to, as the
// configuration in force knows them; nil when there is none.
func (c *Console) sessionOf(r *http.Request, touch bool) (*session, *gate.Caller) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil, nil
	}
	s := c.sessions.find(cookie.Value, touch)
	if s == nil {
		return nil, nil
	}
	who := c.g.Administrator(s.person)
	if who == nil {
		c.sessions.end(cookie.Value)
		return nil, nil
	}
	return s, who
}
