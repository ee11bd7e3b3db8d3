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
	now func() time.Time

	mu      sync.Mutex
	sources map[string]*source
}

type source struct {
	since   time.Time // start of the second that is being counted
	seen    int
	skipped int // not recorded yet
}

func newAuthFailures(now func() time.Time) *authFailures {
	return &authFailures{now: now, sources: map[string]*source{}}
}

// note counts one refused token and calls record when it, with those that were
// only counted before it, is to be recorded. It reports false when the address
// has used up its share.
func (f *authFailures) note(r *http.Request, record func(count int)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, host := f.now(), remoteHost(r)
	s := f.sources[host]
	if s == nil {
		if len(f.sources) >= failureSources {
			f.forget(now)
		}
		if len(f.sources) >= failureSources {
			host = "" // more addresses than we tell apart: they share one account
			if s = f.sources[host]; s == nil {
				s = &source{since: now}
			}
		} else {
			s = &source{since: now}
		}
		f.sources[host] = s
	}
	if now.Sub(s.since) >= time.Second {
		s.since, s.seen = now, 0
	}
	s.seen++
	if s.seen > failureBurst {
		s.skipped++
		return false
	}
	record(s.skipped + 1)
	s.skipped = 0
	return true
}

// forget drops the addresses that have been quiet. mu is held.
func (f *authFailures) forget(now time.Time) {
	for host, s := range f.sources {
		if now.Sub(s.since) > time.Minute {
			delete(f.sources, host)
		}
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
