package federation

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds on refused tokens: this many a second of one address are answered and
// recorded one by one, the rest is counted; this many addresses are told apart.
const (
	failureBurst   = 10
	failureSources = 1024
)

// authFailures counts refused tokens per address, so that guessing is slow and
// a flood of guesses is one entry a second and not one fsync each.
type authFailures struct {
	now    func() time.Time
	record func(host, reason string, count int)

	mu      sync.Mutex
	sources map[string]*source
}

type source struct {
	since   time.Time // start of the second that is being counted
	seen    int
	skipped int    // not recorded yet
	reason  string // of the last of those
}

func newAuthFailures(now func() time.Time, record func(host, reason string, count int)) *authFailures {
	return &authFailures{now: now, record: record, sources: map[string]*source{}}
}

// note counts one refused token and records it, together with those that were
// only counted before it. It reports false when the address has used up its
// share, and counts on.
func (f *authFailures) note(r *http.Request, reason string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	host, s := f.source(remoteHost(r), now)
	if now.Sub(s.since) >= time.Second {
		s.since, s.seen = now, 0
	}
	if s.seen++; s.seen > failureBurst {
		s.skipped, s.reason = s.skipped+1, reason
		return false
	}
	f.record(host, reason, s.skipped+1)
	s.skipped = 0
	return true
}

// exhausted reports whether the next refusal of an address would be too many for
// this second.
func (f *authFailures) exhausted(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	_, s := f.source(remoteHost(r), now)
	return s.seen >= failureBurst && now.Sub(s.since) < time.Second
}

// source finds the account of an address. Addresses beyond those that are told
// apart share one. mu is held.
func (f *authFailures) source(host string, now time.Time) (string, *source) {
	if f.sources[host] == nil && len(f.sources) >= failureSources {
		f.forget(now)
		if len(f.sources) >= failureSources {
			host = "many addresses"
		}
	}
	s := f.sources[host]
	if s == nil {
		s = &source{since: now}
		f.sources[host] = s
	}
	return host, s
}

// flush records what was counted and is over, so that a flood that ended is on
// record without another refusal.
func (f *authFailures) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(f.now())
	for host, s := range f.sources {
		f.settle(host, s)
	}
}

// forget drops the addresses that have been quiet. mu is held.
func (f *authFailures) forget(now time.Time) {
	for host, s := range f.sources {
		if now.Sub(s.since) > time.Minute {
			f.settle(host, s)
			delete(f.sources, host)
		}
	}
}

// settle records what was only counted. mu is held.
func (f *authFailures) settle(host string, s *source) {
	if s.skipped > 0 {
		f.record(host, s.reason, s.skipped)
		s.skipped = 0
	}
}

// remoteHost is the peer's address. Forwarding headers are not believed: anybody
// can write them.
func remoteHost(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
