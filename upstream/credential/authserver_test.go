package credential

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/upstream/wire"
)

// authServer is an authorization server: it signs JWTs, authenticates clients,
// grants client_credentials and exchanges tokens by RFC 8693.
type authServer struct {
	*httptest.Server
	key     ed25519.PrivateKey
	clients map[string]string // id -> secret, "" = public
	life    time.Duration

	mu       sync.Mutex
	now      func() time.Time
	forms    []url.Values // every form received, in order
	issued   int
	override func(w http.ResponseWriter, form url.Values) bool // true: answered
}

func newAuthServer(t *testing.T) *authServer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &authServer{key: key, life: time.Hour, now: time.Now, clients: map[string]string{"gatehouse": "client-secret-7d1e"}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", s.token)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// sign makes a JWT of the server's own.
func (s *authServer) sign(claims map[string]any) string {
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // unreachable: the claims are strings and numbers
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	head := part(map[string]string{"alg": "EdDSA", "typ": "JWT"}) + "." + part(claims)
	return head + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(s.key, []byte(head)))
}

// verify returns the claims of a token that this server signed and that is
// meant for audience.
func (s *authServer) verify(token, audience string) (map[string]any, error) {
	head, signature, ok := cutLast(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if !ok || err != nil || !ed25519.Verify(s.key.Public().(ed25519.PublicKey), []byte(head), raw) {
		return nil, errors.New("bad signature")
	}
	_, body, _ := strings.Cut(head, ".")
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, err
	}
	if claims["aud"] != audience {
		return nil, fmt.Errorf("meant for %v", claims["aud"])
	}
	if exp, _ := claims["exp"].(float64); s.clock().After(time.Unix(int64(exp), 0)) {
		return nil, errors.New("expired")
	}
	return claims, nil
}

func cutLast(s, sep string) (string, string, bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+len(sep):], true
}

func (s *authServer) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// subjectToken is what a user signed in with.
func (s *authServer) subjectToken(user string) string {
	return s.sign(map[string]any{"sub": user, "aud": "sign-in", "exp": s.clock().Add(24 * time.Hour).Unix()})
}

func (s *authServer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil || len(r.URL.RawQuery) > 0 {
		s.refuse(w, "invalid_request")
		return
	}
	form := maps.Clone(r.PostForm)
	s.mu.Lock()
	s.forms = append(s.forms, form)
	override := s.override
	s.mu.Unlock()
	if override != nil && override(w, form) {
		return
	}
	if secret, known := s.clients[form.Get("client_id")]; !known || secret != form.Get("client_secret") {
		s.refuse(w, "invalid_client")
		return
	}
	subject := form.Get("client_id")
	answer := map[string]any{"token_type": "Bearer"}
	switch form.Get("grant_type") {
	case "client_credentials":
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		claims, err := s.verify(form.Get("subject_token"), "sign-in")
		if err != nil || form.Get("subject_token_type") != accessTokenType {
			s.refuse(w, "invalid_grant")
			return
		}
		subject = claims["sub"].(string)
		answer["issued_token_type"] = accessTokenType
	default:
		s.refuse(w, "unsupported_grant_type")
		return
	}
	s.mu.Lock()
	s.issued++
	id := s.issued
	s.mu.Unlock()
	answer["access_token"] = s.sign(map[string]any{"sub": subject, "aud": form.Get("audience"), "scope": form.Get("scope"),
		"exp": s.clock().Add(s.life).Unix(), "jti": id})
	answer["expires_in"] = int(s.life.Seconds())
	if scope := form.Get("scope"); scope != "" {
		answer["scope"] = scope
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	json.NewEncoder(w).Encode(answer)
}

// refuse quotes the token, as some servers do.
func (s *authServer) refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":%q,"error_description":"token at-secret-9f2c expired"}`, code)
}

func (s *authServer) received() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}

func (s *authServer) answer(f func(w http.ResponseWriter, form url.Values) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.override = f
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
	s := &setup{server: newAuthServer(t), clock: &clock{}, secrets: secretMap{"vault:client": "client-secret-7d1e"}}
	s.server.now = s.clock.now
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
	for _, secret := range []string{"client-secret-7d1e", "at-secret-9f2c", "eyJ"} {
		for cause := error(e); cause != nil; cause = errors.Unwrap(cause) {
			if strings.Contains(cause.Error(), secret) {
				t.Errorf("%s is in the error: %v", secret, cause)
			}
		}
	}
}

func sumOf(s string) [32]byte { return sha256.Sum256([]byte(s)) }
