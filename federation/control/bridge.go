package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"gatehouse/gate/rawjson"
)

const (
	// maxLine bounds one message from the client, as the endpoint bounds its body.
	maxLine = 2 << 20
	// maxInFlight bounds the requests of one client that wait for an answer.
	maxInFlight = 256
	// lastAnswers is how long the bridge waits for open answers after the client
	// closed its side: a script writes its requests and then reads.
	lastAnswers = 30 * time.Second
	// farewell bounds the end of the session.
	farewell = 2 * time.Second
)

// Bridge carries messages between a client that speaks stdio, one JSON-RPC
// message a line, and an endpoint, until the client closes its side or ctx
// ends. Messages pass as the bytes they are; only line ends between them become
// spaces, which JSON does not tell apart.
func Bridge(ctx context.Context, e Endpoint, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &bridge{endpoint: e, out: out, cancel: cancel, running: map[string]context.CancelFunc{}}
	lines := make(chan []byte)
	ended := make(chan error, 1)
	// Reading a pipe cannot be cancelled. When ctx ends first, this goroutine ends
	// with the next line or with the process.
	go func() { ended <- readLines(ctx, in, lines) }()
	err := b.pump(ctx, lines, ended)
	if err == nil {
		b.drain(ctx)
	}
	cancel(nil)
	b.requests.Wait()
	b.work.Wait()
	b.goodbye(ctx)
	return err
}

func readLines(ctx context.Context, in io.Reader, lines chan<- []byte) error {
	r := bufio.NewReader(in)
	for {
		message, err := line(r, maxLine)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("standard input: %w", err)
		case len(bytes.TrimSpace(message)) == 0:
			continue
		}
		select {
		case lines <- message:
		case <-ctx.Done():
			return nil
		}
	}
}

// A bridge is one client's.
type bridge struct {
	endpoint Endpoint
	cancel   context.CancelCauseFunc
	requests sync.WaitGroup // requests without an answer; all end with the context
	work     sync.WaitGroup // the stream and whoever waits; all end with the context

	outMu sync.Mutex // makes each line whole
	out   io.Writer

	opening sync.Mutex // held while a session is opened again

	mu      sync.Mutex // guards what follows
	hello   []byte     // the client's initialize, to open a session again with
	session string     // of the legacy era, from initialize on
	version string
	running map[string]context.CancelFunc // requests without an answer, by raw id
}

func (b *bridge) pump(ctx context.Context, lines <-chan []byte, ended <-chan error) error {
	for {
		select {
		case message := <-lines:
			b.take(ctx, message)
		case err := <-ended:
			return err
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		}
	}
}

// take handles one message of the client. Notifications and answers keep their
// order; requests run side by side, since one may wait for a person.
func (b *bridge) take(ctx context.Context, message []byte) {
	members, _ := rawjson.Object(message) // what cannot be read, the endpoint refuses
	id, hasID := rawjson.Get(members, "id")
	method := rawjson.GetText(members, "method")
	switch {
	case method == "" || !hasID:
		if method == "notifications/cancelled" && b.cancelRequest(members) {
			return
		}
		b.post(ctx, message, nil, method)
		if method == "notifications/initialized" {
			b.listen(ctx)
		}
	case method == "initialize":
		// Everything after it needs the session that it opens.
		b.mu.Lock()
		b.hello = message
		b.mu.Unlock()
		b.post(ctx, message, id, method)
	default:
		b.run(ctx, message, bytes.Clone(id), method)
	}
}

// run sends one request on a goroutine of its own, which ends with its answer
// or with ctx, and which Bridge waits for.
func (b *bridge) run(ctx context.Context, message, id []byte, method string) {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	_, twice := b.running[string(id)]
	full := len(b.running) >= maxInFlight
	if !twice && !full {
		b.running[string(id)] = cancel
	}
	b.mu.Unlock()
	if twice || full {
		cancel()
		b.fail(id, -32600, "this request id is in use, or too many requests wait for an answer")
		return
	}
	b.requests.Go(func() {
		defer func() {
			cancel()
			b.mu.Lock()
			delete(b.running, string(id))
			b.mu.Unlock()
		}()
		b.post(ctx, message, id, method)
	})
}

// cancelRequest ends a request of the era without sessions, where leaving is
// how a request is cancelled. It reports false in the era with sessions, where
// the endpoint wants the notification itself.
func (b *bridge) cancelRequest(members []rawjson.Member) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != "" {
		return false
	}
	id, _ := rawjson.Get(rawjson.GetObject(members, "params"), "requestId")
	if cancel := b.running[string(id)]; cancel != nil {
		cancel()
	}
	return true
}

