package upstream_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/upstream"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/conformance"
	"gatehouse/upstream/wire"
)

var silent = log.New(io.Discard, "", 0)

var errDisk = errors.New("disk full")

// call makes one call of a tool with a good permit.
func call(t testing.TB, c *upstream.Client, id gate.ServerID, remote, caller string, o upstream.CallOptions) (upstream.Result, error) {
	t.Helper()
	permit := gatetest.Permit(t, toolOf(id, remote), gatetest.Admin(gate.CallerName(caller)), `{}`)
	return c.Call(t.Context(), permit, o)
}

func TestConfigureRefuses(t *testing.T) {
	for name, servers := range map[string][]upstream.Server{
		"no id":            {{URL: "http://127.0.0.1/"}},
		"the same id":      {{ID: "a"}, {ID: "a"}},
		"negative timeout": {{ID: "a", Timeout: -1}},
		"negative cap":     {{ID: "a", MaxResponse: -1}},
		"unknown protocol": {{ID: "a", Protocol: "2024-11-05"}},
		"unknown session":  {{ID: "a", Session: "always"}},
	} {
		s := upstreamtest.New(upstreamtest.Profile{Modern: true})
		c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s)})
		if err := c.Configure(servers); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if _, err := c.Test(t.Context(), "demo"); err != nil {
			t.Errorf("%s: the servers before are gone: %v", name, err)
		}
	}
}

func TestConfigureAcceptsWhatIsSpelledOut(t *testing.T) {
	c := newClient(t, &store{}, nil)
	for _, protocol := range []string{"", upstream.Auto, upstream.Legacy, upstream.Modern} {
		for _, session := range []string{"", upstream.PerOperation, upstream.PerCaller} {
			if err := c.Configure([]upstream.Server{{ID: "a", URL: "http://127.0.0.1/", Protocol: protocol, Session: session}}); err != nil {
				t.Errorf("protocol %q, session %q: %v", protocol, session, err)
			}
		}
	}
}

func TestServersThatCannotBeUsed(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil,
		upstream.Server{ID: "good", URL: play(t, s)},
		upstream.Server{ID: "metadata", URL: "http://169.254.169.254/latest"},
		upstream.Server{ID: "scheme", URL: "ftp://files.example.org/"},
		upstream.Server{ID: "plain", URL: "http://tickets.example.org/mcp", Auth: credential.Auth{Mode: credential.ClientCredentials}},
		upstream.Server{ID: "ca", URL: "https://tickets.example.org/mcp", TLS: wire.TLSOptions{CAFile: "/does/not/exist.pem"}})
	if _, err := c.Test(t.Context(), "good"); err != nil {
		t.Error(err)
	}
	for id, want := range map[gate.ServerID]string{"metadata": "169.254.169.254", "scheme": `the scheme "ftp"`, "plain": "must be reached over https",
		"ca": "ca_file", "unknown": "no such server"} {
		_, err := c.Test(t.Context(), id)
		if failed := failure(t, err); failed.Server != id || !strings.Contains(err.Error(), string(id)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
		reason := upstream.ReasonUnusable
		if id == "unknown" {
			reason = upstream.ReasonUnknownServer
		}
		if failed := failure(t, err); failed.Reason != reason {
			t.Errorf("%s: reason %q", id, failed.Reason)
		}
	}
}

func TestOneHangingServerHoldsUpNoOther(t *testing.T) {
	hanging := upstreamtest.New(upstreamtest.Profile{})
	arrived := make(chan struct{}, 10)
	hanging.OnRequest = func(*upstreamtest.Request) { arrived <- struct{}{} }
	hanging.On("initialize", func(x *upstreamtest.Exchange) { <-x.Gone() })
	good := upstreamtest.New(upstreamtest.Profile{})
	servers := []upstream.Server{
		{ID: "hanging", URL: play(t, hanging), Protocol: upstream.Legacy, Timeout: 10 * time.Second},
		{ID: "good", URL: play(t, good), Protocol: upstream.Legacy},
		{ID: "nowhere", URL: "http://nowhere.invalid/mcp", Protocol: upstream.Legacy},
	}
	c := newClient(t, &store{}, nil, servers...)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 4 {
		wg.Go(func() {
			if _, err := c.List(ctx, "hanging"); err == nil {
				t.Error("the hanging server answered")
			}
		})
		<-arrived
	}
	start := time.Now()
	if _, err := call(t, c, "good", "echo", "ada", upstream.CallOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := c.List(t.Context(), "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a name that does not resolve: %v", err)
	}
	servers[1].Timeout = 7 * time.Second
	if err := c.Configure(servers); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("waited %s beside a server that hangs", took)
	}
}

