package credential

import (
	"net/http"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest/authserver"
)

// Two refusals in a row mark a server, one does not; another credential, or one
// that is taken, begins anew.
func TestStandingOfAStaticCredential(t *testing.T) {
	s := newSetup(t)
	s.secrets["vault:key"] = "first"
	a := Auth{Mode: Header, Header: "X-Key", Credential: ref(t, "vault:key"), ServerURL: "https://a.example.org/mcp"}
	answer := func(a Auth, status int) {
		t.Helper()
		session := open(t, s.broker, a, Discovery())
		if _, _, err := session.Header(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status == http.StatusOK {
			session.(Rejecter).Accepted()
		} else {
			session.(Rejecter).Rejected(t.Context(), status, "")
		}
		session.Close()
	}
	want := func(a Auth, state string) {
		t.Helper()
		if got := s.broker.State(t.Context(), a); got != state {
			t.Errorf("state %q, want %q", got, state)
		}
	}
	want(a, StateOK)
	answer(a, http.StatusUnauthorized)
	want(a, StateOK)
	answer(a, http.StatusForbidden)
	want(a, StateRefused)
	elsewhere := a
	elsewhere.ServerURL = "https://b.example.org/mcp"
	want(elsewhere, StateOK)

	s.secrets["vault:key"] = "second"
	want(a, StateOK)
	answer(a, http.StatusUnauthorized)
	want(a, StateOK)
	answer(a, http.StatusUnauthorized)
	want(a, StateRefused)
	answer(a, http.StatusOK)
	want(a, StateOK)
	answer(a, http.StatusUnauthorized)
	want(a, StateOK)

	delete(s.secrets, "vault:key")
	want(a, StateRefused)

	none := Auth{ServerURL: a.ServerURL}
	answer(none, http.StatusUnauthorized)
	answer(none, http.StatusUnauthorized)
	want(none, StateRefused)
}

func TestStandingOfASharedToken(t *testing.T) {
	s := newSetup(t)
	a := s.clientAuth(t)
	want := func(state string) {
		t.Helper()
		if got := s.broker.State(t.Context(), a); got != state {
			t.Errorf("state %q, want %q", got, state)
		}
	}
	want(StateOK)
	session := open(t, s.broker, a, Discovery()).(*shared)
	token := bearerOf(t, session)
	session.Rejected(t.Context(), http.StatusForbidden, "")
	if bearerOf(t, session) != token {
		t.Error("a 403 cost the token, which another would not cure")
	}
	want(StateOK)
	session.Rejected(t.Context(), http.StatusUnauthorized, "")
	want(StateRefused)
	session.Accepted()
	want(StateOK)

	// The endpoint is down: no harm while the token lives, then it is expired.
	bearerOf(t, session)
	s.server.answerJSON(http.StatusBadGateway, "{}")
	s.clock.advance(time.Hour - 20*time.Second)
	if _, _, err := session.Header(t.Context()); err == nil {
		t.Fatal("renewed by an endpoint that is down")
	}
	want(StateOK)
	s.clock.advance(time.Minute)
	want(StateExpired)
	s.server.answerJSON(http.StatusUnauthorized, `{"error":"invalid_client"}`)
	if _, _, err := session.Header(t.Context()); err == nil {
		t.Fatal("renewed by an endpoint that says no")
	}
	want(StateRefused)
	delete(s.secrets, "vault:client")
	want(StateRefused)
}

// A delegated server is marked when it takes nobody's token; that one caller
// may not do something is no sign of that.
func TestStandingOfDelegation(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	for range 3 {
		session := open(t, s.broker, a, Execution("alice", Secret{})).(Rejecter)
		session.Rejected(t.Context(), http.StatusForbidden, "")
	}
	if got := s.broker.State(t.Context(), a); got != StateOK {
		t.Errorf("state %q after refusals of one caller", got)
	}
	for range 2 {
		open(t, s.broker, a, Execution("alice", Secret{})).(Rejecter).Rejected(t.Context(), http.StatusUnauthorized, "")
	}
	if got := s.broker.State(t.Context(), a); got != StateRefused {
		t.Errorf("state %q", got)
	}
}

// What is left of a login decides its state; a refresh token that was refused
// once is not sent again.
func TestStandingOfALogin(t *testing.T) {
	s, p, _ := newLoginSetup(t)
	p.Configure(func(c *authserver.Settings) { c.NoRefreshTokens = true })
	a := Auth{Mode: OAuth, ServerURL: p.hosted(t, nil).URL + "/mcp"}
	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	s.clock.advance(2 * time.Hour)
	if got := s.broker.State(t.Context(), a); got != StateExpired {
		t.Errorf("state %q of a login that nothing renews", got)
	}
	p.Configure(func(c *authserver.Settings) { c.NoRefreshTokens = false })
	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := s.broker.State(t.Context(), a); got != StateOK {
		t.Errorf("state %q after another login", got)
	}
	p.EndLogins()
	s.clock.advance(2 * time.Hour)
	before := len(p.TokenRequests())
	for range 3 {
		_, _, err := open(t, s.broker, a, Discovery()).Header(t.Context())
		wantError(t, err, ReasonLoginNeeded)
	}
	if len(p.TokenRequests()) != before+1 {
		t.Errorf("a dead refresh token was sent %d times", len(p.TokenRequests())-before)
	}
	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	bearerOf(t, open(t, s.broker, a, Discovery()))
}
