package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
)

// A stdioClient plays a client that speaks stdio to a bridge.
type stdioClient struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	done  chan error

	sessions chan string // the id of each session, as it is opened
}

func bridgeTo(t *testing.T, e Endpoint) *stdioClient {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &stdioClient{t: t, in: inW, lines: make(chan string, 100), done: make(chan error, 1), sessions: make(chan string, 10)}
	client := *e.Client
	client.Transport = watched{client.Transport, c.sessions}
	e.Client = &client
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	go func() {
		c.done <- Bridge(ctx, e, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(outR); s.Scan(); {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() { inW.Close(); cancel() })
	return c
}

// watched tells the ids of sessions that replies bring.
type watched struct {
	http.RoundTripper
	sessions chan<- string
}

func (w watched) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	if err == nil && resp.Header.Get("Mcp-Session-Id") != "" && req.Header.Get("Mcp-Session-Id") == "" {
		w.sessions <- resp.Header.Get("Mcp-Session-Id")
	}
	return resp, err
}

func (c *stdioClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads one line that holds all of wants.
func (c *stdioClient) expect(wants ...string) string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		for _, want := range wants {
			if !ok || !strings.Contains(line, want) {
				c.t.Fatalf("got %q, want it to hold %q", line, want)
			}
		}
		return line
	case <-time.After(10 * time.Second):
		c.t.Fatalf("nothing came, want %q", wants)
	}
	return ""
}

const (
	initialize  = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	callEcho    = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_demo_echo","arguments":{"message":"hello"}}}`
)

func TestBridgeAsksInTheLegacyEra(t *testing.T) {
	r := newRig(t, "")
	for answer, want := range map[string]string{
		`{"action":"accept","content":{"decision":"approve"}}`: `"text":"hello"`,
		`{"action":"decline"}`:                                 "not approved",
	} {
		c := bridgeTo(t, r.remote.Endpoint("me"))
		c.send(initialize)
		c.expect(`"id":"i"`, `"protocolVersion":"2025-11-25"`)
		c.send(initialized)
		c.send(callEcho)
		var question struct{ ID json.RawMessage }
		if err := json.Unmarshal([]byte(c.expect(`"method":"elicitation/create"`, "hello")), &question); err != nil {
			t.Fatal(err)
		}
		// While somebody thinks, other requests are answered.
		c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
		c.expect(`"id":2`)
		c.send(`{"jsonrpc":"2.0","id":` + string(question.ID) + `,"result":` + answer + `}`)
		c.expect(`"id":1`, want)
		c.in.Close()
		if err := <-c.done; err != nil {
			t.Error(err)
		}
	}
}

func TestBridgeAsksInTheModernEra(t *testing.T) {
	r := newRig(t, "")
	c := bridgeTo(t, r.remote.Endpoint("me"))
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_demo_echo","arguments":{"message":"hello"},` + meta
	c.send(call + `}}`)
	var asked struct {
		Result struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(c.expect(`"resultType":"input_required"`)), &asked); err != nil {
		t.Fatal(err)
	}
	for key := range asked.Result.InputRequests {
		c.send(strings.Replace(call, `"id":1`, `"id":2`, 1) + `,"requestState":"` + asked.Result.RequestState + `","inputResponses":{"` + key + `":{"action":"accept","content":{"decision":"approve"}}}}}`)
	}
	c.expect(`"id":2`, `"text":"hello"`)
}

