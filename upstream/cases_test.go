package upstream_test

import (
	"flag"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/upstream"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/conformance"
)

// The tests of this file are failures that were seen in the field, as inputs.
// Their names carry the case's id.

// legacyServer plays a 2025 server and makes a client of it.
func legacyServer(t *testing.T, timeout time.Duration) (*upstreamtest.Server, *upstream.Client) {
	t.Helper()
	s := upstreamtest.New(upstreamtest.Profile{Sessions: true})
	return s, newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy, Timeout: timeout})
}

func modernServer(t *testing.T, timeout time.Duration) (*upstreamtest.Server, *upstream.Client) {
	t.Helper()
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	return s, newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern, Timeout: timeout})
}

func TestC08AnswersToInitialized(t *testing.T) {
	for name, c := range map[string]struct {
		script upstreamtest.Script
		fine   bool
	}{
		"a text":      {func(x *upstreamtest.Exchange) { x.Raw(202, "text/plain", "Accepted") }, true},
		"b 204":       {func(x *upstreamtest.Exchange) { x.Writer.WriteHeader(204) }, true},
		"c 200 empty": {func(x *upstreamtest.Exchange) { x.Raw(200, "application/json", "") }, true},
		"d 200 null":  {func(x *upstreamtest.Exchange) { x.Raw(200, "application/json", "null") }, true},
		"e endless":   {upstreamtest.Misdeed("initialized-endless", "notifications/initialized"), true},
		"f 500":       {func(x *upstreamtest.Exchange) { x.Raw(500, "text/plain", "no") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, c2 := legacyServer(t, 10*time.Second)
			s.On("notifications/initialized", c.script)
			start := time.Now()
			_, err := call(t, c2, "demo", "echo", "ada", upstream.CallOptions{})
			if (err == nil) != c.fine {
				t.Errorf("error %v", err)
			}
			if !c.fine && s.Count("tools/call") != 0 {
				t.Error("the work was sent nevertheless")
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestC09StatusAndReply(t *testing.T) {
	reply := func(status int, contentType string) upstreamtest.Script {
		return func(x *upstreamtest.Exchange) {
			message := x.Message(`"result":` + upstreamtest.Text("ok"))
			if contentType == "text/event-stream" {
				message = "data: " + message + "\n\n"
			}
			x.Raw(status, contentType, message)
		}
	}
	for name, c := range map[string]struct {
		script upstreamtest.Script
		fine   bool
	}{
		"202 with a stream": {reply(202, "text/event-stream"), true},
		"201 with JSON":     {reply(201, "application/json"), true},
		"202 empty":         {func(x *upstreamtest.Exchange) { x.Accept() }, false},
		"204":               {func(x *upstreamtest.Exchange) { x.Writer.WriteHeader(204) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := legacyServer(t, 10*time.Second)
			s.On("tools/call", c.script)
			_, err := call(t, client, "demo", "echo", "ada", upstream.CallOptions{})
			if c.fine {
				if err != nil {
					t.Error(err)
				}
				return
			}
			failed := failure(t, err)
			if failed.Verdict != gate.OutcomeUnknown || !strings.Contains(err.Error(), "no response to the request") || !strings.Contains(err.Error(), "unknown") {
				t.Errorf("verdict %s, error %v", failed.Verdict, err)
			}
		})
	}
}

func TestC13RetryAfter(t *testing.T) {
	for after, want := range map[string]time.Duration{
		"3600":                          time.Hour,
		"Wed, 21 Oct 2015 07:28:00 GMT": 0,
		"-5":                            0,
		"soon":                          0,
		"99999999999999":                24 * time.Hour, // bounded
	} {
		s, c := modernServer(t, 20*time.Second)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Writer.Header().Set("Retry-After", after)
			x.Error(http.StatusTooManyRequests, -32000, "quota")
		})
		start := time.Now()
		_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
		failed := failure(t, err)
		if failed.Verdict != gate.UpstreamError || failed.RetryAfter != want || !failed.HasCode || failed.Code != -32000 || failed.Message != "quota" {
			t.Errorf("Retry-After %s: %+v", after, failed)
		}
		if s.Count("tools/call") != 1 || time.Since(start) > 10*time.Second {
			t.Errorf("Retry-After %s: sent %d times in %s", after, s.Count("tools/call"), time.Since(start))
		}
	}
	t.Run("page 2", func(t *testing.T) {
		for _, after := range []string{"1", "3600"} {
			s, c := legacyServer(t, 20*time.Second)
			s.PageSize = 2
			refusals := 0
			s.On("tools/list", func(x *upstreamtest.Exchange) {
				if x.Text("cursor") == "2" && refusals == 0 {
					refusals++
					x.Writer.Header().Set("Retry-After", after)
					x.Raw(http.StatusServiceUnavailable, "text/plain", "later")
					return
				}
				s.Answer(x)
			})
			start := time.Now()
			listing, err := c.List(t.Context(), "demo")
			took := time.Since(start)
			switch {
			case after == "1" && (err != nil || len(listing.Tools) != len(s.Tools) || took < time.Second):
				t.Errorf("a wait that fits: %d tools, error %v after %s", len(listing.Tools), err, took)
			case after == "3600" && (err == nil || listing.Tools != nil || took > 5*time.Second || !strings.Contains(err.Error(), "does not fit")):
				t.Errorf("a wait that does not fit: %d tools, error %v after %s", len(listing.Tools), err, took)
			}
		}
	})
}

func TestC15Versions(t *testing.T) {
	t.Run("a and b", func(t *testing.T) {
		// The played server refuses initialize with a version header and any
		// later request without exactly the negotiated one, DELETE included.
		for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
			s, c := legacyServer(t, 10*time.Second)
			s.Version = version
			if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
				t.Errorf("%s: %v", version, err)
			}
			if _, err := c.List(t.Context(), "demo"); err != nil {
				t.Errorf("%s: %v", version, err)
			}
			eventually(t, "both sessions end", func() bool { return s.Sessions() == 0 })
		}
	})
	for name, answer := range map[string]string{
		"d never existed": `"protocolVersion":"2024-06-18"`,
		"d empty":         `"protocolVersion":""`,
		"d number":        `"protocolVersion":20250618`,
		"d absent":        `"capabilities":{}`,
		"e future":        `"protocolVersion":"2027-01-01"`,
	} {
		t.Run(name, func(t *testing.T) {
			s, c := legacyServer(t, 10*time.Second)
			s.On("initialize", func(x *upstreamtest.Exchange) {
				x.Writer.Header().Set("Mcp-Session-Id", "s1")
				x.Result("{" + answer + "}")
			})
			_, err := c.List(t.Context(), "demo")
			if failed := failure(t, err); failed.Reason != upstream.ReasonVersion || !strings.Contains(err.Error(), upstream.Legacy) {
				t.Errorf("%+v: %v", failed, err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if sent := s.Methods(); !slices.Equal(sent, []string{"initialize", http.MethodDelete}) {
				t.Errorf("the client sent %q; want the session closed and nothing else", sent)
			}
		})
	}
}

func TestC18SessionIDs(t *testing.T) {
	for name, c := range map[string]struct {
		ids  []string
		want string // "" is a refused handshake, "-" none
	}{
		"a beyond ASCII": {[]string{"abc\xE9"}, ""},
		"b space":        {[]string{"two words"}, ""},
		"c empty":        {[]string{""}, "-"},
		"d 9 KiB":        {[]string{strings.Repeat("a", 9<<10)}, ""},
		"e twice":        {[]string{"one", "two"}, ""},
		"e twice, empty": {[]string{"one", ""}, ""},
		"f visible":      {[]string{"s1&owner=x"}, "s1&owner=x"},
		"512 bytes":      {[]string{strings.Repeat("a", 512)}, strings.Repeat("a", 512)},
		"513 bytes":      {[]string{strings.Repeat("a", 513)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := upstreamtest.New(upstreamtest.Profile{})
			s.On("initialize", func(x *upstreamtest.Exchange) {
				x.Writer.Header()["mcp-session-id"] = c.ids // lower case on the wire
				x.Result(`{"protocolVersion":"2025-11-25","capabilities":{}}`)
			})
			client := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy})
			_, err := call(t, client, "demo", "echo", "ada", upstream.CallOptions{})
			if c.want == "" {
				if failed := failure(t, err); failed.Verdict != gate.NotSent || len(s.Requests()) != 1 {
					t.Errorf("verdict %s, error %v, sent %q", failed.Verdict, err, s.Methods())
				}
				if strings.Contains(err.Error(), c.ids[0]) {
					t.Errorf("the error shows the id: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			last, _ := s.Last("tools/call")
			if got := last.Header.Get("Mcp-Session-Id"); got != strings.TrimPrefix(c.want, "-") {
				t.Errorf("echoed %q, want %q", got, c.want)
			}
		})
	}
}

func TestC22Cursors(t *testing.T) {
	for kind, asked := range map[string]int{"repeated-cursor": 2, "cursor-cycle": 3, "endless-cursor": 50, "number-cursor": 1, "late-failure": 3} {
		t.Run(kind, func(t *testing.T) {
			s := upstreamtest.HostileServer(kind)
			c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s)})
			listing, err := c.List(t.Context(), "demo")
			if failed := failure(t, err); failed.Server != "demo" || !strings.Contains(err.Error(), `"demo"`) || listing.Tools != nil {
				t.Errorf("%d tools, error %v", len(listing.Tools), err)
			}
			if got := s.Count("tools/list"); got != asked {
				t.Errorf("%d pages were asked for, want %d", got, asked)
			}
		})
	}
}

func TestC37Deadline(t *testing.T) {
	const budget = 2 * time.Second
	for variant, kind := range map[string]string{"a": "keep-alive", "b": "progress-for-ever", "c": "trickling-body"} {
		t.Run(variant+" "+kind, func(t *testing.T) {
			t.Parallel()
			s, c := legacyServer(t, budget)
			s.On("tools/call", upstreamtest.Misdeed(kind, "tools/call"))
			start := time.Now()
			_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{Progress: func([]byte) {}})
			took := time.Since(start)
			failed := failure(t, err)
			if failed.Verdict != gate.OutcomeUnknown || failed.Reason != upstream.ReasonBudget || !strings.Contains(err.Error(), "our limit of 2s is spent") {
				t.Errorf("%+v: %v", failed, err)
			}
			if took < budget || took > budget+5*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
	t.Run("d what is left", func(t *testing.T) {
		t.Parallel()
		s, c := legacyServer(t, 3*time.Second)
		wait := func(d time.Duration) upstreamtest.Script {
			return func(x *upstreamtest.Exchange) {
				select {
				case <-time.After(d):
				case <-x.Gone():
				}
				s.Answer(x)
			}
		}
		s.On("initialize", wait(time.Second))
		s.On("notifications/initialized", wait(time.Second))
		s.On("tools/call", wait(time.Minute))
		start := time.Now()
		_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the call got a budget of its own: %s", took)
		}
		if failed := failure(t, err); failed.Verdict != gate.OutcomeUnknown || !strings.Contains(err.Error(), "initialize 1.") {
			t.Errorf("%+v: %v", failed, err)
		}
	})
	t.Run("e stays open", func(t *testing.T) {
		s, c := legacyServer(t, 20*time.Second)
		s.On("tools/call", upstreamtest.Misdeed("stays-open", "tools/call"))
		start := time.Now()
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took < 200*time.Millisecond || took > 5*time.Second {
			t.Errorf("took %s, want the grace of 250 ms", took)
		}
	})
}

var operations = flag.Int("operations", 100, "operations against each hostile kind in TestC37Leaks")

// TestC37Leaks meets every hostile kind many times over and looks at what is
// left: goroutines, connections and memory.
func TestC37Leaks(t *testing.T) {
	goroutines, files, heap := runtime.NumGoroutine(), openFiles(), heapInUse()
	t.Cleanup(func() { // after the played servers, which were registered later
		if left := settle(goroutines); left > 0 {
			t.Errorf("%d goroutines are left", left)
		}
		if left := openFiles() - files; left > 5 {
			t.Errorf("%d files and connections are left", left)
		}
		if grown := heapInUse() - heap; grown > 32<<20 {
			t.Errorf("the heap has grown by %d MiB", grown>>20)
		}
		t.Logf("%d operations of each kind; goroutines %d and then %d, descriptors %d and %d, heap %d KiB and %d KiB", *operations/scale,
			goroutines, runtime.NumGoroutine(), files, openFiles(), heap>>10, heapInUse()>>10)
	})
	for _, kind := range upstreamtest.HostileKinds() {
		t.Run(kind, func(t *testing.T) { meet(t, kind, max(*operations/2/scale, 1)) })
		if left := settle(goroutines); left > 0 {
			t.Errorf("%s: %d goroutines are left", kind, left)
		}
		t.Logf("%s: goroutines %d, descriptors %d, heap %d KiB", kind, runtime.NumGoroutine(), openFiles(), heapInUse()>>10)
	}
}

// meet lists and calls against one hostile kind, many times over.
func meet(t *testing.T, kind string, rounds int) {
	s := upstreamtest.HostileServer(kind)
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy, Timeout: 50 * time.Millisecond})
	turns := make(chan struct{}, 32)
	var wg sync.WaitGroup
	for range rounds {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			_, _ = c.List(t.Context(), "demo")
			_, _ = call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
			s.Forget()
		})
	}
	wg.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("%s: %v", kind, err)
	}
}

