package credential

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest/authserver"
)

// delegation gives alice and bob a grant each; carol's is switched off.
func (s *setup) delegation(t *testing.T) Auth {
	t.Helper()
	grants := map[string]Grant{"carol": {Subject: ref(t, "vault:alice"), AllowedAudiences: []string{"mcp-api"}}}
	for _, user := range []string{"alice", "bob"} {
		s.secrets["vault:"+user] = s.server.subjectToken(user)
		grants[user] = Grant{Enabled: true, Subject: ref(t, "vault:"+user), AllowedAudiences: []string{"mcp-api"},
			AllowedScopes: []string{"records.read", "records.list"}}
	}
	grants[""] = Grant{Enabled: true, CallerToken: true, AllowedAudiences: []string{"mcp-api"}, AllowedScopes: []string{"records.read", "records.list"}}
	grants["https://issuer|u1"] = Grant{Enabled: true, CallerToken: true, AllowedAudiences: []string{"mcp-api"}}
	s.broker.Configure(map[string]Profile{"company": {Name: "company", TokenEndpoint: s.server.URL + "/token", ClientID: "gatehouse",
		ClientSecret: ref(t, "vault:client"), AllowedAudiences: []string{"mcp-api", "other"},
		AllowedScopes: []string{"records.read", "records.list", "records.write"}, Grants: grants}})
	return Auth{Mode: Delegated, Profile: "company", Audience: "mcp-api", Scopes: []string{"records.read", "records.list"}}
}

func TestDelegatedForm(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	session := open(t, s.broker, a, Execution("alice", SecretString("inbound")))
	token := bearerOf(t, session)
	claims, err := s.server.Verify(token, "mcp-api")
	if err != nil || claims["sub"] != "alice" {
		t.Fatalf("claims %v, %v", claims, err)
	}
	forms := s.server.TokenRequests()
	want := url.Values{
		"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":        {s.secrets["vault:alice"]},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:access_token"},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"audience":             {"mcp-api"},
		"scope":                {"records.list records.read"},
		"client_id":            {"gatehouse"},
		"client_secret":        {"client-Kp7MarkedSecretQz3"},
	}
	if len(forms) != 1 || forms[0].Encode() != want.Encode() {
		t.Errorf("forms %v", forms)
	}
	// One exchange serves all legs of the operation, and no other operation.
	if bearerOf(t, session) != token || len(session.Legs()) != 1 {
		t.Error("the second leg exchanged again")
	}
	if bearerOf(t, open(t, s.broker, a, Execution("alice", Secret{}))) == token {
		t.Error("another operation got the same token")
	}
	session.Close()
	_, _, err = session.Header(t.Context())
	wantError(t, err, ReasonClosed)
}

func TestDelegatedCallerToken(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	a.Scopes = nil
	inbound := s.server.subjectToken("u1")
	token := bearerOf(t, open(t, s.broker, a, Execution("https://issuer|u1", SecretString(inbound))))
	if claims, err := s.server.Verify(token, "mcp-api"); err != nil || claims["sub"] != "u1" {
		t.Fatalf("claims %v, %v", claims, err)
	}
	if form := s.server.TokenRequests()[0]; form.Get("subject_token") != inbound || form.Has("scope") {
		t.Error("the form is not that of the caller's own token")
	}
	_, _, err := open(t, s.broker, a, Execution("https://issuer|u1", Secret{})).Header(t.Context())
	wantError(t, err, ReasonSubject)
}

