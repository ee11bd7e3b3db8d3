package credential

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"
)

func (s *setup) clientAuth(t *testing.T) Auth {
	return Auth{Mode: ClientCredentials, TokenEndpoint: s.server.URL + "/token", ClientID: "gatehouse",
		ClientSecret: ref(t, "vault:client"), Audience: "billing", Scopes: []string{"write", "read"}}
}

func open(t *testing.T, b *Broker, a Auth, p Purpose) Session {
	t.Helper()
	s, err := b.Open(a, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestClientCredentials(t *testing.T) {
	s := newSetup(t)
	a := s.clientAuth(t)
	first := open(t, s.broker, a, Execution("alice", Secret{}))
	token := bearerOf(t, first)
	claims, err := s.server.Verify(token, "billing")
	if err != nil || claims["sub"] != "gatehouse" || claims["scope"] != "read write" {
		t.Fatalf("claims %v, %v", claims, err)
	}
	if legs := first.Legs(); len(legs) != 1 || legs[0].Name != "token" || legs[0].Status != 200 {
		t.Errorf("legs %+v", legs)
	}
	second := open(t, s.broker, a, Discovery())
	if bearerOf(t, second) != token || len(second.Legs()) != 0 {
		t.Error("the token was not shared")
	}
	s.clock.advance(time.Hour - 31*time.Second)
	if bearerOf(t, second) != token {
		t.Error("the token was renewed too early")
	}
	s.clock.advance(2 * time.Second)
	if bearerOf(t, second) == token || len(second.Legs()) != 1 {
		t.Error("the token was not renewed shortly before it expired")
	}
	other := a
	other.Audience = "payroll"
	if bearerOf(t, open(t, s.broker, other, Discovery())) == token {
		t.Error("another server got the same token")
	}
}

// A token the upstream does not take is not sent again.
func TestClientCredentialsRejected(t *testing.T) {
	s := newSetup(t)
	session := open(t, s.broker, s.clientAuth(t), Discovery())
	token := bearerOf(t, session)
	session.(*shared).Rejected(t.Context(), http.StatusUnauthorized, "")
	if bearerOf(t, open(t, s.broker, s.clientAuth(t), Discovery())) == token {
		t.Error("the rejected token came again")
	}
	session.(*shared).Rejected(t.Context(), http.StatusUnauthorized, "") // an older token: the new one stays
	if got := len(s.server.TokenRequests()); got != 2 {
		t.Errorf("%d token requests, want 2", got)
	}
}

// Many need the token at once, one request is made; a waiter whose own time is
// up leaves, and the others are not held up by one who gave up fetching.
func TestClientCredentialsSingleFlight(t *testing.T) {
	s := newSetup(t)
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.server.answer(func(http.ResponseWriter, url.Values) bool {
		once.Do(func() { close(entered) })
		<-release
		return false
	})
	a := s.clientAuth(t)
	leaderCtx, giveUp := context.WithCancel(t.Context())
	leader := make(chan error, 1)
	go func() {
		_, _, err := open(t, s.broker, a, Discovery()).Header(leaderCtx)
		leader <- err
	}()
	<-entered
	impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err := open(t, s.broker, a, Discovery()).Header(impatient)
	wantError(t, err, ReasonBudget)

	giveUp()
	wantError(t, <-leader, ReasonCancelled)
	close(release)

	var wg sync.WaitGroup
	tokens := make([]string, 20)
	for i := range tokens {
		wg.Go(func() {
			_, tokens[i], _ = open(t, s.broker, a, Discovery()).Header(t.Context())
		})
	}
	wg.Wait()
	for _, token := range tokens {
		if token == "" || token != tokens[0] {
			t.Fatalf("tokens differ or are missing: %d", len(token))
		}
	}
	if got := len(s.server.TokenRequests()); got != 2 { // the one given up, and one for all
		t.Errorf("%d token requests, want 2", got)
	}
}

func TestClientCredentialsRetry(t *testing.T) {
	s := newSetup(t)
	tries := 0
	s.server.answer(func(w http.ResponseWriter, _ url.Values) bool {
		if tries++; tries < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	session := open(t, s.broker, s.clientAuth(t), Discovery())
	bearerOf(t, session)
	if legs := session.Legs(); len(legs) != 3 || legs[0].Status != 503 || legs[2].Status != 200 {
		t.Errorf("legs %+v", legs)
	}
	s.server.answerJSON(http.StatusUnauthorized, `{"error":"invalid_client","error_description":"at-Kp7MarkedSecretQz3"}`)
	s.clock.advance(2 * time.Hour)
	before := len(s.server.TokenRequests())
	_, _, err := session.Header(t.Context())
	wantError(t, err, ReasonRefused)
	if got := len(s.server.TokenRequests()) - before; got != 1 {
		t.Errorf("a refusal was asked for %d times", got)
	}
}

// untouched fails the test when a secret is looked up.
type untouched struct{ t *testing.T }

func (u untouched) Resolve(_ context.Context, r Reference) (Secret, error) {
	u.t.Errorf("%s was looked up before the host gate", r)
	return SecretString("x"), nil
}

// The host gate comes first, the secret second.
func TestTokenEndpointHostGate(t *testing.T) {
	s := newSetup(t)
	a := s.clientAuth(t)
	delegatedAuth := s.delegation(t)
	s.broker.options.Secrets = untouched{t}
	for _, endpoint := range []string{"http://identity.example.org/token", "https://10.0.0.1/token", "http://[::1]:1/token"} {
		a.TokenEndpoint = endpoint
		_, _, err := open(t, s.broker, a, Discovery()).Header(t.Context())
		wantError(t, err, ReasonHostRefused)

		profile := (*s.broker.profiles.Load())["company"]
		profile.TokenEndpoint = endpoint
		s.broker.Configure(map[string]Profile{"company": profile})
		_, _, err = open(t, s.broker, delegatedAuth, Execution("alice", Secret{})).Header(t.Context())
		wantError(t, err, ReasonHostRefused)
	}
}

// A redirect of a token endpoint is an answer that is no token; nothing follows it.
func TestC14TokenEndpointRedirect(t *testing.T) {
	s := newSetup(t)
	s.server.answer(func(w http.ResponseWriter, form url.Values) bool {
		w.Header().Set("Location", s.server.URL+"/token")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	})
	follower := NewBroker(s.broker.options)
	follower.options.Client = &http.Client{} // would follow, with the secret
	for _, b := range []*Broker{s.broker, follower} {
		before := len(s.server.TokenRequests())
		_, _, err := open(t, b, s.clientAuth(t), Discovery()).Header(t.Context())
		wantError(t, err, ReasonRefused)
		if got := len(s.server.TokenRequests()) - before; got != 1 {
			t.Errorf("%d requests", got)
		}
	}
}

// A token endpoint's answer is never quoted, however wrong it is (C50 a).
func TestC50TokenRepliesAreNotQuoted(t *testing.T) {
	for body, status := range map[string]int{
		`{"acess_token":"at-Kp7MarkedSecretQz3","token_type":"Bearer"}`:                       http.StatusOK,
		`{"access_token":"at-Kp7MarkedSecretQz3","token_type":"mac"}`:                         http.StatusOK,
		`{"access_token":"at-Kp7MarkedSecretQz3","access_token":"at-Kp7MarkedSecretQz3"}`:     http.StatusOK,
		`access_token=at-Kp7MarkedSecretQz3`:                                                  http.StatusOK,
		`{"error":"invalid_grant","error_description":"token at-Kp7MarkedSecretQz3 expired"}`: http.StatusBadRequest,
		`{"error":"at-Kp7MarkedSecretQz3"}`:                                                   http.StatusUnauthorized,
	} {
		s := newSetup(t)
		s.server.answerJSON(status, body)
		_, _, err := open(t, s.broker, s.clientAuth(t), Discovery()).Header(t.Context())
		reason := ReasonMalformed
		if status != http.StatusOK {
			reason = ReasonRefused
		}
		wantError(t, err, reason) // which looks for the token
	}
}
