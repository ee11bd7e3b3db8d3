package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest/authserver"
)

// box is a vault in memory.
type box struct {
	mu     sync.Mutex
	values map[string]string
}

func (b *box) Reveal(_ context.Context, name string) (Secret, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok := b.values[name]; ok {
		return SecretString(v), nil
	}
	return Secret{}, fmt.Errorf("vault:%s %w", name, ErrNoSecret)
}

func (b *box) Set(_ context.Context, name string, value Secret, by string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.values[name] = value.Reveal()
	return nil
}

func (b *box) Remove(name string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.values[name]
	delete(b.values, name)
	return ok, nil
}

func newLoginSetup(t *testing.T) (*setup, *authServer, *box) {
	t.Helper()
	s, p, keep := newSetup(t), newAuthServer(t), &box{values: map[string]string{}}
	s.broker.options.Keep = keep
	return s, p, keep
}

// logIn does what a person at a browser does.
func logIn(t *testing.T, b *Broker, a Auth, o LoginOptions) error {
	t.Helper()
	receiver, err := Receive()
	if err != nil {
		t.Fatal(err)
	}
	defer receiver.Close()
	o.Redirect = receiver.Redirect()
	l, err := b.BeginLogin(t.Context(), a, o)
	if err != nil {
		return err
	}
	// Somebody else tries the port first.
	if resp, err := http.Get(receiver.Redirect() + "?state=guessed&code=evil"); err == nil {
		resp.Body.Close()
	}
	resp, err := http.Get(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the browser ended on HTTP %d", resp.StatusCode)
	}
	query, err := receiver.Wait(t.Context(), l.URL)
	if err != nil {
		t.Fatal(err)
	}
	err = l.Finish(t.Context(), query)
	if again := l.Finish(t.Context(), query); again == nil {
		t.Error("one answer finished two logins")
	}
	return err
}

