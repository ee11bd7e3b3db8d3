package scenarios

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/upstreamtest/leak"
)

// ourAudience is whom tokens for the gateway are meant for.
const ourAudience = "https://gate.example.org/mcp"

// An identity is an authorization server before two MCP servers that verify its
// tokens: "records" takes tokens exchanged for the caller, "hosted" those of a
// login. Both run in the test's process, the gateway and the order desk that
// does the work in theirs.
type identity struct {
	*rig.Gatehouse
	auth            *authserver.Server
	records, hosted *authserver.Resource
}

// admin is what the token of an administrator says of its bearer.
var admin = authserver.Claims{"groups": []string{"staff", "mcp-admins"}}

// newIdentity starts all of it and imports "records". wrap, when not nil, stands
// before the work of records; recordsKeys is added to its table.
func newIdentity(t *testing.T, wrap func(http.Handler) http.Handler, work http.Handler, recordsKeys string) *identity {
	t.Helper()
	i := &identity{auth: authserver.New(t)}
	secret := leak.Secret("client")
	i.auth.AddClient("gatehouse", secret)
	if work == nil {
		work = desk(t)
	}
	behind := work
	if wrap != nil {
		behind = wrap(work)
	}
	i.records = authserver.NewResource(t, i.auth, "mcp-api", behind)
	i.hosted = authserver.NewResource(t, i.auth, "", work)
	t.Setenv("COMPANY_CLIENT", secret)
	t.Setenv("ALICE_SUBJECT", i.auth.UserToken("alice", "sign-in", nil))
	t.Setenv("BOB_SUBJECT", i.auth.UserToken("bob", "sign-in", nil))
	t.Setenv("RECORDS_DISCOVERY", i.auth.UserToken("importer", "mcp-api", nil))

	people := []rig.Caller{{Name: "alice", Admin: true, Zone: "local"}, {Name: "bob", Admin: true, Zone: "local"}, {Name: "root", Admin: true, Zone: "local"}}
	i.Gatehouse = rig.New(t, rig.Settings{Callers: people})
	i.Configure(t, rig.Settings{Callers: people, Servers: []rig.Upstream{
		{ID: "records", URL: i.records.Endpoint(), Free: true, Extra: recordsKeys + `
[server.auth]
mode = "delegated"
profile = "company"
audience = "mcp-api"
scopes = ["records.read"]
discovery_credential = "env:RECORDS_DISCOVERY"`},
		{ID: "hosted", URL: i.hosted.Endpoint(), Free: true, Extra: "[server.auth]\nmode = \"oauth\""},
	}, Extra: i.Vault(t) + fmt.Sprintf(`
[oidc]
issuer = %q
audience = %q
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
`, i.auth.Issuer(), ourAudience, i.auth.TokenEndpoint()) +
		grant("alice", "env:ALICE_SUBJECT") + grant("bob", "env:BOB_SUBJECT") + grant(i.auth.Issuer()+"|anna", "caller_token")})
	i.Serve(t)
	i.Do(t, "import", "records")
	i.Do(t, "tools", "enable", "mcp_records_*")
	t.Cleanup(func() { i.leave(t) })
	return i
}

func grant(who, subject string) string {
	return fmt.Sprintf("[delegation.company.grants.%q]\nenabled = true\nsubject = %q\nallowed_audiences = [\"mcp-api\"]\nallowed_scopes = [\"records.read\"]\n", who, subject)
}

