package upstream

import (
	"fmt"
	"reflect"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// The eras, spelled as the protocol key of a server's table and as the Store
// keeps them.
const (
	Auto   = "auto"       // find out, and remember
	Legacy = "2025-11-25" // initialize first
	Modern = "2026-07-28" // every request describes itself
)

// The values of a server's session key.
const (
	PerOperation = "operation" // a fresh session for each operation
	PerCaller    = "caller"    // a session kept for each caller
)

const (
	defaultTimeout     = 20 * time.Second
	defaultSessionIdle = 10 * time.Minute
	defaultMaxSessions = 64
)

// A Server is one upstream, as its [[server]] table declares it. Fields left
// zero get the defaults named here; there is no way to ask for no limit.
type Server struct {
	ID          gate.ServerID
	Name        string
	URL         string
	Timeout     time.Duration // one budget for all requests of an operation; 0: 20 s
	Protocol    string        // Auto, Legacy or Modern; "" is Auto
	Session     string        // PerOperation or PerCaller; "" is PerOperation
	SessionIdle time.Duration // when a kept session ends unused; 0: 10 minutes
	MaxSessions int           // kept sessions at once; 0: 64
	MaxResponse int64         // bytes of one reply after decompression; 0: 2 MiB
	Auth        credential.Auth
	TLS         wire.TLSOptions
	Network     *wire.Network // the host gate to pass; nil: that of the Client's options
}

// withDefaults fills what was left zero and refuses what makes no sense.
func (s Server) withDefaults() (Server, error) {
	if s.ID == "" {
		return s, fmt.Errorf("server %q: no id is given", s.Name)
	}
	if s.Timeout < 0 || s.SessionIdle < 0 || s.MaxSessions < 0 || s.MaxResponse < 0 {
		return s, fmt.Errorf("server %q: a limit is negative", s.ID)
	}
	if s.Timeout == 0 {
		s.Timeout = defaultTimeout
	}
	if s.SessionIdle == 0 {
		s.SessionIdle = defaultSessionIdle
	}
	if s.MaxSessions == 0 {
		s.MaxSessions = defaultMaxSessions
	}
	switch s.Protocol {
	case "":
		s.Protocol = Auto
	case Auto, Legacy, Modern:
	default:
		return s, fmt.Errorf("server %q: unknown protocol %q (want %q, %q or %q)", s.ID, s.Protocol, Auto, Legacy, Modern)
	}
	switch s.Session {
	case "":
		s.Session = PerOperation
	case PerOperation, PerCaller:
	default:
		return s, fmt.Errorf("server %q: unknown session %q (want %q or %q)", s.ID, s.Session, PerOperation, PerCaller)
	}
	return s, nil
}

// same reports whether s and t mean the same upstream, reached in the same way,
// so that sessions and connections may live on across a reload. Another host
// gate is another way: what it no longer allows must not stay connected.
func (s Server) same(t Server) bool {
	if s.Network != t.Network {
		return false
	}
	s.Network, t.Network = nil, nil
	return reflect.DeepEqual(s, t)
}