// Whoever is not covered is refused before anything is looked up or sent.
func TestDelegatedRefusals(t *testing.T) {
	s := newSetup(t)
	base := s.delegation(t)
	for _, test := range []struct {
		name   string
		caller gate.CallerName
		change func(*Auth)
		reason string
	}{
		{"nobody", "", nil, ReasonCallerWithout},
		{"stranger", "mallory", nil, ReasonCallerWithout},
		{"switched off", "carol", nil, ReasonCallerWithout},
		{"no profile", "alice", func(a *Auth) { a.Profile = "absent" }, ReasonCallerWithout},
		{"audience outside the profile", "alice", func(a *Auth) { a.Audience = "payroll" }, ReasonAudience},
		{"audience outside the grant", "alice", func(a *Auth) { a.Audience = "other" }, ReasonAudience},
		{"no audience", "alice", func(a *Auth) { a.Audience = "" }, ReasonAudience},
		{"scope outside the profile", "alice", func(a *Auth) { a.Scopes = []string{"admin"} }, ReasonScope},
		{"scope outside the grant", "alice", func(a *Auth) { a.Scopes = []string{"records.write"} }, ReasonScope},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := base
			if test.change != nil {
				test.change(&a)
			}
			_, err := s.broker.Open(a, Execution(test.caller, SecretString("inbound")))
			wantError(t, err, test.reason)
		})
	}
	unconfigured := NewBroker(Options{Secrets: s.secrets})
	_, err := unconfigured.Open(base, Execution("alice", Secret{}))
	wantError(t, err, ReasonCallerWithout)

	delete(s.secrets, "vault:alice")
	_, _, err = open(t, s.broker, base, Execution("alice", Secret{})).Header(t.Context())
	wantError(t, err, ReasonSubject)
	if got := len(s.server.TokenRequests()); got != 0 {
		t.Errorf("%d token requests were sent", got)
	}
}

// Import and test use the discovery credential and nothing else; a call never
// uses it.
func TestDelegatedDiscovery(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	_, err := s.broker.Open(a, Discovery())
	wantError(t, err, ReasonNoDiscovery)

	s.secrets["vault:discovery"] = "discovery-token"
	a.DiscoveryCredential = ref(t, "vault:discovery")
	if got := bearerOf(t, open(t, s.broker, a, Discovery())); got != "discovery-token" {
		t.Errorf("discovery sent %q", got)
	}
	_, err = s.broker.Open(a, Execution("mallory", Secret{}))
	wantError(t, err, ReasonCallerWithout)
	if len(s.server.TokenRequests()) != 0 {
		t.Error("discovery exchanged a token")
	}
}

// An expired token is replaced by a new exchange, for which everything is
// checked and looked up again.
func TestDelegatedRenewal(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	session := open(t, s.broker, a, Execution("alice", Secret{}))
	token := bearerOf(t, session)
	s.clock.advance(299 * time.Second)
	if bearerOf(t, session) != token {
		t.Error("renewed before its time")
	}
	s.clock.advance(2 * time.Second) // past 300 s, though the server said an hour
	renewed := bearerOf(t, session)
	if renewed == token || len(session.Legs()) != 2 {
		t.Error("not renewed after 300 seconds")
	}
	s.clock.advance(301 * time.Second)
	profiles := *s.broker.profiles.Load()
	s.broker.Configure(map[string]Profile{})
	_, _, err := session.Header(t.Context())
	wantError(t, err, ReasonCallerWithout)
	s.broker.Configure(profiles)
	delete(s.secrets, "vault:alice")
	_, _, err = session.Header(t.Context())
	wantError(t, err, ReasonSubject)
	if session.(*delegated).token.Len() != 0 {
		t.Error("an expired token is still held")
	}
}

