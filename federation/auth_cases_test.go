package federation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/upstreamtest/leak"
)

// inbound is what a client sends beside the call itself.
var inbound = map[string]string{
	"Cookie":           "s=cookie-of-the-client",
	"X-Api-Key":        "key-of-the-client",
	"X-Key":            "other-key-of-the-client",
	"X-Forwarded-For":  "198.51.100.77",
	"Forwarded":        "for=198.51.100.78",
	"Traceparent":      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	"Mcp-Param-Region": "region-of-the-client",
	"User-Agent":       "agent-of-the-client",
	"Via":              "1.1 proxy-of-the-client",
	"Baggage":          "user=client-baggage",
}

// ownHeaders are the headers that an upstream may see, whoever calls.
var ownHeaders = []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent", "Traceparent",
	"Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"}

// Upstream requests are built from nothing: the configured credential, what the
// transport needs, and what follows from the body.
func TestC48NothingInboundGoesUpstream(t *testing.T) {
	t.Setenv("BEARER", "bearer-of-the-gateway")
	t.Setenv("KEY", "key-of-the-gateway")
	for _, test := range []struct{ name, auth, header, value string }{
		{"none", "", "", ""},
		{"bearer", "[server.auth]\nmode = \"bearer\"\ncredential = \"env:BEARER\"", "Authorization", "Bearer bearer-of-the-gateway"},
		{"header", "[server.auth]\nmode = \"header\"\nheader = \"X-Key\"\ncredential = \"env:KEY\"", "X-Key", "key-of-the-gateway"},
	} {
		for _, profile := range []upstreamtest.Profile{{Modern: true}, {Sessions: true}} {
			t.Run(fmt.Sprintf("%s/%v", test.name, profile.Modern), func(t *testing.T) {
				r := newRig(t, profile, "requires_approval = false", test.auth)
				requests := callWithInbound(t, r, "alice", "mcp_up_echo", r.upstream)
				for _, q := range requests {
					if got := q.Header.Get(test.header); test.header != "" && got != test.value {
						t.Errorf("%s came with %s %q", q.Method, test.header, got)
					}
					checkInbound(t, &q, r.tokens["alice"], test.header)
				}
			})
		}
	}
	t.Run("delegated", func(t *testing.T) {
		r := newAuthRig(t, upstreamtest.Profile{Modern: true}, "", "", "")
		r.come("anna", "anna", ourAudience, authserver.Claims{"groups": []string{"mcp-admins"}})
		r.upstream.Forget()
		for _, q := range callWithInbound(t, r.rig, "anna", "mcp_records_echo", r.upstream) {
			checkInbound(t, &q, r.tokens["anna"], "Authorization")
		}
	})
}

// callWithInbound calls in both downstream eras and returns what came of it upstream.
func callWithInbound(t *testing.T, r *rig, who, tool string, up *upstreamtest.Server) []upstreamtest.Request {
	t.Helper()
	with := func(more map[string]string) map[string]string {
		header := map[string]string{"Origin": r.front.URL}
		for _, part := range []map[string]string{inbound, more} {
			for k, v := range part {
				header[k] = v
			}
		}
		return header
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool)
	if x := r.post(who, body, with(map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: tool})); x.verdict() != "ok" {
		t.Fatalf("%d %s", x.status, x.raw)
	}
	session := r.connect(who, "2025-11-25", `{}`)
	body = fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, tool)
	if x := r.post(who, body, with(session.header())); x.verdict() != "ok" {
		t.Fatalf("%d %s", x.status, x.raw)
	}
	requests := up.Requests()
	if len(requests) < 2 {
		t.Fatalf("the upstream saw %d requests", len(requests))
	}
	for _, q := range requests {
		if q.Header.Get(headerSession) == session.id {
			t.Error("our session id went upstream")
		}
	}
	return requests
}

// checkInbound wants nothing of the client's in a request, and no header whose
// origin nobody knows.
func checkInbound(t *testing.T, q *upstreamtest.Request, token, credential string) {
	t.Helper()
	for name, values := range q.Header {
		if name != credential && !slices.Contains(ownHeaders, name) {
			t.Errorf("%s came with %s: %q", q.Method, name, values)
		}
		for _, value := range values {
			for _, foreign := range inbound {
				if strings.Contains(value, foreign) {
					t.Errorf("%s came with %s of the client: %q", q.Method, name, value)
				}
			}
			if strings.Contains(value, token) {
				t.Errorf("%s came with the client's token in %s", q.Method, name)
			}
		}
	}
	if bytes.Contains(q.Body, []byte(token)) || bytes.Contains(q.Body, []byte("b7ad6b7169203331")) {
		t.Errorf("%s has something of the client's in its body: %s", q.Method, q.Body)
	}
}