func TestContact(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{})
	clock := conformance.NewClock()
	s.OnRequest = func(r *upstreamtest.Request) {
		clock.Advance(map[string]time.Duration{"initialize": 3 * time.Second, "tools/call": time.Second}[r.Method])
	}
	st := &store{fail: errDisk}
	c := newClient(t, st, clock.Now, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy})
	result, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if err != nil {
		t.Fatalf("a store that fails took the result away: %v", err)
	}
	if got := st.last["demo"]; got != time.Second {
		t.Errorf("latency %s, want that of the last leg", got)
	}
	var names []string
	for _, leg := range result.Outcome.Legs {
		names = append(names, leg.Name+" "+leg.Took.String())
	}
	if want := []string{"initialize 3s", "initialized 0s", "tools/call 1s"}; !reflect.DeepEqual(names, want) {
		t.Errorf("legs %q, want %q", names, want)
	}
}

func TestOutcome(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	result, err := call(t, c, "demo", "fail", "ada", upstream.CallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := result.Outcome
	if o.Verdict != gate.ToolError || o.Status != 200 || o.ResultDigest != gate.DigestOf(result.Raw) ||
		o.BytesIn <= int64(len(result.Raw)) || o.BytesOut == 0 || len(o.Legs) != 1 {
		t.Errorf("outcome %+v", o)
	}
	s.On("tools/call", func(x *upstreamtest.Exchange) { x.Raw(500, "text/plain", "no") })
	_, err = call(t, c, "demo", "fail", "ada", upstream.CallOptions{})
	o = failure(t, err).Outcome
	if o.Verdict != gate.OutcomeUnknown || o.Status != 500 || o.Reason != upstream.ReasonStatus || o.Detail != err.Error() || len(o.Legs) != 1 {
		t.Errorf("outcome %+v", o)
	}
}

// TestErrors writes down how errors read.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		script upstreamtest.Script
		want   string
	}{
		"status":   {func(x *upstreamtest.Exchange) { x.Raw(500, "text/plain", "no") }, `server "demo": tools/call: HTTP 500 Internal Server Error; whether the tool ran is unknown`},
		"auth":     {func(x *upstreamtest.Exchange) { x.Raw(401, "text/plain", "no") }, `server "demo": tools/call: HTTP 401 Unauthorized; we authenticate with mode "none", check its credential`},
		"wait":     {func(x *upstreamtest.Exchange) { x.Writer.Header().Set("Retry-After", "60"); x.Raw(429, "", "") }, `server "demo": tools/call: HTTP 429 Too Many Requests; the server asks to wait 1m0s`},
		"redirect": {upstreamtest.Misdeed("redirect-foreign", "tools/call"), `server "demo": tools/call: HTTP 307 redirect, and redirects are not followed; it leads to "http://elsewhere.invalid"; correct url if that is meant; whether the tool ran is unknown`},
	} {
		s := upstreamtest.New(upstreamtest.Profile{Modern: true})
		s.On("tools/call", c.script)
		client := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
		_, err := call(t, client, "demo", "echo", "ada", upstream.CallOptions{})
		if got := failure(t, err).Error(); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestReportOfATest(t *testing.T) {
	for _, p := range upstreamtest.Profiles() {
		s := upstreamtest.New(p)
		s.Version = "2025-03-26"
		c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s)})
		want := upstream.Report{Era: upstream.Legacy, Version: "2025-03-26", ServerName: "played", ServerVersion: "1.0"}
		if p.Modern {
			want.Era, want.Version = upstream.Modern, upstream.Modern
		}
		got, err := c.Test(t.Context(), "demo")
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Legs) == 0 || got.Latency == 0 {
			t.Errorf("%s: the report has no legs or no latency", p.Name)
		}
		got.Legs, got.Latency = nil, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", p.Name, got, want)
		}
	}
}

func TestPinnedEraIsNotDoubted(t *testing.T) {
	for _, p := range []upstreamtest.Profile{{Sessions: true}, {Modern: true}} {
		pin := upstream.Modern
		if p.Modern {
			pin = upstream.Legacy
		}
		s := upstreamtest.New(p)
		c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: pin})
		if _, err := c.Test(t.Context(), "demo"); err == nil {
			t.Errorf("pinned to %s: the test passed", pin)
		}
		if _, err := c.List(t.Context(), "demo"); err == nil {
			t.Errorf("pinned to %s: the listing passed", pin)
		}
		if pin == upstream.Legacy && s.Count("server/discover") != 0 {
			t.Error("a pinned server was probed")
		}
		if pin == upstream.Modern && s.Count("initialize") != 0 {
			t.Error("a server pinned to 2026 was asked to initialize")
		}
	}
}

func TestTestFindsANewEra(t *testing.T) {
	for _, p := range []upstreamtest.Profile{{Sessions: true}, {Modern: true}} {
		wrong, right := upstream.Modern, upstream.Legacy
		if p.Modern {
			wrong, right = right, wrong
		}
		st := &store{eras: map[gate.ServerID]string{"demo": wrong}}
		s := upstreamtest.New(p)
		c := newClient(t, st, nil, upstream.Server{ID: "demo", URL: play(t, s)})
		report, err := c.Test(t.Context(), "demo")
		if err != nil || report.Era != right {
			t.Errorf("remembered %s: era %q, error %v, sent %q", wrong, report.Era, err, s.Methods())
		}
		if era, _ := st.Era("demo"); era != right {
			t.Errorf("remembered %s: now remembers %q", wrong, era)
		}
	}
}

