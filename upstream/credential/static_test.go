package credential

import (
	"testing"
)

func TestStaticModes(t *testing.T) {
	secrets := secretMap{"env:TOKEN": "s3cret", "env:BROKEN": "a\nb"}
	b := NewBroker(Options{Secrets: secrets})
	for _, test := range []struct {
		name        string
		auth        Auth
		header, val string
		reason      string
	}{
		{"zero", Auth{}, "", "", ""},
		{"none", Auth{Mode: None}, "", "", ""},
		{"bearer", Auth{Mode: Bearer, Credential: ref(t, "env:TOKEN")}, "Authorization", "Bearer s3cret", ""},
		{"header", Auth{Mode: Header, Header: "X-Api-Key", Credential: ref(t, "env:TOKEN")}, "X-Api-Key", "s3cret", ""},
		{"unset", Auth{Mode: Bearer, Credential: ref(t, "env:UNSET")}, "", "", ReasonUnresolved},
		{"unfit", Auth{Mode: Header, Header: "X-Api-Key", Credential: ref(t, "env:BROKEN")}, "", "", ReasonUnresolved},
		{"undeclared", Auth{Mode: Bearer}, "", "", ReasonUnresolved},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, purpose := range []Purpose{Execution("alice", Secret{}), Discovery()} {
				s, err := b.Open(test.auth, purpose)
				if err != nil {
					t.Fatal(err)
				}
				header, value, err := s.Header(t.Context())
				if header != test.header || value != test.val {
					t.Errorf("got %q: %q", header, value)
				}
				if test.reason != "" {
					wantError(t, err, test.reason)
				} else if err != nil {
					t.Error(err)
				}
				s.Close()
				if _, _, err := s.Header(t.Context()); err == nil {
					t.Error("a closed session still gives its credential")
				}
				if len(s.Legs()) != 0 {
					t.Error("a static credential took a request")
				}
			}
		})
	}
	// A secret rotated in the middle of an operation is the one that is sent.
	s, err := b.Open(Auth{Mode: Bearer, Credential: ref(t, "env:TOKEN")}, Discovery())
	if err != nil {
		t.Fatal(err)
	}
	bearerOf(t, s)
	secrets["env:TOKEN"] = "rotated"
	if got := bearerOf(t, s); got != "rotated" {
		t.Errorf("got %q after the rotation", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	b := NewBroker(Options{Secrets: secretMap{}})
	_, err := b.Open(Auth{Mode: None}, Purpose{})
	wantError(t, err, ReasonCallerWithout)
	_, err = b.Open(Auth{Mode: "basic"}, Discovery())
	wantError(t, err, ReasonUnresolved)
}

// Whatever changes as whom we call changes the identity, and with it the pins.
func TestIdentity(t *testing.T) {
	base := Auth{Mode: Delegated, Profile: "company", Audience: "api", Scopes: []string{"a", "b"}}
	same := base
	same.Scopes = []string{"b", "a"}
	if base.Identity() != same.Identity() {
		t.Error("the order of scopes is no change")
	}
	if (Auth{}).Identity() != (Auth{Mode: None}).Identity() {
		t.Error("no table and mode none are the same")
	}
	seen := map[string]bool{base.Identity(): true}
	for i, change := range []func(*Auth){
		func(a *Auth) { a.Mode = Bearer }, func(a *Auth) { a.Credential = ref(t, "env:X") }, func(a *Auth) { a.Header = "X-K" },
		func(a *Auth) { a.TokenEndpoint = "https://x" }, func(a *Auth) { a.ClientID = "c" }, func(a *Auth) { a.ClientSecret = ref(t, "env:S") },
		func(a *Auth) { a.Profile = "other" }, func(a *Auth) { a.Audience = "other" }, func(a *Auth) { a.Scopes = nil },
		func(a *Auth) { a.DiscoveryCredential = ref(t, "env:D") }, func(a *Auth) { a.Issuer = "https://i" }, func(a *Auth) { a.Resource = "r" },
	} {
		changed := base
		change(&changed)
		if seen[changed.Identity()] {
			t.Errorf("change %d does not show", i)
		}
		seen[changed.Identity()] = true
	}
}