// What the token endpoint answers an exchange with is held to what was asked.
func TestC48ExchangeRepliesThatAreRefused(t *testing.T) {
	r := newAuthRig(t, upstreamtest.Profile{Modern: true}, "", "", "")
	subject := func(form url.Values) string { return form.Get("subject_token") }
	good := func(url.Values) string { return r.auth.UserToken("alice", "mcp-api", nil) }
	const kind = "urn:ietf:params:oauth:token-type:access_token"
	for name, test := range map[string]struct {
		token  func(url.Values) string
		change map[string]any
	}{
		"the subject token again": {subject, nil},
		"for another service":     {func(url.Values) string { return r.auth.UserToken("alice", "payroll", nil) }, nil},
		"wider scope":             {good, map[string]any{"scope": "records.read records.write"}},
		"a refresh token":         {good, map[string]any{"issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token"}},
		"not bearer":              {good, map[string]any{"token_type": "mac"}},
	} {
		r.auth.Configure(func(s *authserver.Settings) {
			s.Token = func(w http.ResponseWriter, form url.Values) bool {
				answer := map[string]any{"access_token": test.token(form), "token_type": "Bearer", "issued_token_type": kind, "expires_in": 60, "scope": "records.read"}
				for k, v := range test.change {
					answer[k] = v
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(answer)
				return true
			}
		})
		before := len(r.records.Visits()) + r.records.Denied()
		x := r.modern("alice", "tools/call", `{"name":"mcp_records_echo","arguments":{}}`, `{}`)
		if x.verdict() != "not_sent" || len(r.records.Visits())+r.records.Denied() != before {
			t.Errorf("%s: %s", name, x.raw)
		}
	}
	r.auth.Configure(func(s *authserver.Settings) { s.Token = nil })
	if x := r.modern("alice", "tools/call", `{"name":"mcp_records_echo","arguments":{}}`, `{}`); x.verdict() != "ok" {
		t.Errorf("a good exchange: %s", x.raw)
	}
}

// An upstream that refuses our credential is not an answer to the caller's: that
// would send the caller to log in at the wrong place.
func TestC48UpstreamRefusalIsNotOurs(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		r := newRig(t, recent, "requires_approval = false", "")
		r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Writer.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://elsewhere.example.org/"`)
			x.Raw(status, "text/plain", "no")
		})
		server := &r.g.Config().Servers[0]
		for i := range 2 {
			x := r.modern("alice", "tools/call", `{"name":"mcp_up_echo","arguments":{}}`, `{}`)
			if x.status != http.StatusOK || x.header.Get("WWW-Authenticate") != "" || x.verdict() != "upstream_error" || strings.Contains(x.raw, "elsewhere.example.org") {
				t.Errorf("%d: %d %q %s", status, x.status, x.header.Get("WWW-Authenticate"), x.raw)
			}
			if got, want := r.g.Shunned(t.Context(), server), i == 1; got != want {
				t.Errorf("%d: left alone after %d refusals: %v", status, i+1, got)
			}
		}
		if got := r.g.CredentialState(t.Context(), server); got != "refused" {
			t.Errorf("state %q", got)
		}
		r.upstream.On("tools/call", nil)
		if x := r.modern("alice", "tools/call", `{"name":"mcp_up_echo","arguments":{}}`, `{}`); x.verdict() != "ok" {
			t.Errorf("a caller's call does not go through any more: %s", x.raw)
		}
		if got := r.g.CredentialState(t.Context(), server); got != "ok" {
			t.Errorf("state %q after a call that went well", got)
		}
	}
}

// A panic says where it was and nothing of what was being handled (C50 g).
func TestC50PanicShowsNoRequest(t *testing.T) {
	r := newRig(t, recent, "", "")
	var log bytes.Buffer
	r.g.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	const secret = "panicked-Qw3Er6Ty9Ui2"
	server := httptest.NewUnstartedServer(r.g.guard(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		panic(q.Header.Get("Authorization") + q.URL.String())
	})))
	server.Config.ErrorLog = slog.NewLogLogger(r.g.Logger.Handler(), slog.LevelDebug)
	server.Start()
	req, err := http.NewRequest(http.MethodGet, server.URL+"/mcp?key="+secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Errorf("a request that panicked was answered with %d", resp.StatusCode)
	}
	server.Close()
	if text := log.String(); strings.Contains(text, secret) || !strings.Contains(text, "a request panicked") {
		t.Errorf("log: %s", text)
	}
}

// A token in the query is not read and not written down (C50 c).
func TestC50TokenInTheQuery(t *testing.T) {
	r := &rig{t: t, upstream: upstreamtest.New(recent), tokens: map[string]string{}, dir: t.TempDir()}
	log := &lockedBuffer{}
	r.logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	token := leak.Token()
	t.Cleanup(func() { leak.Write(t, "debug.log", log.String()) })
	r.open(fmt.Sprintf("[listen]\naddress = \"127.0.0.1:8620\"\n[[caller]]\nname = \"alice\"\ntoken = \"sha256:%s\"\n", gate.DigestOf([]byte(token))))
	for _, header := range []string{"", "Bearer wrong"} {
		req, err := http.NewRequest(http.MethodPost, r.front.URL+"/mcp?token="+token+"&access_token="+token, strings.NewReader(ping))
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %d", header, resp.StatusCode)
		}
	}
	for _, e := range r.entries(gate.KindAuthFailure, 1) {
		if strings.Contains(e.Detail, token) {
			t.Error("the token is on record")
		}
	}
	if strings.Contains(log.String(), token) {
		t.Error("the token is in the log")
	}
}