func TestLogin(t *testing.T) {
	s, p, keep := newLoginSetup(t)
	server := p.hosted(t, nil)
	a := Auth{Mode: OAuth, ServerURL: server.URL + "/mcp"}
	if got := s.broker.State(t.Context(), a); got != StateLoginNeeded {
		t.Errorf("state %q before the login", got)
	}
	_, _, err := open(t, s.broker, a, Discovery()).Header(t.Context())
	wantError(t, err, ReasonLoginNeeded)

	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	if about := p.Registered()[0]; about["application_type"] != "native" || about["token_endpoint_auth_method"] != "none" || about["scope"] != "tools offline_access" {
		t.Errorf("registered as %v", about)
	}
	session := open(t, s.broker, a, Execution("alice", Secret{}))
	token := bearerOf(t, session)
	if _, err := p.Verify(token, a.ServerURL); err != nil {
		t.Errorf("the token is not for the server: %v", err)
	}
	if got := s.broker.State(t.Context(), a); got != StateOK {
		t.Errorf("state %q after the login", got)
	}
	if ends := s.broker.Ends(t.Context(), a); !ends.IsZero() {
		t.Errorf("a login that can be renewed ends at %s", ends)
	}
	// Renewed early; the rotated refresh token is kept, and serves after a restart.
	s.clock.advance(time.Hour - 20*time.Second)
	if renewed := bearerOf(t, session); renewed == token {
		t.Error("not renewed")
	}
	restarted := NewBroker(s.broker.options)
	if again := bearerOf(t, open(t, restarted, a, Discovery())); again == token {
		t.Error("the old token came back")
	}
	// The tokens of one server go to no other.
	other := p.hosted(t, nil)
	_, _, err = open(t, s.broker, Auth{Mode: OAuth, ServerURL: other.URL + "/mcp"}, Discovery()).Header(t.Context())
	wantError(t, err, ReasonLoginNeeded)

	if err := restarted.Logout(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if p.Revocations() != 1 || len(keep.values) != 0 {
		t.Errorf("revoked %d tokens, %d logins are left", p.Revocations(), len(keep.values))
	}
	_, _, err = open(t, restarted, a, Discovery()).Header(t.Context())
	wantError(t, err, ReasonLoginNeeded)
}

// When the authorization server takes the login back, the operator is told to
// log in, and nobody asks it again and again.
func TestLoginRevoked(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	a := Auth{Mode: OAuth, ServerURL: p.hosted(t, nil).URL + "/mcp"}
	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	p.EndLogins()
	s.clock.advance(2 * time.Hour)
	_, _, err := open(t, s.broker, a, Discovery()).Header(t.Context())
	wantError(t, err, ReasonLoginNeeded)
	if got := s.broker.State(t.Context(), a); got != StateLoginNeeded {
		t.Errorf("state %q", got)
	}
}

func TestLoginWithoutRefreshToken(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	p.Configure(func(c *authserver.Settings) { c.NoRefreshTokens = true })
	a := Auth{Mode: OAuth, ServerURL: p.hosted(t, nil).URL + "/mcp"}
	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	bearerOf(t, open(t, NewBroker(s.broker.options), a, Discovery()))
	if left := s.broker.Ends(t.Context(), a).Sub(s.broker.options.Now()); left < 55*time.Minute || left > time.Hour {
		t.Errorf("the login ends in %s", left)
	}
	s.clock.advance(2 * time.Hour)
	_, _, err := open(t, s.broker, a, Discovery()).Header(t.Context())
	wantError(t, err, ReasonLoginNeeded)
}

// Who we are at the authorization server: configured, by document, registered.
func TestLoginIdentity(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	server := p.hosted(t, nil)
	configured := Auth{Mode: OAuth, ServerURL: server.URL + "/mcp", ClientID: "known", ClientSecret: ref(t, "vault:client")}
	p.AddClient("known", "client-Kp7MarkedSecretQz3")
	p.Configure(func(c *authserver.Settings) { c.Document = ClientDocument })
	document := LoginOptions{ClientDocument: "https://mcp.example.org/client.json"}
	if err := logIn(t, s.broker, configured, document); err != nil {
		t.Fatal(err)
	}
	if p.BasicRequests() != 1 || len(p.Registered()) != 0 {
		t.Errorf("%d requests with basic authentication, %d registrations", p.BasicRequests(), len(p.Registered()))
	}
	p.describe(func(m map[string]any) {
		m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post", "none"}
	})
	if err := logIn(t, s.broker, configured, LoginOptions{}); err != nil || p.BasicRequests() != 1 {
		t.Errorf("client_secret_post: %v, %d with basic", err, p.BasicRequests())
	}
	anonymous := Auth{Mode: OAuth, ServerURL: server.URL + "/mcp"}
	if err := logIn(t, s.broker, anonymous, document); err != nil || len(p.Registered()) != 0 {
		t.Errorf("by document: %v, %d registrations", err, len(p.Registered()))
	}
	if err := logIn(t, s.broker, anonymous, LoginOptions{}); err != nil || len(p.Registered()) != 1 {
		t.Errorf("registered: %v, %d registrations", err, len(p.Registered()))
	}
	p.describe(func(m map[string]any) { delete(m, "registration_endpoint") })
	wantError(t, logIn(t, s.broker, anonymous, LoginOptions{}), ReasonLoginFailed)

	text, err := ClientDocument("https://mcp.example.org/client.json")
	if err != nil || !json.Valid(text) || !strings.Contains(string(text), `"client_id":"https://mcp.example.org/client.json"`) {
		t.Errorf("document %s, %v", text, err)
	}
}

func TestLoginRefusals(t *testing.T) {
	for _, test := range []struct {
		name     string
		auth     func(*Auth)
		metadata func(p *authServer, m map[string]any)
		resource func(p *authServer, m map[string]any)
		answer   func(q url.Values)
		reason   string
	}{
		{"other issuer than configured", func(a *Auth) { a.Issuer = "http://127.0.0.1:1/other" }, nil, nil, nil, ReasonLoginFailed},
		{"issuer that calls itself otherwise", nil, func(p *authServer, m map[string]any) { m["issuer"] = p.URL }, nil, nil, ReasonLoginFailed},
		{"no PKCE", nil, func(_ *authServer, m map[string]any) { delete(m, "code_challenge_methods_supported") }, nil, nil, ReasonLoginFailed},
		{"plain PKCE only", nil, func(_ *authServer, m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }, nil, nil, ReasonLoginFailed},
		{"endpoint in the clear", nil, func(_ *authServer, m map[string]any) { m["token_endpoint"] = "http://identity.example.org/token" }, nil, nil, ReasonHostRefused},
		{"endpoint in the private network", nil, func(_ *authServer, m map[string]any) { m["authorization_endpoint"] = "https://10.0.0.1/authorize" }, nil, nil, ReasonHostRefused},
		{"script for an endpoint", nil, func(_ *authServer, m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, nil, nil, ReasonHostRefused},
		{"metadata of another resource", nil, nil, func(p *authServer, m map[string]any) { m["resource"] = "https://bank.example.org/mcp" }, nil, ReasonLoginFailed},
		{"metadata of a sibling", nil, nil, func(p *authServer, m map[string]any) { m["resource"] = m["resource"].(string) + "x" }, nil, ReasonLoginFailed},
		{"no authorization server", nil, nil, func(p *authServer, m map[string]any) { m["authorization_servers"] = []string{} }, nil, ReasonLoginFailed},
		{"issuer without metadata", nil, nil, func(p *authServer, m map[string]any) { m["authorization_servers"] = []string{p.URL + "/nowhere"} }, nil, ReasonLoginFailed},
		{"iss of another", nil, nil, nil, func(q url.Values) { q.Set("iss", "https://evil.example.org") }, ReasonLoginFailed},
		{"iss promised and missing", nil, nil, nil, func(q url.Values) { q.Del("iss") }, ReasonLoginFailed},
		{"no code", nil, nil, nil, func(q url.Values) { q.Del("code") }, ReasonLoginFailed},
		{"person said no", nil, nil, nil, func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, ReasonLoginFailed},
		{"foreign code", nil, nil, nil, func(q url.Values) { q.Set("code", "stolen") }, ReasonRefused},
		{"unasked secret client", func(a *Auth) { a.ClientID = "nobody" }, nil, nil, nil, ReasonRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, p, keep := newLoginSetup(t)
			p.AddClient("nobody", "other")
			if test.metadata != nil {
				p.describe(func(m map[string]any) { test.metadata(p, m) })
			}
			p.Configure(func(c *authserver.Settings) { c.Answer = test.answer })
			server := p.hosted(t, func(m map[string]any) {
				if test.resource != nil {
					test.resource(p, m)
				}
			})
			a := Auth{Mode: OAuth, ServerURL: server.URL + "/mcp"}
			if test.auth != nil {
				test.auth(&a)
			}
			wantError(t, logIn(t, s.broker, a, LoginOptions{}), test.reason)
			if len(keep.values) != 0 {
				t.Error("a refused login was kept")
			}
		})
	}
}

// An answer with another state never finishes a login.
func TestLoginState(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	a := Auth{Mode: OAuth, ServerURL: p.hosted(t, nil).URL + "/mcp"}
	l, err := s.broker.BeginLogin(t.Context(), a, LoginOptions{Redirect: "http://127.0.0.1:1/callback"})
	if err != nil {
		t.Fatal(err)
	}
	query, err := ParseCallback("http://127.0.0.1:1/callback?state=forged&code=x&iss=" + url.QueryEscape(p.Issuer()))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, l.Finish(t.Context(), query), ReasonLoginFailed)
	if _, err := ParseCallback("https://example.org/"); err == nil {
		t.Error("any url was taken for an answer")
	}
}

