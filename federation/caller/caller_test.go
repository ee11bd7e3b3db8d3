package caller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// values answers references from a map and counts how often it is asked.
type values struct {
	byName map[string]string
	asked  int
}

func (v *values) Resolve(_ context.Context, r credential.Reference) (credential.Secret, error) {
	v.asked++
	s, ok := v.byName[r.Name()]
	if !ok {
		return credential.Secret{}, errors.New("unset")
	}
	return credential.SecretString(s), nil
}

func reference(t *testing.T, s string) config.Token {
	t.Helper()
	r, err := credential.ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return config.Token{Reference: r}
}

func named(name string, token config.Token) config.Caller {
	return config.Caller{Caller: gate.Caller{Name: gate.CallerName(name)}, Token: token}
}

func TestAuthenticate(t *testing.T) {
	secret, digest := NewToken()
	callers := []config.Caller{
		named("digest", config.Token{Digest: digest}),
		named("reference", reference(t, "env:TOKEN")),
		named("unset", reference(t, "env:UNSET")),
		named("empty", reference(t, "env:EMPTY")),
		named("nothing", config.Token{}),
	}
	d, err := New(callers, &values{byName: map[string]string{"TOKEN": "from-env", "EMPTY": ""}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ bearer, want string }{
		{secret, "digest"},
		{"from-env", "reference"},
		{"", ""},
		{" " + secret, ""},
		{secret[:len(secret)-1], ""},
		{"sha256:" + digest.String(), ""},
		{digest.String(), ""},
		{strings.Repeat("x", maxToken+1), ""},
	} {
		got, err := d.Authenticate(t.Context(), c.bearer)
		switch {
		case c.want == "" && (got != nil || !errors.Is(err, ErrUnknown)):
			t.Errorf("%q: got %v, %v, want nobody", c.bearer, got, err)
		case c.want != "" && (err != nil || string(got.Name) != c.want || got.AuthenticatedBy != "token"):
			t.Errorf("%q: got %+v, %v, want %s by token", c.bearer, got, err, c.want)
		}
	}
	if d.Named("digest") == nil || d.Named("other") != nil {
		t.Error("Named knows the wrong callers")
	}
}

func TestRotatedSecretCounts(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	secrets := &values{byName: map[string]string{"TOKEN": "old"}}
	d, err := New([]config.Caller{named("a", reference(t, "env:TOKEN"))}, secrets, Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := d.Authenticate(t.Context(), "old"); err != nil {
			t.Fatal(err)
		}
	}
	if secrets.asked != 1 {
		t.Errorf("the reference was resolved %d times for requests of one moment, want once", secrets.asked)
	}
	secrets.byName["TOKEN"] = "new"
	now = now.Add(referenceLife)
	if _, err := d.Authenticate(t.Context(), "old"); !errors.Is(err, ErrUnknown) {
		t.Errorf("the old token still works: %v", err)
	}
	if _, err := d.Authenticate(t.Context(), "new"); err != nil {
		t.Errorf("the new token does not work: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, callers := range map[string][]config.Caller{
		"no name": {named("", config.Token{})},
		"twice":   {named("a", config.Token{}), named("a", config.Token{})},
	} {
		if _, err := New(callers, nil, Options{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	a, da := NewToken()
	b, _ := NewToken()
	if a == b || !strings.HasPrefix(a, tokenPrefix) || len(a) < 40 || da != gate.DigestOf([]byte(a)) {
		t.Errorf("tokens %q, %q, digest %s", a, b, da)
	}
}

func TestMetadata(t *testing.T) {
	for public, want := range map[string]string{
		"https://g.example.org":      "https://g.example.org/mcp",
		"https://g.example.org/":     "https://g.example.org/mcp",
		"https://g.example.org/mcp":  "https://g.example.org/mcp",
		"https://g.example.org/team": "https://g.example.org/team/mcp",
	} {
		if got := Resource(public); got != want {
			t.Errorf("Resource(%q) is %q, want %q", public, got, want)
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(Metadata("https://g.example.org", config.OIDC{Issuer: "https://id.example.org", RequiredScope: "mcp"}), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["resource"] != "https://g.example.org/mcp" || doc["authorization_servers"].([]any)[0] != "https://id.example.org" || doc["scopes_supported"].([]any)[0] != "mcp" {
		t.Errorf("got %v", doc)
	}
	if strings.Contains(string(Metadata("https://g.example.org", config.OIDC{})), "authorization_servers") {
		t.Error("an authorization server is named where there is none")
	}
}
