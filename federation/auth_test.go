package federation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/upstreamtest/leak"
)

// ourAudience is whom tokens for the gateway are meant for.
const ourAudience = "https://gate.example.org/mcp"

// An authRig is a gateway whose callers come with tokens of an authorization
// server, in front of a server "records" that takes exchanged tokens of the same.
type authRig struct {
	*rig
	auth    *authserver.Server
	records *authserver.Resource
	log     *lockedBuffer
	moved   atomic.Int64 // what the clock of gateway and authorization server is ahead by
}

func (r *authRig) clock() time.Time { return time.Now().Add(time.Duration(r.moved.Load())) }

func (r *authRig) advance(d time.Duration) { r.moved.Add(int64(d)) }

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newAuthRig takes more keys for [oidc] and for the server, and more tables.
func newAuthRig(t testing.TB, profile upstreamtest.Profile, oidcKeys, serverKeys, more string) *authRig {
	t.Helper()
	r := &authRig{auth: authserver.New(t), log: &lockedBuffer{}}
	r.rig = &rig{t: t, upstream: upstreamtest.New(profile), tokens: map[string]string{}, dir: t.TempDir()}
	secret := leak.Secret("client")
	r.auth.AddClient("gatehouse", secret)
	r.records = authserver.NewResource(t, r.auth, "mcp-api", r.upstream)
	t.Setenv("COMPANY_CLIENT", secret)
	t.Setenv("ALICE_SUBJECT", r.auth.UserToken("alice", "sign-in", nil))
	t.Setenv("BOB_SUBJECT", r.auth.UserToken("bob", "sign-in", nil))
	t.Setenv("RECORDS_DISCOVERY", r.auth.UserToken("importer", "mcp-api", nil))
	anna := r.auth.Issuer() + "|anna"

	var file strings.Builder
	fmt.Fprintf(&file, `
[listen]
address = "127.0.0.1:8620"
[network]
private_hosts = ["127.0.0.1"]
[oidc]
issuer = %q
audience = %q
%s
[[oidc.rule]]
claim = "groups"
value = "mcp-admins"
admin = true
trust_zone = "local"
max_calls_per_minute = 0
[[oidc.rule]]
claim = "realm.roles"
value = "reader"
trust_zone = "local"

[delegation.company]
token_endpoint = %q
client_id = "gatehouse"
client_secret = "env:COMPANY_CLIENT"
allowed_audiences = ["mcp-api"]
allowed_scopes = ["records.read"]
[delegation.company.grants.alice]
enabled = true
subject = "env:ALICE_SUBJECT"
allowed_audiences = ["mcp-api"]
allowed_scopes = ["records.read"]
[delegation.company.grants.bob]
enabled = true
subject = "env:BOB_SUBJECT"
allowed_audiences = ["mcp-api"]
allowed_scopes = ["records.read"]
[delegation.company.grants.%q]
enabled = true
subject = "caller_token"
allowed_audiences = ["mcp-api"]
allowed_scopes = ["records.read"]
`, r.auth.Issuer(), ourAudience, oidcKeys, r.auth.TokenEndpoint(), anna)
	for _, name := range []string{"alice", "bob", "root"} {
		token := leak.Token()
		r.tokens[name] = token
		fmt.Fprintf(&file, "[[caller]]\nname = %q\ntoken = \"sha256:%s\"\nadmin = true\ntrust_zone = \"local\"\nmax_calls_per_minute = 0\n", name, gate.DigestOf([]byte(token)))
	}
	fmt.Fprintf(&file, `
[[server]]
id = "records"
url = %q
data_class = "source_code"
requires_approval = false
%s
[server.auth]
mode = "delegated"
profile = "company"
audience = "mcp-api"
scopes = ["records.read"]
discovery_credential = "env:RECORDS_DISCOVERY"
%s
`, r.records.Endpoint(), serverKeys, more)
	r.now = r.clock
	r.auth.Configure(func(s *authserver.Settings) { s.Now = r.clock })
	r.logger = slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	t.Cleanup(func() { leak.Write(t, "debug.log", r.log.String()) })
	r.open(file.String())
	if _, err := r.g.Import(t.Context(), "records", false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.g.Enable(t.Context(), "test", "mcp_records"); err != nil {
		t.Fatal(err)
	}
	return r
}

// come makes who a caller with a token of the authorization server.
func (r *authRig) come(who, subject, audience string, more authserver.Claims) {
	r.tokens[who] = r.auth.UserToken(subject, audience, more)
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// A caller with a good token is admitted and gets what the first rule that fits
// gives; a new token of the same person goes on in the same session.
func TestOIDCCallerAdmitted(t *testing.T) {
	r := newAuthRig(t, upstreamtest.Profile{Modern: true}, "", "", "")
	admin := authserver.Claims{"groups": []string{"staff", "mcp-admins"}}
	r.come("anna", "anna", ourAudience, admin)
	r.come("ben", "ben", ourAudience, authserver.Claims{"realm": map[string]any{"roles": []string{"reader"}}})
	if x := r.modern("anna", "tools/list", `{}`, `{}`); !strings.Contains(x.raw, "mcp_records_echo") {
		t.Errorf("the administrator sees %d %s", x.status, x.raw)
	}
	if x := r.modern("ben", "tools/list", `{}`, `{}`); x.status != http.StatusOK || strings.Contains(x.raw, "mcp_records_echo") {
		t.Errorf("the reader sees %d %s", x.status, x.raw)
	}

	session := r.connect("anna", "2025-11-25", `{}`)
	old := r.tokens["anna"]
	r.come("anna", "anna", ourAudience, admin)
	if old == r.tokens["anna"] {
		t.Fatal("the token was not refreshed")
	}
	if x := session.call(1, "mcp_records_echo", `{"a":1}`); x.status != http.StatusOK || !strings.Contains(x.raw, `a\":1`) {
		t.Errorf("a refreshed token on the same session: %d %s", x.status, x.raw)
	}
	r.come("mallory", "mallory", ourAudience, admin)
	if x := r.post("mallory", ping, session.header()); x.status != http.StatusNotFound {
		t.Errorf("somebody else in anna's session: %d", x.status)
	}
	// The keys change under us. They are not asked for more often than now and
	// then, so that nobody can have us flood the issuer.
	r.auth.Rotate()
	r.advance(10 * time.Second)
	r.come("anna", "anna", ourAudience, admin)
	for tries := 0; ; tries++ {
		if x := session.send(ping); x.status == http.StatusOK {
			break
		} else if tries == 5 {
			t.Fatalf("a token under a new key: %d %s", x.status, x.raw)
		}
	}
	intent := r.entries(gate.KindIntent, 1)[0]
	if want := r.auth.Issuer() + "|anna"; string(intent.Caller) != want || intent.Via != "oidc" {
		t.Errorf("on record as %q via %q, want %q", intent.Caller, intent.Via, want)
	}
}

// Whoever is not admitted gets 401 with the way to a token, and is on record.
func TestOIDCCallerRefused(t *testing.T) {
	r := newAuthRig(t, upstreamtest.Profile{Modern: true}, `required_scope = "mcp"`, "", "")
	foreign := authserver.New(t)
	good := authserver.Claims{"groups": []string{"mcp-admins"}, "scope": "openid mcp"}
	with := func(more authserver.Claims) authserver.Claims {
		out := authserver.Claims{}
		for _, c := range []authserver.Claims{good, more} {
			for k, v := range c {
				out[k] = v
			}
		}
		return out
	}
	past, soon := time.Now().Add(-time.Minute).Unix(), time.Now().Add(time.Hour).Unix()
	tests := []struct{ name, reason, token string }{
		{"audience", "wrong_audience", r.auth.UserToken("anna", "https://other.example.org/mcp", good)},
		{"no audience", "wrong_audience", r.auth.UserToken("anna", "", with(authserver.Claims{"aud": nil}))},
		{"expiry", "token_expired", r.auth.UserToken("anna", ourAudience, with(authserver.Claims{"exp": past}))},
		{"no expiry", "token_expired", r.auth.UserToken("anna", ourAudience, with(authserver.Claims{"exp": nil}))},
		{"not yet", "token_expired", r.auth.UserToken("anna", ourAudience, with(authserver.Claims{"nbf": soon}))},
		{"issuer", "unknown_token", foreign.UserToken("anna", ourAudience, good)},
		{"issuer forged", "unknown_token", foreign.UserToken("anna", ourAudience, with(authserver.Claims{"iss": r.auth.Issuer()}))},
		{"issuer signed by ours", "wrong_issuer", r.auth.UserToken("anna", ourAudience, with(authserver.Claims{"iss": foreign.Issuer()}))},
		{"no rule", "no_rule", r.auth.UserToken("anna", ourAudience, with(authserver.Claims{"groups": []string{"staff"}}))},
		{"subject like a caller", "unknown_token", r.auth.UserToken("a|alice", ourAudience, good)},
	}
	for i, test := range tests {
		r.tokens["x"] = test.token
		x := r.post("x", ping, nil)
		if challenge := x.header.Get("WWW-Authenticate"); x.status != http.StatusUnauthorized || !strings.Contains(challenge, "resource_metadata=") || !strings.Contains(challenge, `error="invalid_token"`) {
			t.Errorf("%s: %d %q", test.name, x.status, challenge)
		}
		entries := r.entries(gate.KindAuthFailure, i+1)
		if len(entries) != i+1 || entries[i].Reason != test.reason || entries[i].Verdict != gate.Refused {
			t.Errorf("%s: %d entries, want %d; the last: %+v", test.name, len(entries), i+1, entries[len(entries)-1])
		}
	}
	r.advance(2 * time.Second) // or the address has used up its share of refusals
	r.tokens["x"] = r.auth.UserToken("anna", ourAudience, with(authserver.Claims{"scope": "openid"}))
	x := r.post("x", ping, nil)
	if challenge := x.header.Get("WWW-Authenticate"); x.status != http.StatusForbidden || !strings.Contains(challenge, `error="insufficient_scope", scope="mcp"`) || !strings.Contains(challenge, "resource_metadata=") {
		t.Errorf("scope: %d %q", x.status, challenge)
	}
	if entries := r.entries(gate.KindAuthFailure, len(tests)+1); len(entries) != len(tests)+1 || entries[len(tests)].Reason != "scope_missing" {
		t.Errorf("scope: %d entries, %+v", len(entries), entries[len(entries)-1])
	}
	r.tokens["x"] = r.auth.UserToken("anna", ourAudience, good)
	if x := r.post("x", ping, nil); x.status != http.StatusOK {
		t.Errorf("the good token: %d", x.status)
	}
	for _, test := range tests {
		if strings.Contains(r.log.String(), test.token[:40]) {
			t.Errorf("%s: the token is in the log", test.name)
		}
	}
}

// The upstream of a delegated call verifies and records a token of that caller:
// exchanged for the configured subject, or for the token the caller came with.
func TestDelegatedCallIsTheCallers(t *testing.T) {
	r := newAuthRig(t, upstreamtest.Profile{Modern: true}, "", "", "")
	r.come("anna", "anna", ourAudience, authserver.Claims{"groups": []string{"mcp-admins"}})
	for _, who := range []string{"alice", "bob", "anna"} {
		before := len(r.records.Visits())
		if x := r.modern(who, "tools/call", `{"name":"mcp_records_echo","arguments":{}}`, `{}`); x.verdict() != "ok" {
			t.Fatalf("%s: %s", who, x.raw)
		}
		visits := r.records.Visits()[before:]
		if len(visits) == 0 {
			t.Fatalf("%s: the upstream saw nobody", who)
		}
		for _, v := range visits {
			if v.Subject != who || v.Token == r.tokens[who] {
				t.Errorf("%s: the upstream saw %q", who, v.Subject)
			}
		}
	}
	for _, o := range r.entries(gate.KindOutcome, 3) {
		if o.Subject == "" || o.Audience != "mcp-api" {
			t.Errorf("outcome %+v", o)
		}
	}
	for _, form := range r.auth.TokenRequests() {
		if form.Has("resource") || form.Has("actor_token") || form.Get("scope") != "records.read" {
			t.Errorf("exchange with %v", slices.Collect(keysOf(form)))
		}
	}
}

func keysOf(m map[string][]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Who has no grant is refused before a single request: being an administrator
// makes none.
func TestCallerWithoutGrant(t *testing.T) {
	r := newAuthRig(t, upstreamtest.Profile{Modern: true}, "", "", "")
	exchanges, visits := len(r.auth.TokenRequests()), len(r.records.Visits())
	x := r.modern("root", "tools/call", `{"name":"mcp_records_echo","arguments":{}}`, `{}`)
	if x.verdict() != "not_sent" || !strings.Contains(x.raw, "no enabled grant") {
		t.Errorf("%d %s", x.status, x.raw)
	}
	if len(r.auth.TokenRequests()) != exchanges || len(r.records.Visits()) != visits || r.records.Denied() != 0 {
		t.Error("something was sent")
	}
	if o := r.entries(gate.KindOutcome, 1)[0]; o.Verdict != gate.NotSent || o.Reason != "caller_without_grant" {
		t.Errorf("outcome %+v", o)
	}
}

// A token that expires between two legs of one operation is renewed by another
// exchange, and the work goes out with the new one.
func TestExchangeExpiresBetweenLegs(t *testing.T) {
	r := newAuthRig(t, upstreamtest.Profile{Sessions: true}, "", `protocol = "2025-11-25"`, "")
	r.auth.Configure(func(s *authserver.Settings) { s.Life = 2 * time.Second })
	r.upstream.On("notifications/initialized", func(x *upstreamtest.Exchange) {
		r.advance(3 * time.Second) // more than the token's whole life
		x.Accept()
	})
	before, asked := len(r.records.Visits()), len(r.auth.TokenRequests())
	if x := r.modern("alice", "tools/call", `{"name":"mcp_records_echo","arguments":{}}`, `{}`); x.verdict() != "ok" {
		t.Fatal(x.raw)
	}
	visits := r.records.Visits()[before:]
	if exchanges := len(r.auth.TokenRequests()) - asked; exchanges != 2 {
		t.Errorf("%d exchanges, want 2", exchanges)
	}
	if len(visits) < 3 || visits[0].ID != visits[1].ID || visits[2].ID == visits[0].ID || visits[2].Subject != "alice" || r.records.Denied() != 0 {
		t.Errorf("initialize, initialized and the call came with %+v", visits)
	}
	var legs []string
	for _, l := range r.entries(gate.KindOutcome, 1)[0].Legs {
		legs = append(legs, l.Name)
	}
	if strings.Count(strings.Join(legs, " "), "token") != 2 {
		t.Errorf("legs on record: %v", legs)
	}
}

// Two callers at once, a thousand operations each, through the whole gateway:
// by the upstream's own record, never the other's token, and none twice.
func TestTwoCallersNeverShareAToken(t *testing.T) {
	operations := 1000
	if testing.Short() {
		operations = 50
	}
	r := newAuthRig(t, upstreamtest.Profile{Modern: true}, "", `protocol = "2026-07-28"`, "")
	before := len(r.records.Visits())
	var wg sync.WaitGroup
	for _, who := range []string{"alice", "bob"} {
		lane := make(chan int)
		for range 4 {
			wg.Go(func() {
				for i := range lane {
					body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"mcp_records_echo","arguments":{"who":%q},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, i, who)
					x := r.post(who, body, map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: "mcp_records_echo"})
					if x.verdict() != "ok" {
						t.Errorf("%s %d: %s", who, i, x.raw)
					}
				}
			})
		}
		wg.Go(func() {
			defer close(lane)
			for i := range operations {
				lane <- i
			}
		})
	}
	wg.Wait()
	// Who the arguments say is calling, as the upstream saw it, and whose token came.
	calls := map[string]int{}
	ids := map[string]bool{}
	visits := r.records.Visits()[before:]
	for _, v := range visits {
		if ids[v.ID] {
			t.Errorf("token %s served two operations", v.ID)
		}
		ids[v.ID] = true
	}
	for _, q := range r.upstream.Requests() {
		if q.Method != "tools/call" {
			continue
		}
		var arguments struct{ Who string }
		if err := json.Unmarshal(q.Param("arguments"), &arguments); err != nil {
			t.Fatal(err)
		}
		claims, err := r.auth.Verify(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer "), "mcp-api")
		if err != nil || claims.Text("sub") != arguments.Who {
			t.Fatalf("%s's call came with a token of %q: %v", arguments.Who, claims.Text("sub"), err)
		}
		calls[arguments.Who]++
	}
	if calls["alice"] != operations || calls["bob"] != operations || len(visits) != 2*operations {
		t.Errorf("calls %v, %d requests", calls, len(visits))
	}
}
