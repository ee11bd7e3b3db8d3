package caller

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"gatehouse/federation/config"
)

// A person has a while at the issuer, and no longer: an address that was left in
// a browser must not sign somebody in the day after.
func TestSignInTime(t *testing.T) {
	const back = "https://gate.example.org/back"
	p := newProvider(t)
	begun := time.Now()
	now := begun
	d := directory(t, p, config.OIDC{Console: config.ConsoleClient{ClientID: "pages"}}, func() time.Time { return now })
	address, kept, err := d.BeginSignIn(t.Context(), back)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	answer := url.Values{"state": {at.Query().Get("state")}, "code": {"code"}}
	// This provider has no token endpoint, so an answer that counts ends there.
	for _, test := range []struct {
		after  time.Duration
		counts bool
	}{{0, true}, {SignInTime - 2*time.Second, true}, {SignInTime, false}, {-time.Minute, false}} {
		now = begun.Add(test.after)
		_, err := d.FinishSignIn(t.Context(), back, kept, answer)
		if refused, yes := errors.AsType[*RefusedError](err); test.counts != errors.Is(err, ErrIssuer) || !test.counts && (!yes || refused.Reason != ReasonState) {
			t.Errorf("%s later: %v", test.after, err)
		}
	}
	now = begun
	if _, err := d.FinishSignIn(t.Context(), back+"/elsewhere", kept, answer); ReasonOf(err) != ReasonState {
		t.Errorf("an answer that was to go elsewhere counts: %v", err)
	}
	for _, broken := range []string{"", ".", "x", "1.x", kept + "x", "x" + kept, kept[:len(kept)-4]} {
		if _, err := d.FinishSignIn(t.Context(), back, broken, answer); ReasonOf(err) != ReasonState {
			t.Errorf("%q counts: %v", broken, err)
		}
	}
}

// Where the issuer sends people, and where we send its code, nobody reads along.
func TestConfidential(t *testing.T) {
	for address, want := range map[string]bool{
		"https://id.example.org/token": true, "http://127.0.0.1:7/token": true, "http://localhost/token": true, "http://[::1]/token": true,
		"http://id.example.org/token": false, "http://127.0.0.1.example.org/": false, "": false, "/token": false, "javascript:alert(1)": false,
		"https://user@id.example.org/": false, "https://id.example.org/#x": false,
	} {
		if got := confidential(address); got != want {
			t.Errorf("confidential(%q) = %v", address, got)
		}
	}
}