// openFiles counts the descriptors of this process, 0 where that is not to be
// had.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

func TestC39HangingServer(t *testing.T) { TestOneHangingServerHoldsUpNoOther(t) }

// TestC42BudgetBeginsWithTheCall lets ninety seconds pass between the permit's
// making and its use, as a person does who is asked.
func TestC42BudgetBeginsWithTheCall(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{})
	clock := conformance.NewClock()
	c := newClient(t, &store{}, clock.Now, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy, Timeout: 20 * time.Second})
	permit := gatetest.Permit(t, toolOf("demo", "echo"), nil, `{}`)
	clock.Advance(90 * time.Second)
	if _, err := c.Call(t.Context(), permit, upstream.CallOptions{}); err != nil {
		t.Error(err)
	}
}

func TestC46ServerAsksBack(t *testing.T) {
	t.Run("a", func(t *testing.T) {
		s, c := legacyServer(t, 10*time.Second)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Event(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
			x.Event(`{"jsonrpc":"2.0","id":` + string(x.ID) + `,"method":"elicitation/create","params":{}}`)
			x.Event(x.Message(`"result":` + upstreamtest.Text("ok")))
		})
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("b", func(t *testing.T) {
		s, c := legacyServer(t, 2*time.Second)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Event(`{"jsonrpc":"2.0","id":` + string(x.ID) + `,"method":"elicitation/create","params":{}}`)
			<-x.Gone()
		})
		_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
		if failed := failure(t, err); failed.Verdict != gate.OutcomeUnknown || !strings.Contains(err.Error(), `"elicitation/create"`) {
			t.Errorf("%+v: %v", failed, err)
		}
	})
	for _, result := range []string{
		`{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{}}}}`,
		`{"resultType":"task","taskId":"t"}`,
	} {
		t.Run(result, func(t *testing.T) {
			s, c := modernServer(t, 10*time.Second)
			s.On("tools/call", func(x *upstreamtest.Exchange) { x.Result(result) })
			_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
			if failed := failure(t, err); failed.Reason != upstream.ReasonInput || s.Count("tools/call") != 1 {
				t.Errorf("%+v: %v", failed, err)
			}
		})
	}
}

