package authserver

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Resource is an MCP server that accepts the tokens of a Server which are
// meant for it, and keeps a record of whose it saw.
type Resource struct {
	*httptest.Server
	Audience string // what tokens must be meant for; "": the url of the endpoint

	// Metadata, when set before the first request, changes what the server says
	// about itself.
	Metadata func(m map[string]any)

	auth *Server
	next http.Handler

	mu     sync.Mutex
	seen   []Visit
	denied int
}

// A Visit is one request that came with a good token.
type Visit struct {
	Subject string // of the token
	ID      string // of the token
	Token   string
	Header  http.Header
}

// NewResource starts an MCP server at /mcp that ends with t. What comes with a
// good token goes to next, when there is one.
func NewResource(t testing.TB, auth *Server, audience string, next http.Handler) *Resource {
	t.Helper()
	r := &Resource{Audience: audience, auth: auth, next: next}
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", r.serve)
	mux.HandleFunc("GET /metadata", r.metadata)
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

// Endpoint is the url of the MCP endpoint.
func (r *Resource) Endpoint() string { return r.URL + "/mcp" }

// Visits are the requests with a good token so far, oldest first.
func (r *Resource) Visits() []Visit {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// Denied says how many requests came without a good token.
func (r *Resource) Denied() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.denied
}

func (r *Resource) audience() string {
	if r.Audience != "" {
		return r.Audience
	}
	return r.Endpoint()
}

func (r *Resource) serve(w http.ResponseWriter, req *http.Request) {
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	claims, err := r.auth.Verify(token, r.audience())
	if err != nil {
		r.mu.Lock()
		r.denied++
		r.mu.Unlock()
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.Header().Add("WWW-Authenticate", `bearer error="invalid_token", resource_metadata = "`+r.URL+`/metadata", scope="tools"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	r.seen = append(r.seen, Visit{claims.Text("sub"), claims.Text("jti"), token, req.Header.Clone()})
	r.mu.Unlock()
	if r.next != nil {
		r.next.ServeHTTP(w, req)
	}
}

func (r *Resource) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{"resource": r.Endpoint(), "authorization_servers": []string{r.auth.Issuer()}}
	if r.Metadata != nil {
		r.Metadata(m)
	}
	reply(w, http.StatusOK, m)
}