// desk is a way to an order desk.
func desk(t *testing.T) http.Handler {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(rig.Orders(t).URL, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}

// leave keeps what somebody could read of the gateway: its metrics, its ledger,
// and what it says when it is made to dump all that runs.
func (i *identity) leave(t *testing.T) {
	if !leak.Kept() || t.Failed() {
		return
	}
	if response, err := http.Get(i.Base + "/metrics"); err == nil {
		text, _ := io.ReadAll(response.Body) // an unfinished page is searched as well
		response.Body.Close()
		leak.Write(t, "metrics", string(text))
	}
	for _, command := range [][]string{{"audit", "export"}, {"servers", "list", "--json"}, {"secret", "list"}, {"doctor"}} {
		i.Run(t, command...)
	}
	if dump := i.Daemon().Dump(t); !strings.Contains(dump, "goroutine ") {
		t.Errorf("there is no dump to search: %s", dump)
	}
}

// as opens a 2026 client that comes with a token.
func (i *identity) as(t *testing.T, token string) client.Client {
	t.Helper()
	return client.Go(t, client.Options{URL: i.URL, Token: token, Answer: client.None})
}

func merge(all ...authserver.Claims) authserver.Claims {
	merged := authserver.Claims{}
	for _, c := range all {
		maps.Copy(merged, c)
	}
	return merged
}

// A caller with a good token gets in with either client, and gets what the first
// rule that fits gives.
func TestOIDCCallerAdmittedAndMapped(t *testing.T) {
	i := newIdentity(t, nil, nil, "")
	anna := i.auth.UserToken("anna", ourAudience, admin)
	ben := i.auth.UserToken("ben", ourAudience, authserver.Claims{"realm": map[string]any{"roles": []string{"reader"}}})
	eachKind(t, func(t *testing.T, k client.Kind) {
		last := i.Last(t)
		c := k.Open(t, client.Options{URL: i.URL, Token: anna, Answer: client.None})
		if r := c.Call(t, "mcp_records_echo", order); !r.OK() || r.Text() != order {
			t.Errorf("the administrator's call: %s", r)
		}
		if intents := only(i.Since(t, last, "outcome"), "intent"); len(intents) != 1 || intents[0].Caller != i.auth.Issuer()+"|anna" {
			t.Errorf("on record: %+v", intents)
		}
		reader := k.Open(t, client.Options{URL: i.URL, Token: ben, Answer: client.None})
		if names := remote(reader.List(t)); len(names) != 0 {
			t.Errorf("who is no administrator sees %v", names)
		}
	})
}

func TestOIDCCallerRefused(t *testing.T) {
	i := newIdentity(t, nil, nil, "")
	foreign := authserver.New(t)
	past := time.Now().Add(-time.Minute).Unix()
	tests := []struct{ name, reason, token string }{
		{"audience", "wrong_audience", i.auth.UserToken("anna", "https://other.example.org/mcp", admin)},
		{"expiry", "token_expired", i.auth.UserToken("anna", ourAudience, merge(admin, authserver.Claims{"exp": past}))},
		{"issuer", "unknown_token", foreign.UserToken("anna", ourAudience, admin)},
		{"issuer forged", "unknown_token", foreign.UserToken("anna", ourAudience, merge(admin, authserver.Claims{"iss": i.auth.Issuer()}))},
		{"issuer signed by ours", "wrong_issuer", i.auth.UserToken("anna", ourAudience, merge(admin, authserver.Claims{"iss": foreign.Issuer()}))},
		{"no rule", "no_rule", i.auth.UserToken("anna", ourAudience, authserver.Claims{"groups": []string{"staff"}})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			time.Sleep(1100 * time.Millisecond) // an address may fail ten times a second
			last := i.Last(t)
			challenge := i.challenge(t, test.token)
			if !strings.Contains(challenge, `error="invalid_token"`) || !strings.Contains(challenge, "resource_metadata=") {
				t.Errorf("the challenge is %q", challenge)
			}
			client.GoRefused(t, client.Options{URL: i.URL, Token: test.token, Answer: client.None})
			failures := only(i.Since(t, last, "auth_failure"), "auth_failure")
			if len(failures) == 0 {
				t.Fatal("nothing is on record")
			}
			for _, f := range failures {
				if f.Reason != test.reason || f.Verdict != "refused" {
					t.Errorf("on record: %+v; want reason %q", f, test.reason)
				}
			}
		})
	}
	if r := i.as(t, i.auth.UserToken("anna", ourAudience, admin)).Call(t, "mcp_records_echo", order); !r.OK() {
		t.Errorf("the good token: %s", r)
	}
}

// challenge makes one request that must end with 401.
func (i *identity) challenge(t *testing.T, token string) string {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, i.URL, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("answered %s, want 401", response.Status)
	}
	return response.Header.Get("WWW-Authenticate")
}

