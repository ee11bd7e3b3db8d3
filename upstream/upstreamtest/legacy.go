package upstreamtest

import (
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
)

// A session is what a 2025 server keeps between requests.
type session struct {
	version string
	mu      sync.Mutex
	place   string // where the navigate tool went
}

func (s *session) move(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.place = place
}

func (s *session) where() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}

// legacyVersions are what initialize grants when it is asked for them.
var legacyVersions = []string{LegacyVersion, "2025-06-18", "2025-03-26", "2024-11-05"}

// Sessions counts the sessions that are open.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Issued counts the sessions that were ever opened.
func (s *Server) Issued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
}

// EndSessions forgets every session, as a server does that was restarted.
func (s *Server) EndSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

func (s *Server) answerLegacy(x *Exchange) {
	switch {
	case x.HTTPMethod == http.MethodDelete:
		s.endSession(x)
		return
	case x.HTTPMethod != http.MethodPost || x.Method == "":
		x.Writer.Header().Set("Allow", "POST, DELETE")
		x.Raw(http.StatusMethodNotAllowed, "text/plain", "POST or DELETE")
		return
	case x.Method == "initialize":
		s.initialize(x)
		return
	}
	state, ok := s.session(x)
	if !ok {
		return
	}
	got := x.Header.Get("Mcp-Protocol-Version")
	if state != nil && got != state.version || got != "" && !slices.Contains(legacyVersions, got) {
		x.Raw(http.StatusBadRequest, "text/plain", "wrong or missing MCP-Protocol-Version")
		return
	}
	switch {
	case x.ID == nil:
		x.Accept()
	case x.Method == "ping":
		x.Result(`{}`)
	case x.Method == "tools/list":
		s.list(x, "")
	case x.Method == "tools/call":
		x.state = state
		s.call(x)
	default:
		x.Error(http.StatusOK, -32601, "method not found")
	}
}

func (s *Server) initialize(x *Exchange) {
	if x.Header.Get("Mcp-Protocol-Version") != "" || x.Header.Get("Mcp-Session-Id") != "" {
		x.Raw(http.StatusBadRequest, "text/plain", "initialize comes before version and session")
		return
	}
	version := s.Version
	if version == "" {
		version = x.Text("protocolVersion")
		if !slices.Contains(legacyVersions, version) {
			version = LegacyVersion
		}
	}
	if s.Profile.Sessions {
		id := "vs." + rand.Text()
		s.mu.Lock()
		if s.sessions == nil {
			s.sessions = map[string]*session{}
		}
		s.sessions[id] = &session{version: version}
		s.issued++
		s.mu.Unlock()
		x.Writer.Header().Set("Mcp-Session-Id", id)
	}
	x.Result(`{"protocolVersion":` + quote(version) + `,"capabilities":{"tools":{}},` +
		`"serverInfo":{"name":"played","version":"1.0"}}`)
}

// session finds the request's session. Without sessions there is none, which
// is fine; with them a request needs a living one.
func (s *Server) session(x *Exchange) (*session, bool) {
	if !s.Profile.Sessions {
		return nil, true
	}
	id := x.Header.Get("Mcp-Session-Id")
	if id == "" {
		x.Raw(http.StatusBadRequest, "application/json",
			`{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"},"id":null}`)
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.sessions[id]
	if !ok {
		x.Raw(http.StatusNotFound, "application/json",
			`{"jsonrpc":"2.0","error":{"code":-32001,"message":"session not found"},"id":null}`)
	}
	return state, ok
}

func (s *Server) endSession(x *Exchange) {
	if !s.Profile.Sessions {
		x.Raw(http.StatusMethodNotAllowed, "text/plain", "there are no sessions")
		return
	}
	if _, ok := s.session(x); !ok {
		return
	}
	s.mu.Lock()
	delete(s.sessions, x.Header.Get("Mcp-Session-Id"))
	s.mu.Unlock()
	x.Writer.WriteHeader(http.StatusNoContent)
}
