package authserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// Settings is what a test may change at any time, see Server.Configure.
type Settings struct {
	Life            time.Duration    // of access tokens; an hour when zero
	NoRefreshTokens bool             // logins get an access token only
	Now             func() time.Time // nil: time.Now

	// Metadata changes what discovery says. Like Answer and Document it runs
	// inside the server and must not call it.
	Metadata func(m map[string]any)
	// Answer changes what the browser brings back from the person.
	Answer func(q url.Values)
	// Person changes what an ID token says of whoever signed in.
	Person func(claims Claims)
	// Token answers a token request in the server's stead when it returns true.
	Token func(w http.ResponseWriter, form url.Values) bool
	// Document reads a client id metadata document; nil knows none.
	Document func(clientID string) ([]byte, error)
}

// A Server is an authorization server. Its methods may be called at any time.
type Server struct {
	*httptest.Server

	mu         sync.Mutex // guards what follows
	settings   Settings
	keys       []key // the last one signs
	made       int   // keys so far
	clients    map[string]string
	codes      map[string]url.Values
	refreshing map[string]string // refresh token -> client
	issued     int
	revoked    map[string]bool // ids of access tokens, and refresh tokens
	asked      []url.Values    // token requests, oldest first
	registered []map[string]any
	given      []string // every token and code, oldest first
	basic      int
}

// New starts a server that ends with t.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{clients: map[string]string{}, codes: map[string]url.Values{}, refreshing: map[string]string{}, revoked: map[string]bool{}}
	s.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/tenant", s.discovery)
	mux.HandleFunc("GET /tenant/.well-known/openid-configuration", s.discovery)
	mux.HandleFunc("GET /keys", s.publishKeys)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("POST /register", s.register)
	mux.HandleFunc("POST /revoke", s.revoke)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// Issuer is what its tokens name as iss. It has a path, as those of services
// with many tenants do.
func (s *Server) Issuer() string { return s.URL + "/tenant" }

// TokenEndpoint is where tokens are asked for.
func (s *Server) TokenEndpoint() string { return s.URL + "/token" }

// Configure changes settings.
func (s *Server) Configure(change func(*Settings)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.settings)
}

// AddClient makes a client known; without a secret it is a public one.
func (s *Server) AddClient(id, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients[id] = secret
}

// TokenRequests are the forms of all token requests, oldest first.
func (s *Server) TokenRequests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Given is every token and every code that the server ever gave out, oldest
// first: what must be found nowhere.
func (s *Server) Given() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.given)
}

// Registered are the bodies of all registrations, oldest first.
func (s *Server) Registered() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.registered)
}

// Revocations says how many tokens were revoked.
func (s *Server) Revocations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.revoked)
}

// BasicRequests says how many requests named their client in the Authorization
// header.
func (s *Server) BasicRequests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.basic
}

// EndLogins makes every refresh token worthless, as a person does who takes
// back what they agreed to.
func (s *Server) EndLogins() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.refreshing)
}

func (s *Server) discovery(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer":                                         s.Issuer(),
		"authorization_endpoint":                         s.URL + "/authorize?prompt=consent",
		"token_endpoint":                                 s.TokenEndpoint(),
		"registration_endpoint":                          s.URL + "/register",
		"revocation_endpoint":                            s.URL + "/revoke",
		"jwks_uri":                                       s.URL + "/keys",
		"response_types_supported":                       []string{"code"},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"ES256"},
		"code_challenge_methods_supported":               []string{"plain", "S256"},
		"scopes_supported":                               []string{"tools", "offline_access"},
		"authorization_response_iss_parameter_supported": true,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.Document != nil {
		m["client_id_metadata_document_supported"] = true
	}
	if s.settings.Metadata != nil {
		s.settings.Metadata(m)
	}
	reply(w, http.StatusOK, m)
}

// now is the server's clock. mu is held.
func (s *Server) now() time.Time {
	if s.settings.Now != nil {
		return s.settings.Now()
	}
	return time.Now()
}

// life is that of an access token. mu is held.
func (s *Server) life() time.Duration {
	if s.settings.Life > 0 {
		return s.settings.Life
	}
	return time.Hour
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone has its own test failing
}

// refuse says no in the words of RFC 6749, and quotes the token as some servers do.
func refuse(w http.ResponseWriter, status int, code, quoted string) {
	reply(w, status, map[string]string{"error": code, "error_description": "refused: " + quoted})
}