func TestBridgeTellsThatTheCatalogueChanged(t *testing.T) {
	r := newRig(t, "")
	c := bridgeTo(t, r.remote.Endpoint("me"))
	c.send(initialize)
	c.expect(`"id":"i"`)
	c.send(initialized)
	// The stream is open once a change arrives; until then it may be missed.
	for {
		if _, err := r.local.Disable(t.Context(), []string{"mcp_demo_clock"}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.local.Enable(t.Context(), []string{"mcp_demo_clock"}); err != nil {
			t.Fatal(err)
		}
		select {
		case line := <-c.lines:
			if !strings.Contains(line, "notifications/tools/list_changed") {
				t.Errorf("got %s", line)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// endpointOf is an endpoint that a function plays.
func endpointOf(f func(http.ResponseWriter, *http.Request)) Endpoint {
	return Endpoint{URL: "http://gatehouse/mcp", Client: &http.Client{Transport: played(f)}}
}

type played func(http.ResponseWriter, *http.Request)

// RoundTrip answers through a pipe, so that a reply can come in pieces.
func (p played) RoundTrip(req *http.Request) (*http.Response, error) {
	r, w := io.Pipe()
	out := &pipeWriter{header: http.Header{}, status: make(chan int, 1), w: w}
	go func() {
		p(out, req)
		out.WriteHeader(http.StatusOK)
		w.Close()
	}()
	select {
	case status := <-out.status:
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: out.header, Body: r, Request: req}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

type pipeWriter struct {
	header http.Header
	status chan int
	w      *io.PipeWriter
}

func (p *pipeWriter) Header() http.Header { return p.header }
func (p *pipeWriter) WriteHeader(status int) {
	select {
	case p.status <- status:
	default:
	}
}
func (p *pipeWriter) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.w.Write(b)
}

func TestBridgeKeepsLinesWhole(t *testing.T) {
	c := bridgeTo(t, endpointOf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, "{\"jsonrpc\":\"2.0\",\r\n \"id\":1,\n\"result\":{\"n\":9007199254740993.0, \"s\":\"\\n<\"}}")
	}))
	c.send(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
	if got, want := c.expect(), `{"jsonrpc":"2.0",   "id":1, "result":{"n":9007199254740993.0, "s":"\n<"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBridgeAnswersForAGatewayThatDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		play func(http.ResponseWriter, *http.Request)
		want string
	}{
		"plain text": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		}, "answered"},
		"empty":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, "without an answer"},
		"empty stream":  {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") }, "without an answer"},
		"session ended": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) }, "initialize again"},
	} {
		s := bridgeTo(t, endpointOf(c.play))
		s.send(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`)
		if line := s.expect(`"id":"a"`, `"error"`); !strings.Contains(line, c.want) {
			t.Errorf("%s: %s, want %q", name, line, c.want)
		}
	}
}

func TestBridgeCancelsByLeaving(t *testing.T) {
	gone := make(chan struct{})
	c := bridgeTo(t, endpointOf(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	}))
	c.send(`{"jsonrpc":"2.0","id":"slow","method":"tools/call"}`)
	c.send(`{"jsonrpc":"2.0","id":"slow","method":"tools/call"}`)
	c.expect(`"id":"slow"`, "in use")
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}`)
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Fatal("the request goes on")
	}
	c.in.Close()
	if err := <-c.done; err != nil {
		t.Error(err)
	}
}

func TestBridgeBoundsLines(t *testing.T) {
	err := Bridge(t.Context(), endpointOf(nil), strings.NewReader(strings.Repeat("x", maxLine+1)), io.Discard)
	if !errors.Is(err, errTooLong) {
		t.Errorf("got %v, want %v", err, errTooLong)
	}
}

func TestBridgeOpensALostSessionAgain(t *testing.T) {
	r := newRig(t, "")
	c := bridgeTo(t, r.remote.Endpoint("me"))
	c.send(initialize)
	c.expect(`"id":"i"`)
	c.send(initialized)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.expect(`"id":2`)

	// To the bridge, a session that somebody ended looks as after a restart.
	e := r.remote.Endpoint("me")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, e.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", <-c.sessions)
	resp, err := e.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	c.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	c.expect(`"id":3`, "mcp_demo_echo")
	c.send(callEcho)
	c.expect(`"method":"elicitation/create"`)
}

type bindings struct{ tool *gate.Tool }

func (b bindings) Tool(gate.LocalName) *gate.Tool { return b.tool }
func (bindings) Generation() uint64               { return 1 }

func TestHeadersAreMadeOfTheMessage(t *testing.T) {
	s := bindings{&gate.Tool{ParamHeaders: []gate.ParamHeader{
		{Name: "Region", Path: []string{"where", "region"}, Type: "string"},
		{Name: "Count", Path: []string{"count"}, Type: "integer"},
		{Name: "Absent", Path: []string{"nothing", "here"}, Type: "string"},
		{Name: "Null", Path: []string{"null"}, Type: "string"},
	}}}
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_a_b","arguments":{"where":{"region":"Köln"},"count":9007199254740993,"null":null},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://x/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	completeHeaders(r, []byte(body), s)
	for name, want := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "mcp_a_b",
		"Mcp-Param-Region": "=?base64?S8O2bG4=?=", "Mcp-Param-Count": "9007199254740993",
		"Mcp-Param-Absent": "", "Mcp-Param-Null": "", "Content-Type": "application/json",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, _ := io.ReadAll(r.Body); string(got) != body {
		t.Errorf("the body is %s", got)
	}
	for in, want := range map[string]string{
		"plain text\tx": "plain text\tx", " outer": "=?base64?IG91dGVy?=", "=?base64?eA==?=": "=?base64?PT9iYXNlNjQ/ZUE9PT89?=", "a\nb": "=?base64?YQpi?=", "": "",
	} {
		if got := headerValue(in); got != want {
			t.Errorf("%q is written %q, want %q", in, got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	var got []string
	stream := ": comment\n\nevent: message\r\ndata: {\"a\":1}\r\n\r\ndata:{\ndata: }\nid: 3\n\n\n\ndata: cut"
	if err := Events(strings.NewReader(stream), func(data []byte) error { got = append(got, string(data)); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := `{"a":1}|{` + "\n" + `}`; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	stop := errors.New("enough")
	if err := Events(strings.NewReader("data: x\n\n"), func([]byte) error { return stop }); err != stop {
		t.Errorf("got %v, want the function's own error", err)
	}
}