// A session of the 2025 era goes on with the next token of the same person, also
// under another key, and with nobody else's.
func TestRefreshedTokenKeepsTheSession(t *testing.T) {
	i := newIdentity(t, nil, nil, "")
	var bearer client.Bearer
	first := i.auth.UserToken("anna", ourAudience, admin)
	bearer.Set(first)
	session := bearer.Session(t, i.URL)
	id := session.ID()
	if id == "" {
		t.Fatal("there is no session")
	}
	call := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "mcp_records_echo", Arguments: map[string]any{}})
		if err == nil && r.IsError {
			err = fmt.Errorf("the tool failed: %+v", r.Content)
		}
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	second := i.auth.UserToken("anna", ourAudience, admin)
	if second == first {
		t.Fatal("the token was not refreshed")
	}
	bearer.Set(second)
	if err := call(); err != nil || session.ID() != id {
		t.Errorf("the refreshed token: %v; the session was %q and is %q", err, id, session.ID())
	}
	bearer.Set(i.auth.UserToken("mallory", ourAudience, admin))
	if call() == nil {
		t.Error("somebody else went on in anna's session")
	}
}

// The upstream verifies and records whose tokens it sees: those exchanged for
// the caller, from the configured subject or from the token the caller came with.
func TestDelegatedCallIsTheCallers(t *testing.T) {
	i := newIdentity(t, nil, nil, "")
	tokens := map[string]string{"alice": i.Token(t, "alice"), "bob": i.Token(t, "bob"), "anna": i.auth.UserToken("anna", ourAudience, admin)}
	for _, who := range []string{"alice", "bob", "anna"} {
		before := len(i.records.Visits())
		if r := i.as(t, tokens[who]).Call(t, "mcp_records_echo", order); !r.OK() {
			t.Fatalf("%s: %s", who, r)
		}
		visits := i.records.Visits()[before:]
		if len(visits) == 0 {
			t.Errorf("%s: the upstream saw nobody", who)
		}
		for _, v := range visits {
			if v.Subject != who || v.Token == tokens[who] {
				t.Errorf("%s: the upstream saw a token of %q", who, v.Subject)
			}
		}
	}
	if n := i.records.Denied(); n != 0 {
		t.Errorf("%d requests came without a good token", n)
	}
}

// Being an administrator makes no grant, and without one nothing is sent.
func TestCallerWithoutGrantSendsNothing(t *testing.T) {
	i := newIdentity(t, nil, nil, "")
	exchanges, visits, last := len(i.auth.TokenRequests()), len(i.records.Visits()), i.Last(t)
	r := i.as(t, i.Token(t, "root")).Call(t, "mcp_records_echo", order)
	if r.OK() || r.Outcome() != "not_sent" {
		t.Errorf("a caller without a grant: %s", r)
	}
	if len(i.auth.TokenRequests()) != exchanges || len(i.records.Visits()) != visits || i.records.Denied() != 0 {
		t.Error("something was sent")
	}
	if o := only(i.Since(t, last, "outcome"), "outcome"); len(o) != 1 || o[0].Reason != "caller_without_grant" {
		t.Errorf("on record: %+v", o)
	}
}

// A token that expires while one operation is between its legs is replaced by
// another exchange before the next leg goes out.
func TestExpiredExchangeIsRenewedBetweenLegs(t *testing.T) {
	const life = 4 * time.Second
	server := mcp.NewServer(&mcp.Implementation{Name: "records", Version: "1.0.0"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: map[string]any{"type": "object"}}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	slow := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			recorded := httptest.NewRecorder()
			next.ServeHTTP(recorded, r)
			if recorded.Code == http.StatusAccepted { // notifications/initialized
				time.Sleep(life)
			}
			maps.Copy(w.Header(), recorded.Header())
			w.WriteHeader(recorded.Code)
			w.Write(recorded.Body.Bytes())
		})
	}
	sessions := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true})
	i := newIdentity(t, slow, sessions, `protocol = "2025-11-25"`)
	i.auth.Configure(func(s *authserver.Settings) { s.Life = life })
	before, asked := len(i.records.Visits()), len(i.auth.TokenRequests())
	if r := i.as(t, i.Token(t, "alice")).Call(t, "mcp_records_echo", order); !r.OK() || r.Text() != order {
		t.Fatalf("the call: %s", r)
	}
	if n := len(i.auth.TokenRequests()) - asked; n < 2 {
		t.Errorf("%d exchanges, want one before and one after the token's life", n)
	}
	visits := i.records.Visits()[before:]
	if len(visits) < 3 || visits[0].ID != visits[1].ID || visits[2].ID == visits[0].ID || i.records.Denied() != 0 {
		t.Errorf("initialize, initialized and the call came with %+v; %d were denied", visits, i.records.Denied())
	}
	for _, v := range visits {
		if v.Subject != "alice" {
			t.Errorf("a leg came with a token of %q", v.Subject)
		}
	}
}