// A document that calls itself otherwise is not about the issuer it was asked for.
func TestIssuerMustBeItself(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	p.describe(func(m map[string]any) { m["issuer"] = p.Issuer() + "/" })
	_, err := s.broker.serverMetadata(t.Context(), Auth{Issuer: p.Issuer()}, p.Issuer())
	wantError(t, err, ReasonLoginFailed)
}

// Without a challenge the well-known places are asked, the path's first.
func TestDiscoveryAtWellKnownPlaces(t *testing.T) {
	for _, place := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"} {
		s, p, _ := newLoginSetup(t)
		mux := http.NewServeMux()
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		mux.HandleFunc("GET "+place, func(w http.ResponseWriter, r *http.Request) {
			reply(w, http.StatusOK, map[string]any{"resource": server.URL, "authorization_servers": []string{p.Issuer()}, "scopes_supported": []string{"a"}})
		})
		m, name, scopes, err := s.broker.discover(t.Context(), Auth{Mode: OAuth, ServerURL: server.URL + "/mcp"})
		if err != nil || m.Issuer != p.Issuer() || name != server.URL || len(scopes) != 1 {
			t.Errorf("%s: %v %v %v", place, m.Issuer, scopes, err)
		}
	}
	// A configured issuer serves where the server says nothing.
	s, p, _ := newLoginSetup(t)
	silent := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(silent.Close)
	if m, _, _, err := s.broker.discover(t.Context(), Auth{Mode: OAuth, ServerURL: silent.URL + "/mcp", Issuer: p.Issuer()}); err != nil || m.Issuer != p.Issuer() {
		t.Errorf("configured issuer: %v", err)
	}
}

