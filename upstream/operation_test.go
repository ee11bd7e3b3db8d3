package upstream_test

import (
	"context"
	"net/http"
	"slices"
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

func TestNewRefuses(t *testing.T) {
	network, err := wire.NewNetwork(wire.NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := upstream.Options{Network: network, Store: &store{}, Credentials: &asked{}}
	for name, take := range map[string]func(*upstream.Options){
		"network":     func(o *upstream.Options) { o.Network = nil },
		"store":       func(o *upstream.Options) { o.Store = nil },
		"credentials": func(o *upstream.Options) { o.Credentials = nil },
	} {
		o := whole
		take(&o)
		if _, err := upstream.New(o); err == nil {
			t.Errorf("a client without %s was made", name)
		}
	}
}

func TestDelegatedOutcomeNamesWhom(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newAsked(t, &asked{}, upstream.Server{ID: "demo", URL: play(t, s),
		Auth: credential.Auth{Mode: credential.Delegated, Audience: "mcp-api"}})
	defer c.Close(context.Background())
	result, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o := result.Outcome; o.Subject != "ada" || o.Audience != "mcp-api" {
		t.Errorf("subject %q, audience %q", o.Subject, o.Audience)
	}
	_, other := modernServer(t, 10*time.Second)
	if result, err = call(t, other, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	if o := result.Outcome; o.Subject != "" || o.Audience != "" {
		t.Errorf("a call in nobody's name has subject %q, audience %q", o.Subject, o.Audience)
	}
}

func TestArgumentThatFitsNoHeader(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	tool := toolOf("demo", "route")
	tool.ParamHeaders = []gate.ParamHeader{{Name: "Region", Path: []string{"at", "region"}, Type: "string"}}
	_, err := c.Call(t.Context(), gatetest.Permit(t, tool, nil, `{"at":{"region":7}}`), upstream.CallOptions{})
	failed := failure(t, err)
	if failed.Verdict != gate.NotSent || failed.Reason != upstream.ReasonArgument || len(s.Requests()) != 0 {
		t.Errorf("%+v: %v", failed, err)
	}
	if want := `argument "at.region"`; !strings.Contains(err.Error(), want) {
		t.Errorf("the error does not say %s: %v", want, err)
	}
}

func TestHeaderMismatchAdvisesAnImport(t *testing.T) {
	s, c := modernServer(t, 10*time.Second)
	s.On("tools/call", func(x *upstreamtest.Exchange) { x.Error(http.StatusBadRequest, -32020, "Mcp-Param-Region is missing") })
	_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	failed := failure(t, err)
	if failed.Verdict != gate.UpstreamError || failed.Code != -32020 || !strings.Contains(err.Error(), "import the server again") {
		t.Errorf("%+v: %v", failed, err)
	}
}

func TestTraceState(t *testing.T) {
	s, c := modernServer(t, 10*time.Second)
	o := upstream.CallOptions{TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceState: "a=1,b=2"}
	if _, err := call(t, c, "demo", "echo", "ada", o); err != nil {
		t.Fatal(err)
	}
	r, _ := s.Last("tools/call")
	if r.Header.Get("Tracestate") != o.TraceState || string(r.Meta("tracestate")) != `"a=1,b=2"` {
		t.Errorf("header %q, _meta %s", r.Header.Get("Tracestate"), r.Meta("tracestate"))
	}
}

// Every leg of a call of the 2025 era carries the trace, and the call its _meta.
func TestTraceOfTheOlderEra(t *testing.T) {
	s, c := legacyServer(t, 10*time.Second)
	o := upstream.CallOptions{TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", TraceState: "a=1,b=2"}
	if _, err := call(t, c, "demo", "echo", "ada", o); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"initialize", "notifications/initialized", "tools/call"} {
		r, ok := s.Last(method)
		if !ok || r.Header.Get("Traceparent") != o.TraceParent || r.Header.Get("Tracestate") != o.TraceState {
			t.Errorf("%s: traceparent %q, tracestate %q", method, r.Header.Get("Traceparent"), r.Header.Get("Tracestate"))
		}
	}
	r, _ := s.Last("tools/call")
	if string(r.Meta("traceparent")) != `"`+o.TraceParent+`"` || string(r.Meta("tracestate")) != `"a=1,b=2"` || r.Meta("progressToken") != nil {
		t.Errorf("_meta says traceparent %s, tracestate %s, progressToken %s", r.Meta("traceparent"), r.Meta("tracestate"), r.Meta("progressToken"))
	}
}

// TestRememberedEraThatIsWrong starts on a store that holds the era of before
// the server was replaced.
func TestRememberedEraThatIsWrong(t *testing.T) {
	for remembered, modern := range map[string]bool{upstream.Legacy: true, upstream.Modern: false} {
		s := upstreamtest.New(upstreamtest.Profile{Modern: modern})
		st := &store{eras: map[gate.ServerID]string{"demo": remembered}}
		c := newClient(t, st, nil, upstream.Server{ID: "demo", URL: play(t, s)})
		if _, err := c.List(t.Context(), "demo"); err != nil {
			t.Errorf("%s is remembered: %v after %q", remembered, err, s.Methods())
		}
		if era, _ := st.Era("demo"); era == remembered || s.Count("server/discover") != 1 {
			t.Errorf("era %q after %q", era, s.Methods())
		}
	}
}

// A call goes to the servers of the moment it was judged in.
func TestCallOfAnEarlierFleet(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	fleet := c.Fleet()
	if err := c.Configure(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{Fleet: &fleet}); err != nil {
		t.Errorf("with the servers of before: %v", err)
	}
	_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	failed := failure(t, err)
	if failed.Reason != upstream.ReasonUnknownServer {
		t.Errorf("with those of now: %v", err)
	}
	if o := failed.Outcome; o.Verdict != gate.NotSent || o.Reason != failed.Reason || o.Detail != err.Error() {
		t.Errorf("the outcome is %+v", o)
	}
}

// Another host gate is another way to a server: what it does not allow is not
// reached over a connection of before.
func TestReloadWithANarrowerGate(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	server := upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern}
	c := newClient(t, &store{}, nil, server)
	if _, err := c.Test(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	sent := len(s.Requests())
	narrow, err := wire.NewNetwork(wire.NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server.Network = narrow
	if err := c.Configure([]upstream.Server{server}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Test(t.Context(), "demo"); err == nil || len(s.Requests()) != sent {
		t.Errorf("got %v, %d requests more", err, len(s.Requests())-sent)
	}
}

func TestUserAgent(t *testing.T) {
	s, c := modernServer(t, 10*time.Second)
	if _, err := c.Test(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	if r, _ := s.Last("server/discover"); r.Header.Get("User-Agent") != "gatehouse/test" {
		t.Errorf("the client calls itself %q", r.Header.Get("User-Agent"))
	}
}

// TestGivingUpBetweenTries cancels while the client waits to try again.
func TestGivingUpBetweenTries(t *testing.T) {
	s, c := legacyServer(t, 20*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.On("initialize", func(x *upstreamtest.Exchange) {
		x.Writer.Header().Set("Retry-After", "15")
		x.Raw(http.StatusServiceUnavailable, "text/plain", "later")
		time.AfterFunc(50*time.Millisecond, cancel)
	})
	start := time.Now()
	_, err := c.Call(ctx, gatetest.Permit(t, toolOf("demo", "echo"), nil, `{}`), upstream.CallOptions{})
	if failed := failure(t, err); failed.Verdict != gate.Cancelled || s.Count("initialize") != 1 {
		t.Errorf("%+v: %v", failed, err)
	}
	if want := `server "demo": initialize was not sent: the caller gave up`; err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestProbeThatOnlyFails lets every server/discover fail with an error that
// only a modern server sends: the era is known, the test has failed.
func TestProbeThatOnlyFails(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	s.On("server/discover", func(x *upstreamtest.Exchange) { x.Error(http.StatusBadRequest, -32020, "no") })
	st := &store{}
	c := newClient(t, st, nil, upstream.Server{ID: "demo", URL: play(t, s)})
	if _, err := c.Test(t.Context(), "demo"); err == nil {
		t.Error("the test passed")
	}
	if era, _ := st.Era("demo"); era != upstream.Modern || s.Count("initialize") != 0 {
		t.Errorf("era %q, sent %q", era, s.Methods())
	}
}

func TestStoreThatCannotRemember(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{})
	c := newClient(t, &store{fail: errDisk}, nil, upstream.Server{ID: "demo", URL: play(t, s)})
	for range 2 {
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Count("server/discover"); n != 1 {
		t.Errorf("the running client forgot the era: %d probes", n)
	}
}

// TestEraOfAnotherRelease starts on a store that holds what no release of this
// client writes.
func TestEraOfAnotherRelease(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	st := &store{eras: map[gate.ServerID]string{"demo": "2031-01-01"}}
	c := newClient(t, st, nil, upstream.Server{ID: "demo", URL: play(t, s)})
	if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Methods(); !slices.Equal(got, []string{"server/discover", "tools/call"}) {
		t.Errorf("the client sent %q", got)
	}
}

// TestWaitingForASession has callers wait for a session that another of them is
// opening: one gives up, one runs out of time.
func TestWaitingForASession(t *testing.T) {
	s, c, _ := kept(t, func(s *upstream.Server) { s.Timeout = time.Second })
	arrived := make(chan struct{})
	s.On("initialize", func(x *upstreamtest.Exchange) {
		close(arrived)
		<-x.Gone()
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
		if failed := failure(t, err); failed.Verdict != gate.NotSent || failed.Reason != upstream.ReasonBudget {
			t.Errorf("who opens: %+v: %v", failed, err)
		}
	})
	<-arrived
	s.On("initialize", func(x *upstreamtest.Exchange) { <-x.Gone() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	permit := gatetest.Permit(t, toolOf("demo", "echo"), gatetest.Admin("ada"), `{}`)
	_, err := c.Call(ctx, permit, upstream.CallOptions{})
	if failed := failure(t, err); failed.Verdict != gate.Cancelled {
		t.Errorf("who gives up: %+v: %v", failed, err)
	}
	_, err = call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if failed := failure(t, err); failed.Verdict != gate.NotSent || failed.Reason != upstream.ReasonBudget {
		t.Errorf("who runs out of time: %+v: %v", failed, err)
	}
	wg.Wait()
}

// TestCloseWhileACallRuns says so when a caller does not give up in time.
func TestCloseWhileACallRuns(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	arrived := make(chan struct{})
	s.On("tools/call", func(x *upstreamtest.Exchange) { close(arrived); <-x.Gone() })
	c := newAsked(t, &asked{}, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := c.Call(ctx, gatetest.Permit(t, toolOf("demo", "echo"), nil, `{}`), upstream.CallOptions{})
		if failed := failure(t, err); failed.Verdict != gate.OutcomeUnknown {
			t.Errorf("%+v: %v", failed, err)
		}
		if want := `server "demo": tools/call was cut short: the caller gave up; whether the tool ran is unknown`; err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
	<-arrived
	closing, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := c.Close(closing); err == nil {
		t.Error("close says that all is done")
	}
	cancel()
	wg.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHolderLeavesDuringItsCall ends a holder whose call is under way.
func TestHolderLeavesDuringItsCall(t *testing.T) {
	s, c, _ := kept(t, nil)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.On("tools/call", func(x *upstreamtest.Exchange) { close(arrived); <-release; s.Answer(x) })
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{Holder: "h"}); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	c.EndHolder("h")
	if s.Sessions() != 1 {
		t.Error("the session was ended below its call")
	}
	close(release)
	wg.Wait()
	eventually(t, "the session ends after its call", func() bool { return s.Sessions() == 0 })
}

// TestHostileHandlers finds every kind by its name, and no other.
func TestHostileHandlers(t *testing.T) {
	kinds := upstreamtest.HostileKinds()
	if len(kinds) < 24 || !slices.IsSorted(kinds) {
		t.Errorf("%d kinds: %q", len(kinds), kinds)
	}
	for _, kind := range kinds {
		if upstreamtest.Hostile(kind) == nil || upstreamtest.HostileSummary(kind) == "" {
			t.Errorf("%s has no handler or no summary", kind)
		}
	}
	if h := upstreamtest.Hostile("kind"); h != nil {
		t.Error("an unknown kind has a handler")
	}
}

// TestBudgetErrors writes down what an operator reads when time runs out.
func TestBudgetErrors(t *testing.T) {
	play := func(script func(*upstreamtest.Server, *conformance.Clock)) (*upstream.Client, *upstreamtest.Server) {
		s := upstreamtest.New(upstreamtest.Profile{})
		clock := conformance.NewClock()
		script(s, clock)
		return newClient(t, &store{}, clock.Now, upstream.Server{ID: "crm", URL: play(t, s), Protocol: upstream.Legacy}), s
	}
	t.Run("not sent", func(t *testing.T) {
		c, s := play(func(s *upstreamtest.Server, clock *conformance.Clock) {
			s.OnRequest = func(*upstreamtest.Request) { clock.Advance(10 * time.Second) }
		})
		_, err := call(t, c, "crm", "echo", "ada", upstream.CallOptions{})
		failed := failure(t, err)
		want := `server "crm": our limit of 20s is spent (initialize 10.0s, initialized 10.0s); tools/call was not sent; raise [operation] timeout, or timeout of this server`
		if err.Error() != want || failed.Verdict != gate.NotSent || failed.Reason != upstream.ReasonBudget || len(failed.Outcome.Legs) != 2 {
			t.Errorf("%+v:\n got %v\nwant %s", failed, err, want)
		}
		if s.Count("tools/call") != 0 {
			t.Error("it was sent nevertheless")
		}
	})
	t.Run("cut short", func(t *testing.T) {
		c, _ := play(func(s *upstreamtest.Server, clock *conformance.Clock) {
			s.OnRequest = func(r *upstreamtest.Request) {
				clock.Advance(map[string]time.Duration{"initialize": 19500 * time.Millisecond, "tools/call": 500 * time.Millisecond}[r.Method])
			}
			s.On("tools/call", func(x *upstreamtest.Exchange) {
				x.Event(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
				<-x.Gone()
			})
		})
		_, err := call(t, c, "crm", "echo", "ada", upstream.CallOptions{})
		failed := failure(t, err)
		want := `server "crm": our limit of 20s is spent (initialize 19.5s, initialized 0.0s, tools/call 0.5s); tools/call was cut short while the server waited for an answer to "roots/list", which we never give; raise [operation] timeout, or timeout of this server; whether the tool ran is unknown`
		if err.Error() != want || failed.Verdict != gate.OutcomeUnknown {
			t.Errorf("%+v:\n got %v\nwant %s", failed, err, want)
		}
	})
}
