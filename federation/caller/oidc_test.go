package caller

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
)

const ours = "https://gate.example.org/mcp"

// An identityProvider signs tokens and publishes its keys, as a real one does.
type identityProvider struct {
	*httptest.Server
	mu      sync.Mutex
	keys    map[string]*ecdsa.PrivateKey
	fetched int
	broken  bool
}

func newProvider(t *testing.T) *identityProvider {
	t.Helper()
	p := &identityProvider{keys: map[string]*ecdsa.PrivateKey{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.broken {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"authorization_endpoint":"%[1]s/a","token_endpoint":"%[1]s/t"}`, p.URL, p.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fetched++
		var set []map[string]string
		for kid, key := range p.keys {
			point, err := key.PublicKey.Bytes()
			if err != nil {
				panic(err)
			}
			set = append(set, map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": kid,
				"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])})
		}
		json.NewEncoder(w).Encode(map[string]any{"keys": set})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	p.rotate(t, "first")
	return p
}

// rotate replaces every key by a new one.
func (p *identityProvider) rotate(t *testing.T, kid string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = map[string]*ecdsa.PrivateKey{kid: key}
}

// sign makes a token under the key of that id.
func (p *identityProvider) sign(t *testing.T, kid string, claims map[string]any) string {
	t.Helper()
	p.mu.Lock()
	key := p.keys[kid]
	p.mu.Unlock()
	return compact(t, map[string]any{"alg": "ES256", "kid": kid, "typ": "at+jwt"}, claims, func(signed []byte) []byte {
		sum := sha256.Sum256(signed)
		r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		signature := make([]byte, 64)
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature
	})
}

func compact(t *testing.T, header, claims map[string]any, sign func([]byte) []byte) string {
	t.Helper()
	var parts []string
	for _, part := range []map[string]any{header, claims} {
		b, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(b))
	}
	signed := strings.Join(parts, ".")
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(signed)))
}

var rules = []config.Rule{
	{Claim: "groups", Value: "mcp-admins", Grant: gate.Caller{Admin: true, Zone: gate.ExternalEU, Groups: gate.EveryGroup()}},
	{Claim: "realm.roles", Value: "reader", Grant: gate.Caller{Zone: gate.Local, Groups: gate.OnlyGroups("mcp_a")}},
	{Claim: "https://example.org/team", Value: "blue", Grant: gate.Caller{}},
	{Claim: "groups", Value: "staff", Grant: gate.Caller{Groups: gate.OnlyGroups()}},
}

func directory(t *testing.T, p *identityProvider, o config.OIDC, now func() time.Time) *Directory {
	t.Helper()
	if o.Issuer == "" {
		o.Issuer = p.URL
	}
	o.Rules = rules
	d, err := New([]config.Caller{named("static", config.Token{Digest: gate.DigestOf([]byte("static-token"))})}, nil,
		Options{OIDC: o, Audience: ours, Client: p.Client(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func good(p *identityProvider, now time.Time) map[string]any {
	return map[string]any{"iss": p.URL, "sub": "anna", "aud": ours, "exp": now.Add(time.Minute).Unix(),
		"iat": now.Unix(), "groups": []string{"staff", "mcp-admins"}, "scope": "mcp other"}
}

func TestSignedTokens(t *testing.T) {
	p, now := newProvider(t), time.Now()
	d := directory(t, p, config.OIDC{RequiredScope: "mcp"}, nil)
	for _, c := range []struct {
		name   string
		change map[string]any
		want   string // "unknown", "scope", or "" for admitted
	}{
		{"good", nil, ""},
		{"audience among others", map[string]any{"aud": []string{"x", ours}}, ""},
		{"scope as a list", map[string]any{"scope": nil, "scp": []string{"mcp"}}, ""},
		{"expired", map[string]any{"exp": now.Add(-time.Minute).Unix()}, "unknown"},
		{"no expiry", map[string]any{"exp": nil}, "unknown"},
		{"not yet", map[string]any{"nbf": now.Add(time.Hour).Unix()}, "unknown"},
		{"other issuer", map[string]any{"iss": "https://evil.example.org"}, "unknown"},
		{"other audience", map[string]any{"aud": "https://gate.example.org"}, "unknown"},
		{"no audience", map[string]any{"aud": nil}, "unknown"},
		{"no subject", map[string]any{"sub": ""}, "unknown"},
		{"subject that is a name of ours", map[string]any{"sub": "x|y"}, "unknown"},
		{"subject with a line feed", map[string]any{"sub": "a\nb"}, "unknown"},
		{"no rule", map[string]any{"groups": []string{"guests"}}, "unknown"},
		{"rule value inside a longer one", map[string]any{"groups": "not-mcp-admins"}, "unknown"},
		{"no scope", map[string]any{"scope": nil}, "scope"},
		{"scope inside a longer one", map[string]any{"scope": "mcp-read"}, "scope"},
	} {
		claims := good(p, now)
		maps.Copy(claims, c.change)
		maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
		got, err := d.Authenticate(t.Context(), p.sign(t, "first", claims))
		var scope *ScopeError
		switch {
		case c.want == "" && (err != nil || got == nil):
			t.Errorf("%s: refused: %v", c.name, err)
		case c.want == "unknown" && (got != nil || !errors.Is(err, ErrUnknown)):
			t.Errorf("%s: got %+v, %v, want ErrUnknown", c.name, got, err)
		case c.want == "scope" && (got != nil || !errors.As(err, &scope) || scope.Scope != "mcp"):
			t.Errorf("%s: got %+v, %v, want a missing scope", c.name, got, err)
		}
	}
}

func TestForgedTokens(t *testing.T) {
	p, now := newProvider(t), time.Now()
	d := directory(t, p, config.OIDC{}, nil)
	other := newProvider(t)
	signed := p.sign(t, "first", good(p, now))
	header := map[string]any{"alg": "ES256", "kid": "first"}
	admin := good(p, now)
	admin["sub"] = "somebody else"
	tampered := compact(t, header, admin, func([]byte) []byte {
		signature, _ := base64.RawURLEncoding.DecodeString(signed[strings.LastIndex(signed, ".")+1:])
		return signature
	})
	for name, token := range map[string]string{
		"claims under another's signature": tampered,
		"key of another issuer":            other.sign(t, "first", good(p, now)),
		"no signature":                     compact(t, map[string]any{"alg": "none"}, good(p, now), func([]byte) []byte { return nil }),
		"symmetric":                        compact(t, map[string]any{"alg": "HS256", "kid": "first"}, good(p, now), func(b []byte) []byte { s := sha256.Sum256(b); return s[:] }),
		"no claims":                        "eyJhbGciOiJSUzI1NiJ9..",
		"not base64":                       "ey!.ey!.ey!",
	} {
		if got, err := d.Authenticate(t.Context(), token); got != nil || !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if _, err := d.Authenticate(t.Context(), signed); err != nil {
		t.Errorf("the true token: %v", err)
	}
	if got, err := d.Authenticate(t.Context(), "static-token"); err != nil || got.AuthenticatedBy != "token" {
		t.Errorf("the static token beside it: %v", err)
	}
}

func TestFirstRuleWins(t *testing.T) {
	p, now := newProvider(t), time.Now()
	d := directory(t, p, config.OIDC{JWKSURL: p.URL + "/keys"}, nil)
	for _, c := range []struct {
		claims map[string]any
		admin  bool
		zone   gate.Zone
	}{
		{map[string]any{"groups": []string{"staff", "mcp-admins"}}, true, gate.ExternalEU},
		{map[string]any{"groups": "staff"}, false, gate.ExternalGlobal},
		{map[string]any{"groups": nil, "realm": map[string]any{"roles": []string{"reader"}}}, false, gate.Local},
		{map[string]any{"groups": nil, "https://example.org/team": "blue"}, false, gate.ExternalGlobal},
	} {
		claims := good(p, now)
		maps.Copy(claims, c.claims)
		got, err := d.Authenticate(t.Context(), p.sign(t, "first", claims))
		if err != nil {
			t.Errorf("%v: %v", c.claims, err)
			continue
		}
		if got.Admin != c.admin || got.Zone != c.zone || got.AuthenticatedBy != "oidc" || got.Name != gate.CallerName(p.URL+"|anna") {
			t.Errorf("%v: got %+v", c.claims, got)
		}
	}
}

func TestKeysRotateAndAreNotHammered(t *testing.T) {
	p := newProvider(t)
	now := time.Now()
	var mu sync.Mutex
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	d := directory(t, p, config.OIDC{}, clock)
	before := p.sign(t, "first", good(p, now))
	if _, err := d.Authenticate(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	p.rotate(t, "second")
	after := p.sign(t, "second", good(p, now))
	for range 50 {
		if _, err := d.Authenticate(t.Context(), after); !errors.Is(err, ErrUnknown) {
			t.Fatalf("a key is known that was not fetched: %v", err)
		}
	}
	if p.fetched > 2 {
		t.Errorf("the keys were fetched %d times for 50 unknown tokens of one moment", p.fetched)
	}
	mu.Lock()
	now = now.Add(patience)
	mu.Unlock()
	// The verifier hands out what it fetched a moment before it keeps it, and until
	// then goes by what it kept.
	soon := func(token string, want error) (err error) {
		for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(time.Millisecond) {
			if _, err = d.Authenticate(t.Context(), token); errors.Is(err, want) {
				break
			}
		}
		return err
	}
	if err := soon(after, nil); err != nil {
		t.Errorf("the new key is not known: %v", err)
	}
	if err := soon(before, ErrUnknown); !errors.Is(err, ErrUnknown) {
		t.Errorf("the withdrawn key still counts: %v", err)
	}
}

func TestIssuerThatIsDown(t *testing.T) {
	p := newProvider(t)
	now := time.Now()
	d := directory(t, p, config.OIDC{}, func() time.Time { return now })
	token := p.sign(t, "first", good(p, now))
	p.broken = true
	if _, err := d.Authenticate(t.Context(), token); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	p.mu.Lock()
	p.broken = false
	p.mu.Unlock()
	now = now.Add(discoveryPause)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Whoever comes first discovers for all, even when he has hung up.
	d.Authenticate(ctx, token)
	if _, err := d.Authenticate(t.Context(), token); err != nil {
		t.Errorf("the issuer is back, and its token is refused: %v", err)
	}
}

func TestOutage(t *testing.T) {
	p := newProvider(t)
	now := time.Now()
	d := directory(t, p, config.OIDC{}, func() time.Time { return now })
	token := func() string { return p.sign(t, "first", good(p, now)) }
	if _, err := d.Authenticate(t.Context(), token()); err != nil {
		t.Fatal(err)
	}
	p.Config.Handler, p.broken = http.NotFoundHandler(), true
	now = now.Add(keysLife)
	if _, err := d.Authenticate(t.Context(), token()); err != nil {
		t.Errorf("an outage of the issuer became ours at once: %v", err)
	}
	now = now.Add(staleLife)
	if _, err := d.Authenticate(t.Context(), token()); !errors.Is(err, ErrUnknown) {
		t.Errorf("keys that nobody stands for any more still count: %v", err)
	}
}

func TestWithdrawnKey(t *testing.T) {
	p := newProvider(t)
	now := time.Now()
	d := directory(t, p, config.OIDC{}, func() time.Time { return now })
	withdrawn := p.keys["first"]
	token := func() string {
		p.mu.Lock()
		current := p.keys
		p.keys = map[string]*ecdsa.PrivateKey{"first": withdrawn}
		p.mu.Unlock()
		defer func() { p.mu.Lock(); p.keys = current; p.mu.Unlock() }()
		return p.sign(t, "first", good(p, now))
	}
	if _, err := d.Authenticate(t.Context(), token()); err != nil {
		t.Fatal(err)
	}
	p.rotate(t, "second")
	now = now.Add(keysLife)
	if _, err := d.Authenticate(t.Context(), token()); !errors.Is(err, ErrUnknown) {
		t.Errorf("a key that was withdrawn still counts: %v", err)
	}
}

func TestIssuerIsHalfSet(t *testing.T) {
	for name, o := range map[string]Options{
		"no client":   {OIDC: config.OIDC{Issuer: "https://id.example.org"}, Audience: ours},
		"no audience": {OIDC: config.OIDC{Issuer: "https://id.example.org"}, Client: http.DefaultClient},
	} {
		if _, err := New(nil, nil, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