// request makes an HTTP request with the headers of the session it returns.
func (b *bridge) request(ctx context.Context, method string, body []byte, withSession bool) (req *http.Request, session string) {
	req, err := http.NewRequestWithContext(ctx, method, b.endpoint.URL, bytes.NewReader(body))
	if err != nil {
		panic("unreachable: the endpoint's url and the method are ours")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	b.mu.Lock()
	defer b.mu.Unlock()
	if withSession && b.session != "" {
		req.Header.Set("Mcp-Session-Id", b.session)
		req.Header.Set("Mcp-Protocol-Version", b.version)
	}
	return req, b.session
}

// post sends one message and passes on what comes back. Id is the request's,
// nil when nothing is to be answered.
func (b *bridge) post(ctx context.Context, message, id []byte, method string) {
	req, session := b.request(ctx, http.MethodPost, message, method != "initialize")
	resp, err := b.endpoint.Client.Do(req)
	if err == nil && resp.StatusCode == http.StatusNotFound && session != "" && method != "" && method != "initialize" {
		// The session is gone, with a daemon that was restarted or for its
		// idleness, so the message was not looked at. A client that speaks stdio
		// knows of no sessions; it gets a new one.
		resp.Body.Close()
		if b.reopen(ctx, session) {
			req, _ = b.request(ctx, http.MethodPost, message, true)
		} else {
			req, _ = b.request(ctx, http.MethodPost, message, false)
		}
		resp, err = b.endpoint.Client.Do(req)
	}
	if err != nil {
		if ctx.Err() == nil {
			b.fail(id, -32603, "the gateway does not answer; is it running?")
		}
		return
	}
	defer resp.Body.Close()
	b.pass(ctx, resp, id, method)
}

// pass hands a reply to the client, and answers in its stead when it is none.
func (b *bridge) pass(ctx context.Context, resp *http.Response, id []byte, method string) {
	answered := false
	err := messages(resp, func(m []byte) error {
		if method == "initialize" {
			b.opened(resp, m)
		}
		answered = true
		return b.write(m)
	})
	switch {
	case ctx.Err() != nil, answered && err == nil:
	case resp.StatusCode == http.StatusNotFound:
		b.fail(id, -32600, "the session has ended; initialize again")
	case resp.StatusCode >= 300:
		b.fail(id, -32603, "the gateway answered "+resp.Status)
	case id != nil && !answered:
		b.fail(id, -32603, "the gateway ended the request without an answer")
	}
}

// messages passes each message of a reply to f, be it one or a stream.
func messages(resp *http.Response, f func([]byte) error) error {
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "text/event-stream" {
		return Events(resp.Body, f)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxEvent))
	if err != nil || !rawjson.IsObject(bytes.TrimSpace(body)) || rawjson.CheckSyntax(body) != nil {
		return err
	}
	return f(body)
}

// reopen opens a session in place of a stale one, as the client opened that.
// The client is not told: its answer to initialize stands.
func (b *bridge) reopen(ctx context.Context, stale string) bool {
	b.opening.Lock()
	defer b.opening.Unlock()
	b.mu.Lock()
	current, hello := b.session, b.hello
	b.mu.Unlock()
	if current != stale {
		return true // somebody else was faster
	}
	req, _ := b.request(ctx, http.MethodPost, hello, false)
	resp, err := b.endpoint.Client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if messages(resp, func(m []byte) error { b.opened(resp, m); return nil }) != nil {
		return false
	}
	req, session := b.request(ctx, http.MethodPost, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), true)
	if session == stale {
		return false
	}
	if resp, err := b.endpoint.Client.Do(req); err == nil {
		resp.Body.Close()
	}
	b.listen(ctx)
	return true
}

// opened takes the session from the answer to initialize.
func (b *bridge) opened(resp *http.Response, answer []byte) {
	session := resp.Header.Get("Mcp-Session-Id")
	if session == "" {
		return
	}
	members, _ := rawjson.Object(answer)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session, b.version = session, rawjson.GetText(rawjson.GetObject(members, "result"), "protocolVersion")
}

// listen passes on what the gateway says by itself, until it has no more to
// say. That the catalogue changed is a hint, so a lost stream costs no answer.
func (b *bridge) listen(ctx context.Context) {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	if session == "" {
		return
	}
	b.work.Go(func() { // ends with the stream or with ctx; Bridge waits
		req, _ := b.request(ctx, http.MethodGet, nil, true)
		resp, err := b.endpoint.Client.Do(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			_ = Events(resp.Body, b.write) // what ends it, ends it
		}
	})
}

// drain waits for the answers that are still due.
func (b *bridge) drain(ctx context.Context) {
	answered := make(chan struct{})
	b.work.Go(func() { // ends with the requests, which end with ctx
		b.requests.Wait()
		close(answered)
	})
	deadline := time.NewTimer(lastAnswers)
	defer deadline.Stop()
	select {
	case <-answered:
	case <-deadline.C:
	case <-ctx.Done():
	}
}

// goodbye ends the session, so that nothing of it waits to be forgotten.
func (b *bridge) goodbye(ctx context.Context) {
	b.mu.Lock()
	session := b.session
	b.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	req, _ := b.request(ctx, http.MethodDelete, nil, true)
	if resp, err := b.endpoint.Client.Do(req); err == nil {
		resp.Body.Close()
	}
}

// write passes one message to the client as one line. A client that is gone
// ends everything.
func (b *bridge) write(message []byte) error {
	line := append(bytes.Clone(message), '\n')
	for i, c := range line[:len(line)-1] {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	b.outMu.Lock()
	defer b.outMu.Unlock()
	_, err := b.out.Write(line)
	if err != nil {
		b.cancel(fmt.Errorf("standard output: %w", err))
	}
	return err
}

// fail answers in the gateway's stead. What was no request gets no answer.
func (b *bridge) fail(id []byte, code int, message string) {
	if id == nil {
		return
	}
	out := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":`, id, code)
	_ = b.write(append(rawjson.AppendString(out, message), "}}"...))
}