func TestBearerParams(t *testing.T) {
	for header, want := range map[string]map[string]string{
		`Bearer resource_metadata="https://a/b", scope="x y"`: {"resource_metadata": "https://a/b", "scope": "x y"},
		`bearer scope=x,resource_metadata="a\"b`:              {"scope": "x", "resource_metadata": `a"b`},
		`Bearer`:                                              {},
		`Bearer junk`:                                         {},
		`Basic scope="x"`:                                     nil,
		`Bearer scope="first", scope="second"`:                {"scope": "first"},
	} {
		got := bearerParams([]string{header})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", header, got, want)
		}
	}
}

// Without a vault there is nowhere to keep a login.
func TestLoginNeedsVault(t *testing.T) {
	s := newSetup(t)
	a := Auth{Mode: OAuth, ServerURL: "https://hosted.example.org/mcp"}
	_, err := s.broker.BeginLogin(t.Context(), a, LoginOptions{})
	wantError(t, err, ReasonLoginNeeded)
	_, _, err = open(t, s.broker, a, Discovery()).Header(t.Context())
	wantError(t, err, ReasonLoginNeeded)
}

// What a server names as the place of its metadata, or of its authorization
// server, stays behind the host gate like any other url (C51 a).
func TestC51DiscoveryStaysBehindTheHostGate(t *testing.T) {
	for _, named := range []string{"http://169.254.169.254/latest", "https://169.254.169.254/latest", "https://[::ffff:169.254.169.254]/", "https://0x7f.1/",
		"https://2130706433/", "file:///etc/passwd", "https://user@127.0.0.1/", "http://identity.example.org/"} {
		s, _, keep := newLoginSetup(t)
		challenging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+named+`", scope="admin"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		t.Cleanup(challenging.Close)
		_, err := s.broker.BeginLogin(t.Context(), Auth{Mode: OAuth, ServerURL: challenging.URL + "/mcp"}, LoginOptions{Redirect: "http://127.0.0.1:1/callback"})
		wantError(t, err, ReasonHostRefused)
		if len(keep.values) != 0 {
			t.Errorf("%s: something was kept", named)
		}
		p := newAuthServer(t)
		server := p.hosted(t, func(m map[string]any) { m["authorization_servers"] = []string{named} })
		_, err = s.broker.BeginLogin(t.Context(), Auth{Mode: OAuth, ServerURL: server.URL + "/mcp"}, LoginOptions{Redirect: "http://127.0.0.1:1/callback"})
		wantError(t, err, ReasonHostRefused)
	}
}

// What a server says is missing is asked for at the next login, beside what we
// had; what the configuration asks for, nobody widens.
func TestLoginWithMoreScopes(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	a := Auth{Mode: OAuth, ServerURL: p.hosted(t, nil).URL + "/mcp"}
	scopes := func(a Auth) string {
		t.Helper()
		l, err := s.broker.BeginLogin(t.Context(), a, LoginOptions{Redirect: "http://127.0.0.1:1/callback"})
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(l.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("scope")
	}
	missing := `Basic realm="x", Bearer error="insufficient_scope", scope="write tools", resource_metadata="https://elsewhere.example.org/"`
	for _, a := range []Auth{a, {Mode: OAuth, ServerURL: a.ServerURL, Scopes: []string{"own"}}} {
		if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
			t.Fatal(err)
		}
		before := scopes(a)
		session := open(t, s.broker, a, Execution("alice", Secret{})).(Rejecter)
		for _, other := range []string{"", "Bearer", `Bearer error="invalid_token", scope="write"`, `Bearer scope="write"`, "Bearer error=\"insufficient_scope\", scope=\"a\x00b\"",
			`Bearer error="insufficient_scope", scope="` + strings.Repeat("s ", 20) + strings.Join(strings.Split("abcdefghijklmnopqrstuvwxyz0123456789", ""), " ") + `"`} {
			session.Rejected(t.Context(), http.StatusForbidden, other)
		}
		session.Rejected(t.Context(), http.StatusUnauthorized, missing)
		if got := scopes(a); got != before {
			t.Errorf("asks for %q after challenges that want nothing more, before for %q", got, before)
		}
		session.Rejected(t.Context(), http.StatusForbidden, missing)
		want := "tools offline_access write"
		if len(a.Scopes) > 0 {
			want = "own"
		}
		if got := scopes(a); got != want {
			t.Errorf("asks for %q, want %q", got, want)
		}
		bearerOf(t, session.(Session)) // the login that there is goes on
	}
}