// The answers of a token endpoint that are refused, and why.
func TestDelegatedAnswers(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	s.secrets["vault:alice"] = "opaque-subject" // names no audience that could give an echo away
	const urn = `"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"`
	ok := func(access string) string {
		return `{"access_token":` + access + `,"token_type":"bearer",` + urn + `,"expires_in":60}`
	}
	foreign := s.server.UserToken("alice", "payroll", nil)
	several := s.server.UserToken("alice", "", authserver.Claims{"aud": []string{"payroll", "mcp-api"}})
	for _, test := range []struct {
		name   string
		status int
		body   string
		reason string // "" = accepted
	}{
		{"accepted", 200, ok(`"t"`), ""},
		{"accepted, unknown members", 201, `{"x":{"y":[1]},"access_token":"t","token_type":"BEARER",` + urn + `,"expires_in":1.5,"scope":"records.read"}`, ""},
		{"accepted, our audience among several", 200, ok(`"` + several + `"`), ""},
		{"accepted, longest token", 200, ok(`"` + strings.Repeat("t", 8192) + `"`), ""},
		{"refused", 400, `{"error":"invalid_grant","error_description":"token at-Kp7MarkedSecretQz3 expired"}`, ReasonRefused},
		{"redirect", 302, "", ReasonRefused},
		{"only a token", 200, `{"access_token":"at-Kp7MarkedSecretQz3"}`, ReasonMalformed},
		{"not JSON", 200, `access_token=at-Kp7MarkedSecretQz3`, ReasonMalformed},
		{"empty", 200, ``, ReasonMalformed},
		{"array", 200, `[` + ok(`"t"`) + `]`, ReasonMalformed},
		{"two values", 200, ok(`"t"`) + ok(`"t"`), ReasonMalformed},
		{"token twice", 200, `{"access_token":"t","access_token":"u","token_type":"bearer",` + urn + `,"expires_in":60}`, ReasonMalformed},
		{"key twice, deep inside", 200, strings.Replace(ok(`"t"`), "60", `60,"x":[{"a":1,"a":2}]`, 1), ReasonMalformed},
		{"key in other case", 200, strings.Replace(ok(`"t"`), "access_token", "Access_Token", 1), ReasonMalformed},
		{"token empty", 200, ok(`""`), ReasonMalformed},
		{"token with a line end", 200, ok(`"at-secret\n9f2c"`), ReasonMalformed},
		{"token with a space", 200, ok(`"at-secret 9f2c"`), ReasonMalformed},
		{"token not a string", 200, ok(`7`), ReasonMalformed},
		{"token too long", 200, ok(`"` + strings.Repeat("t", 8193) + `"`), ReasonMalformed},
		{"reply too large", 200, ok(`"t"`) + strings.Repeat(" ", maxReply), ReasonMalformed},
		{"mac token", 200, strings.Replace(ok(`"t"`), "bearer", "mac", 1), ReasonMalformed},
		{"refresh token issued", 200, strings.Replace(ok(`"t"`), "token-type:access_token", "token-type:refresh_token", 1), ReasonMalformed},
		{"no issued type", 200, `{"access_token":"t","token_type":"bearer","expires_in":60}`, ReasonMalformed},
		{"no lifetime", 200, `{"access_token":"t","token_type":"bearer",` + urn + `}`, ReasonMalformed},
		{"lifetime a string", 200, strings.Replace(ok(`"t"`), "60", `"60"`, 1), ReasonMalformed},
		{"lifetime 0", 200, strings.Replace(ok(`"t"`), "60", "0", 1), ReasonMalformed},
		{"lifetime below 1", 200, strings.Replace(ok(`"t"`), "60", "0.99", 1), ReasonMalformed},
		{"lifetime negative", 200, strings.Replace(ok(`"t"`), "60", "-60", 1), ReasonMalformed},
		{"lifetime immense", 200, strings.Replace(ok(`"t"`), "60", "1e999", 1), ""},
		{"scope wider", 200, strings.Replace(ok(`"t"`), "60", `60,"scope":"records.read records.write"`, 1), ReasonMalformed},
		{"scope a list", 200, strings.Replace(ok(`"t"`), "60", `60,"scope":["records.read"]`, 1), ReasonMalformed},
		{"echo of the subject", 200, ok(`"` + s.secrets["vault:alice"] + `"`), ReasonMalformed},
		{"for somebody else", 200, ok(`"` + foreign + `"`), ReasonMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.server.answerJSON(test.status, test.body)
			_, _, err := open(t, s.broker, a, Execution("alice", Secret{})).Header(t.Context())
			if test.reason == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantError(t, err, test.reason)
		})
	}
	for _, contentType := range []string{"text/plain", "application/jwt", "", "application/json; charset"} {
		s.server.answer(func(w http.ResponseWriter, _ url.Values) bool {
			w.Header()["Content-Type"] = []string{contentType}
			fmt.Fprint(w, ok(`"t"`))
			return true
		})
		_, _, err := open(t, s.broker, a, Execution("alice", Secret{})).Header(t.Context())
		wantError(t, err, ReasonMalformed)
	}
}

