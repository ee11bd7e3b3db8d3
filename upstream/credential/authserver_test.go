package credential

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/wire"
)

// An authServer is the authorization server of a test, in the words of these tests.
type authServer struct{ *authserver.Server }

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	s := &authServer{authserver.New(t)}
	s.AddClient("gatehouse", "client-Kp7MarkedSecretQz3")
	return s
}

// subjectToken is what a user signed in with, which outlives every test.
func (s *authServer) subjectToken(user string) string {
	return s.UserToken(user, "sign-in", authserver.Claims{"exp": time.Now().Add(24 * time.Hour).Unix()})
}

// answer makes f answer token requests in the server's stead when it says so.
func (s *authServer) answer(f func(w http.ResponseWriter, form url.Values) bool) {
	s.Configure(func(c *authserver.Settings) { c.Token = f })
}

// answerJSON makes the server say exactly this.
func (s *authServer) answerJSON(status int, body string) {
	s.answer(func(w http.ResponseWriter, _ url.Values) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	})
}

// describe changes what discovery says.
func (s *authServer) describe(change func(m map[string]any)) {
	s.Configure(func(c *authserver.Settings) { c.Metadata = change })
}

// hosted is an MCP server that wants tokens of s.
func (s *authServer) hosted(t *testing.T, change func(m map[string]any)) *authserver.Resource {
	t.Helper()
	r := authserver.NewResource(t, s.Server, "", nil)
	r.Metadata = change
	return r
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

// setup is a broker in front of an authorization server, through the real host
// gate and its client.
type setup struct {
	server  *authServer
	broker  *Broker
	secrets secretMap
	clock   *clock
}

type secretMap map[string]string

func (m secretMap) Resolve(_ context.Context, r Reference) (Secret, error) {
	if v, ok := m[r.String()]; ok {
		return SecretString(v), nil
	}
	return Secret{}, errors.New("unset")
}

// clock is a wall clock that a test can move on.
type clock struct {
	mu    sync.Mutex
	moved time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.moved)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{server: newAuthServer(t), clock: &clock{}, secrets: secretMap{"vault:client": "client-Kp7MarkedSecretQz3"}}
	s.server.Configure(func(c *authserver.Settings) { c.Now = s.clock.now })
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := network.HTTPClient(wire.TLSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	s.broker = NewBroker(Options{Secrets: s.secrets, Client: client, CheckURL: network.CheckURL, Now: s.clock.now})
	return s
}

func ref(t *testing.T, s string) Reference {
	t.Helper()
	r, err := ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func bearerOf(t *testing.T, s Session) string {
	t.Helper()
	name, value, err := s.Header(t.Context())
	token, ok := strings.CutPrefix(value, "Bearer ")
	if err != nil || name != "Authorization" || !ok {
		t.Fatalf("header %q: %v", name, err)
	}
	return token
}

// wantError wants an *Error of that reason that shows nothing it should not.
func wantError(t *testing.T, err error, reason string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("got %v, want reason %s", err, reason)
	}
	for _, secret := range []string{"client-Kp7MarkedSecretQz3", "at-Kp7MarkedSecretQz3", "eyJ"} {
		for cause := error(e); cause != nil; cause = errors.Unwrap(cause) {
			if strings.Contains(cause.Error(), secret) {
				t.Errorf("%s is in the error: %v", secret, cause)
			}
		}
	}
}

func sumOf(s string) [32]byte { return sha256.Sum256([]byte(s)) }