func TestC50NoSecretInErrors(t *testing.T) {
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: "http://127.0.0.1:1/mcp?key=SECRET", Protocol: upstream.Legacy})
	_, err := c.List(t.Context(), "demo")
	if err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("error %v", err)
	}
}

func TestC51NothingNamedIsFetched(t *testing.T) {
	s := upstreamtest.HostileServer("unauthorized")
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy})
	_, err := c.List(t.Context(), "demo")
	if failed := failure(t, err); failed.Reason != upstream.ReasonStatus || s.Count("tools/list") != 1 {
		t.Errorf("%+v: %v", failed, err)
	}
}

func TestC60ListChanged(t *testing.T) {
	s, c := legacyServer(t, 20*time.Second)
	for name, one := range map[string]string{
		"200 notifications": `{}`,
		"1.9 MiB of them":   `{"filler":"` + strings.Repeat("a", 9900) + `"}`,
	} {
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			for range 200 {
				x.Notify("notifications/tools/list_changed", one)
			}
			x.Event(x.Message(`"result":` + upstreamtest.Text("ok")))
		})
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.On("tools/call", func(x *upstreamtest.Exchange) {
		for range 300 {
			x.Notify("notifications/tools/list_changed", `{"filler":"`+strings.Repeat("a", 9900)+`"}`)
		}
		x.Event(x.Message(`"result":` + upstreamtest.Text("ok")))
	})
	_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
	if failed := failure(t, err); failed.Reason != upstream.ReasonTooLarge {
		t.Errorf("2.9 MiB of them: %+v", failed)
	}
	if s.Count("tools/list") != 0 {
		t.Error("the client listed by itself")
	}
}