// The life of a token is counted from before the request: a slow endpoint does
// not lengthen it, and what arrives as good as expired is not used.
func TestDelegatedSlowEndpoint(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	s.server.answer(func(w http.ResponseWriter, _ url.Values) bool {
		s.clock.advance(9500 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"t","token_type":"bearer","issued_token_type":"urn:ietf:params:oauth:token-type:access_token","expires_in":10}`)
		return true
	})
	_, _, err := open(t, s.broker, a, Execution("alice", Secret{})).Header(t.Context())
	wantError(t, err, ReasonExpired)
}

func TestDelegatedBudget(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	release := make(chan struct{})
	defer close(release)
	s.server.answer(func(http.ResponseWriter, url.Values) bool { <-release; return false })
	for want, limit := range map[string]func() (context.Context, context.CancelFunc){
		ReasonBudget: func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 20*time.Millisecond)
		},
		ReasonCancelled: func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		ctx, cancel := limit()
		_, _, err := open(t, s.broker, a, Execution("alice", Secret{})).Header(ctx)
		cancel()
		wantError(t, err, want)
	}
}

// Two callers at once, a thousand operations each: the upstream's own record
// says whose token came with which call, and none came twice.
func TestDelegatedNeverMixesCallers(t *testing.T) {
	s := newSetup(t)
	a := s.delegation(t)
	var mu sync.Mutex
	seen := map[[32]byte]string{} // token -> operation
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		claims, err := s.server.Verify(token, "mcp-api")
		if err != nil || claims["sub"] != r.Header.Get("X-Expected") {
			http.Error(w, fmt.Sprint(claims["sub"], err), http.StatusForbidden)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		operation := r.Header.Get("X-Operation")
		if other, used := seen[sumOf(token)]; used && other != operation {
			http.Error(w, "token of operation "+other, http.StatusConflict)
		}
		seen[sumOf(token)] = operation
	}))
	defer upstream.Close()

	const operations = 1000
	call := func(caller string, n int) error {
		session, err := s.broker.Open(a, Execution(gate.CallerName(caller), Secret{}))
		if err != nil {
			return err
		}
		defer session.Close()
		for range 2 { // two legs
			name, value, err := session.Header(t.Context())
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, upstream.URL, nil)
			if err != nil {
				return err
			}
			req.Header.Set(name, value)
			req.Header.Set("X-Expected", caller)
			req.Header.Set("X-Operation", fmt.Sprint(caller, n))
			resp, err := upstream.Client().Do(req)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("%s operation %d: HTTP %d", caller, n, resp.StatusCode)
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	for _, caller := range []string{"alice", "bob"} {
		for worker := range 4 {
			wg.Go(func() {
				for n := worker; n < operations; n += 4 {
					if err := call(caller, n); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if len(seen) != 2*operations || len(s.server.TokenRequests()) != 2*operations {
		t.Errorf("%d tokens seen and %d exchanges, want %d of each", len(seen), len(s.server.TokenRequests()), 2*operations)
	}
	subjects := map[string]int{}
	for _, form := range s.server.TokenRequests() {
		subjects[form.Get("subject_token")]++
	}
	for _, n := range subjects {
		if n != operations {
			t.Errorf("a subject was exchanged %d times, want %d", n, operations)
		}
	}
}