func TestNewAddressForgetsTheEra(t *testing.T) {
	st := &store{}
	older, newer := upstreamtest.New(upstreamtest.Profile{}), upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, st, nil, upstream.Server{ID: "demo", URL: play(t, older)})
	if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Configure([]upstream.Server{{ID: "demo", URL: play(t, newer)}}); err != nil {
		t.Fatal(err)
	}
	if era, _ := st.Era("demo"); era != "" {
		t.Errorf("remembers %q of another address", era)
	}
	if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAfterClose(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s)})
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.List(t.Context(), "demo")
	if failed := failure(t, err); failed.Reason != upstream.ReasonClosed {
		t.Errorf("list: %v", err)
	}
	_, err = call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if failed := failure(t, err); failed.Reason != upstream.ReasonClosed || failed.Verdict != gate.NotSent {
		t.Errorf("call: %v", err)
	}
	if err := c.Configure(nil); err == nil {
		t.Error("configure was accepted")
	}
	if len(s.Requests()) != 0 {
		t.Errorf("the server saw %q", s.Methods())
	}
}

// TestCloseIsBounded closes while a DELETE hangs and while a call is under way.
func TestCloseIsBounded(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Sessions: true})
	s.On(http.MethodDelete, func(x *upstreamtest.Exchange) { <-x.Gone() })
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy})
	if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("close took %s", took)
	}
}

// asked counts what a credential is asked for.
type asked struct {
	mu       sync.Mutex
	purposes []credential.Purpose
	headers  int
	open     int
	fail     error
	legs     []gate.Leg
}

func (a *asked) Open(_ credential.Auth, p credential.Purpose) (credential.Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.purposes = append(a.purposes, p)
	a.open++
	return a, nil
}

func (a *asked) Header(context.Context) (string, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.headers++
	return "Authorization", "Bearer t0ken", a.fail
}

func (a *asked) Legs() []gate.Leg {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.legs
}

func (a *asked) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
}

func newAsked(t *testing.T, a *asked, server upstream.Server) *upstream.Client {
	t.Helper()
	return clientWith(t, a, server)
}

func clientWith(t *testing.T, a upstream.Credentials, server upstream.Server) *upstream.Client {
	t.Helper()
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := upstream.New(upstream.Options{Network: network, Version: "test", Store: &store{}, Credentials: a})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Configure([]upstream.Server{server}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCredentialPerOperation(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Sessions: true})
	a := &asked{legs: []gate.Leg{{Name: "token", Took: time.Second, Status: 200}}}
	c := newAsked(t, a, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy})
	result, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if legs := result.Outcome.Legs; len(legs) != 4 || legs[0].Name != "token" || legs[1].Name != "initialize" {
		t.Errorf("legs %+v", legs)
	}
	if _, err := c.List(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []credential.Purpose{credential.Execution("ada", credential.Secret{}), credential.Discovery()}
	if !reflect.DeepEqual(a.purposes, want) {
		t.Errorf("purposes %+v, want %+v", a.purposes, want)
	}
	if requests := len(s.Requests()); a.headers != requests {
		t.Errorf("asked %d times for %d requests", a.headers, requests)
	}
	if a.open != 0 {
		t.Errorf("%d credentials are still open", a.open)
	}
	for _, r := range s.Requests() {
		if r.Header.Get("Authorization") != "Bearer t0ken" {
			t.Errorf("%s %s went without the credential", r.HTTPMethod, r.Method)
		}
	}
}

func TestCredentialThatFails(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	a := &asked{fail: &credential.Error{Reason: credential.ReasonCallerWithout, Text: `caller "ada" has no grant`}}
	c := newAsked(t, a, upstream.Server{ID: "demo", URL: play(t, s)})
	_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	failed := failure(t, err)
	if failed.Verdict != gate.NotSent || failed.Reason != credential.ReasonCallerWithout || !strings.Contains(err.Error(), "no grant") {
		t.Errorf("%+v: %v", failed, err)
	}
	if len(s.Requests()) != 0 || a.headers != 1 {
		t.Errorf("asked %d times, the server saw %q", a.headers, s.Methods())
	}
	if err := c.Close(t.Context()); err != nil || a.open != 0 {
		t.Errorf("%d credentials are still open, error %v", a.open, err)
	}
}

// TestGateBeforeCredential asks for no credential when the host is refused.
func TestGateBeforeCredential(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	a := &asked{}
	c := newAsked(t, a, upstream.Server{ID: "demo", URL: "http://127.0.0.2:" + port + "/mcp", Protocol: upstream.Legacy})
	_, err = call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if failed := failure(t, err); failed.Verdict != gate.NotSent || a.headers != 0 {
		t.Errorf("verdict %s, asked %d times, error %v", failed.Verdict, a.headers, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
