package federation

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"gatehouse/federation/caller"
	"gatehouse/gate"
)

const (
	// maxBody is the largest accepted request, in bytes.
	maxBody = 2 << 20
	// bodyLimit bounds how long a request's body may take to arrive.
	bodyLimit = 30 * time.Second
)

// Handler is everything that is served over HTTP.
func (g *Gateway) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", g.serveMCP)
	mux.HandleFunc("GET /healthz", g.serveHealth)
	mux.HandleFunc("GET /readyz", g.serveReady)
	mux.HandleFunc("GET /metrics", g.serveMetrics)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource", g.serveMetadata)
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", g.serveMetadata)
	mux.HandleFunc("GET "+clientDocumentPath, g.serveClientDocument)
	for pattern, h := range g.mounted {
		mux.Handle(pattern, h)
	}
	return g.guard(mux)
}

// guard stands before every path: a foreign Host or Origin gets no further, and
// a panic costs its own request and nothing else.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if failure := recover(); failure != nil && failure != http.ErrAbortHandler {
				// The value of a panic may quote what was being handled.
				g.Logger.Error("a request panicked", "path", r.URL.Path, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		if !g.inForce().hosts.allows(r) {
			http.Error(w, "host or origin not allowed; callers use the configured address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveMCP is the endpoint. Order matters: nothing of the body is read before
// the caller is known.
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost && r.Method != http.MethodGet && r.Method != http.MethodDelete {
		methodNotAllowed(w)
		return
	}
	who := g.authenticate(w, r)
	if who == nil {
		return
	}
	if g.draining.Load() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "shutting down", http.StatusServiceUnavailable)
		return
	}
	switch r.Method {
	case http.MethodGet:
		g.serveNotices(w, r, who)
	case http.MethodDelete:
		g.serveDelete(w, r, who)
	default:
		g.servePost(w, r, who)
	}
}

func methodNotAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}

// authenticate returns the caller, or answers 401 and returns nil. There is no
// anonymous caller.
func (g *Gateway) authenticate(w http.ResponseWriter, r *http.Request) *gate.Caller {
	set := g.inForce()
	token, presented := bearer(r)
	if presented {
		who, err := set.callers.Authenticate(r.Context(), token)
		if err == nil {
			return who
		}
		if !g.failures.note(r, caller.ReasonOf(err)) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many refused tokens from this address", http.StatusTooManyRequests)
			return nil
		}
		var forbidden *caller.ScopeError
		if errors.As(err, &forbidden) {
			w.Header().Set("WWW-Authenticate", challenge(set.public, `error="insufficient_scope", scope="`+forbidden.Scope+`"`))
			http.Error(w, "the token lacks a scope", http.StatusForbidden)
			return nil
		}
	}
	extra := ""
	if presented {
		extra = `error="invalid_token"`
	}
	w.Header().Set("WWW-Authenticate", challenge(set.public, extra))
	http.Error(w, "a bearer token of a configured caller is needed", http.StatusUnauthorized)
	return nil
}

// recordAuthFailure puts refused tokens of one address on record. It may lag: a
// guesser must not be able to make us wait for the disk.
func (g *Gateway) recordAuthFailure(host, reason string, count int) {
	g.Ledger.Enqueue(&gate.Entry{Kind: gate.KindAuthFailure, Verdict: gate.Refused, Reason: reason, Detail: "from " + host, Count: count})
}

// challenge is the WWW-Authenticate value of RFC 9728 section 5.1.
func challenge(public, extra string) string {
	c := `Bearer resource_metadata="` + public + `/.well-known/oauth-protected-resource/mcp"`
	if extra != "" {
		c += ", " + extra
	}
	return c
}

// bearer returns the token of the one Authorization header. Tokens in the query
// are not read: urls end up in logs.
func bearer(r *http.Request) (token string, presented bool) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", len(values) > 0
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimSpace(token), true
}

// servePost reads one message and hands it to the era that it belongs to.
func (g *Gateway) servePost(w http.ResponseWriter, r *http.Request, who *gate.Caller) {
	began := g.now()
	body, status, text := readBody(w, r)
	if status != 0 {
		if status == http.StatusRequestEntityTooLarge {
			w.Header().Set("Connection", "close")
		}
		http.Error(w, text, status)
		return
	}
	m, fault := parseMessage(body)
	if fault != nil {
		g.recordFault(r, who, fault)
		writeError(w, http.StatusBadRequest, fault.id, &rpcError{code: int64(fault.code), message: fault.text})
		return
	}
	switch {
	case eraOf(r, m) == modern:
		g.serveModern(w, r, who, m)
	default:
		g.serveLegacy(w, r, who, m)
	}
	// A call is counted where its verdict is known, a stream is no operation.
	if m.method != "tools/call" && m.method != "subscriptions/listen" {
		g.metrics.Operation(m.method, "", "", g.now().Sub(began))
	}
}

// recordFault puts a message that was refused before it could be judged on record.
func (g *Gateway) recordFault(r *http.Request, who *gate.Caller, fault *faultyMessage) {
	call := gate.Call{Request: string(fault.id), Session: label(r.Header.Get(headerSession))}
	g.Gate.Deny(r.Context(), g.Catalog.Snapshot(), who, call, "malformed_request", fault.text)
}

// readBody reads the whole body within its bounds. A status says that the
// request is refused.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, text string) {
	// A form or text/plain is what a foreign page can send without a preflight.
	if media := r.Header.Get("Content-Type"); media != "application/json" && !isJSON(media) {
		return nil, http.StatusUnsupportedMediaType, "content type must be application/json"
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, http.StatusUnsupportedMediaType, "content encodings are not accepted"
	}
	if r.ContentLength > maxBody {
		return nil, http.StatusRequestEntityTooLarge, "body exceeds 2 MiB"
	}
	rc := http.NewResponseController(w)
	// The deadline is for the body alone: what follows may wait for a person.
	_ = rc.SetReadDeadline(time.Now().Add(bodyLimit))
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	if n := r.ContentLength; n >= 0 {
		body = make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		if err != nil {
			return nil, http.StatusBadRequest, "body could not be read in time"
		}
		return body, 0, ""
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, http.StatusBadRequest, "body could not be read in time"
	case len(body) > maxBody:
		return nil, http.StatusRequestEntityTooLarge, "body exceeds 2 MiB"
	}
	return body, 0, ""
}

// writeError answers with a JSON-RPC error.
func writeError(w http.ResponseWriter, status int, id []byte, e *rpcError) {
	(&answer{w: w}).finish(status, appendError(nil, id, e))
}

func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// accepts reports whether the caller takes an event stream as the answer.
func accepts(r *http.Request) bool {
	for _, value := range r.Header["Accept"] {
		value = strings.ToLower(value)
		if strings.Contains(value, "text/event-stream") || strings.Contains(value, "*/*") {
			return true
		}
	}
	return false
}
