package wire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// work is a work request that tempts net/http: with this header it would call
// a POST idempotent, if it had a way to read the body again.
func work() Request {
	return Request{Method: "tools/call", Params: [][]byte{[]byte(`{"name":"transfer"}`)}, Once: true,
		Header: http.Header{"Idempotency-Key": {"1"}, "X-Idempotency-Key": {"1"}}}
}

// A server that closes a reused connection after it has read the request gets
// it once, and what became of it is unknown.
func TestNeverTwice_ReusedConnectionClosedAfterReading(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, n int, r sent) bool {
		if n == 0 {
			respond(w, "200 OK", "", response(r.id, "{}"))
		}
		return n == 0
	})
	e := endpoint(t, EndpointOptions{URL: s.url})
	if _, failure := do(t, e, Request{Method: "initialize"}); failure != nil {
		t.Fatal(failure)
	}
	_, failure := do(t, e, work())
	wantKind(t, failure, Transport)
	if !failure.Wrote {
		t.Error("the request arrived, and the error says that it did not")
	}
	if got := len(s.requests()); got != 2 || s.conns != 1 {
		t.Errorf("the server got %d requests on %d connections, want 2 on 1", got, s.conns)
	}
}

// A server that closes a fresh connection after reading gets it once too.
func TestNeverTwice_FreshConnectionClosedAfterReading(t *testing.T) {
	s := serveBytes(t, func(net.Conn, int, sent) bool { return false })
	_, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), work())
	wantKind(t, failure, Transport)
	if got := len(s.requests()); got != 1 || !failure.Wrote {
		t.Errorf("the server got %d requests, wrote %t; want one that may have arrived", got, failure.Wrote)
	}
}

// A connection that died while it was idle leads to no second try either, and
// when nothing was written that is said.
func TestNeverTwice_IdleConnectionReset(t *testing.T) {
	reset := make(chan struct{})
	s := serveBytes(t, func(w net.Conn, n int, r sent) bool {
		respond(w, "200 OK", "", response(r.id, "{}"))
		if n == 0 {
			w.(*net.TCPConn).SetLinger(0)
			w.Close()
			close(reset)
			return false
		}
		return true
	})
	e := endpoint(t, EndpointOptions{URL: s.url})
	if _, failure := do(t, e, Request{Method: "initialize"}); failure != nil && failure.Kind != Transport {
		t.Fatal(failure)
	}
	<-reset
	_, failure := do(t, e, work())
	got := len(s.requests())
	if failure == nil && got != 2 || failure != nil && got == 2 && !failure.Wrote {
		t.Errorf("the server got %d requests, the outcome is %v", got, failure)
	}
}

func TestNeverTwice_Redirects(t *testing.T) {
	for _, status := range []string{"301 x", "302 x", "303 x", "307 x", "308 x"} {
		s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
			respond(w, status, "Location: /again", "")
			return true
		})
		_, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), work())
		wantKind(t, failure, Redirect)
		if got := len(s.requests()); got != 1 {
			t.Errorf("%s: the server got %d requests, want 1", status, got)
		}
	}
}

// A refusing HTTP/2 server, frame by frame: net/http retries what these say,
// when it can.
func TestNeverTwice_HTTP2(t *testing.T) {
	const (
		refusedStream = 7
		protocolError = 1
	)
	tests := map[string]func(w io.Writer, stream uint32){
		"REFUSED_STREAM": func(w io.Writer, stream uint32) {
			writeFrame(w, frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, refusedStream))
		},
		"PROTOCOL_ERROR": func(w io.Writer, stream uint32) {
			writeFrame(w, frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, protocolError))
		},
		"GOAWAY that disowns the stream": func(w io.Writer, stream uint32) {
			writeFrame(w, frameGoAway, 0, 0, make([]byte, 8))
		},
		"GOAWAY that owns it, then the end": func(w io.Writer, stream uint32) {
			writeFrame(w, frameGoAway, 0, 0, append(binary.BigEndian.AppendUint32(nil, stream), 0, 0, 0, 0))
			w.(io.Closer).Close()
		},
		"the end": func(w io.Writer, stream uint32) { w.(io.Closer).Close() },
	}
	for name, refuse := range tests {
		for _, when := range []string{"after the message", "after its header"} {
			t.Run(name+" "+when, func(t *testing.T) {
				s := serveFrames(t, func(w io.Writer, stream uint32, header bool) {
					if header == (when == "after its header") {
						refuse(w, stream)
					}
				})
				e := endpoint(t, EndpointOptions{URL: s.url, TLS: TLSOptions{CAFile: s.ca}})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				_, failure := doIn(t, ctx, e, work())
				if failure == nil || failure.Kind != Transport && failure.Kind != Deadline {
					t.Fatalf("got %v, want a failed connection", failure)
				}
				if got := s.messages.Load(); got > 1 || got == 1 && !failure.Wrote {
					t.Errorf("the server got the message %d times; %v, wrote %t", got, failure, failure.Wrote)
				}
				if when == "after the message" && s.messages.Load() != 1 {
					t.Errorf("the server got the message %d times, want once", s.messages.Load())
				}
			})
		}
	}
}

const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7

	flagEndStream, flagAck = 1, 1
)

func writeFrame(w io.Writer, kind, flags byte, stream uint32, payload []byte) {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	w.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
}

// A framesServer speaks just enough HTTP/2 (RFC 9113) to refuse it.
type framesServer struct {
	url, ca  string
	messages atomic.Int32 // message bodies that arrived
}

// serveFrames calls answer with header = true for each HEADERS frame, and with
// false when a message has arrived.
func serveFrames(t *testing.T, answer func(w io.Writer, stream uint32, header bool)) *framesServer {
	t.Helper()
	certificate := newAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate.server}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &framesServer{url: "https://" + l.Addr().String() + "/mcp", ca: certificate.file}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(conn, answer)
		}
	}()
	return s
}

func (s *framesServer) serve(conn net.Conn, answer func(io.Writer, uint32, bool)) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	writeFrame(conn, frameSettings, 0, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		stream := binary.BigEndian.Uint32(head[5:])
		switch kind, flags := head[3], head[4]; {
		case kind == frameSettings && flags&flagAck == 0:
			writeFrame(conn, frameSettings, flagAck, 0, nil)
		case kind == framePing && flags&flagAck == 0:
			writeFrame(conn, framePing, flagAck, 0, payload)
		case kind == frameHeaders:
			answer(conn, stream, true)
		case kind == frameData && strings.Contains(string(payload), `"tools/call"`):
			s.messages.Add(1)
			answer(conn, stream, false)
		}
	}
}

// Nothing was sent when nobody listens.
func TestWrote_NotWhenTheDialFails(t *testing.T) {
	// Port 1 is never given out, so that no server of another test has it.
	_, failure := do(t, endpoint(t, EndpointOptions{URL: "http://127.0.0.1:1/mcp?key=SECRET"}), work())
	wantKind(t, failure, Transport)
	if failure.Wrote || strings.Contains(failure.Error(), "SECRET") {
		t.Errorf("%v, wrote %t", failure, failure.Wrote)
	}
}

// Nothing was sent when the credential cannot be had or cannot be sent, or the
// context is over before.
func TestWrote_NotBeforeTheCredential(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	e := endpoint(t, EndpointOptions{URL: s.url})
	cause := errors.New("no such secret")
	for _, credential := range []Credential{
		func(context.Context) (string, string, error) { return "", "", cause },
		func(context.Context) (string, string, error) { return "X-Api-Key", "K\r\nX-Admin: SECRET", nil },
		func(context.Context) (string, string, error) { return "X-Api-Key", "", nil },
	} {
		r := work()
		r.Credential = credential
		_, failure := do(t, e, r)
		wantKind(t, failure, CredentialFailed)
		if failure.Wrote || strings.Contains(failure.Error(), "SECRET") {
			t.Errorf("%v, wrote %t", failure, failure.Wrote)
		}
	}
	r := work()
	r.Credential = func(context.Context) (string, string, error) { return "", "", cause }
	if _, failure := do(t, e, r); !errors.Is(failure, cause) {
		t.Errorf("%v does not hold the credential's error", failure)
	}
	r.Credential = func(context.Context) (string, string, error) { return "X-Api-Key", "K", cause }
	if _, failure := do(t, e, r); !errors.Is(failure, cause) {
		t.Errorf("%v does not hold the error that came beside a value", failure)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Credential = func(context.Context) (string, string, error) {
		t.Error("a credential was asked for after the end")
		return "", "", nil
	}
	_, failure := doIn(t, ctx, e, r)
	wantKind(t, failure, Cancelled)
	if failure.Wrote || len(s.requests()) != 0 {
		t.Errorf("wrote %t, the server got %d requests", failure.Wrote, len(s.requests()))
	}
	// A credential that outlasts the budget is the budget's failure.
	r.Credential = func(ctx context.Context) (string, string, error) { <-ctx.Done(); return "", "", ctx.Err() }
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	_, failure = doIn(t, short, e, r)
	wantKind(t, failure, Deadline)
}

// The credential replaces whatever stands under its name.
func TestCredentialIsSent(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	e := endpoint(t, EndpointOptions{URL: s.url, UserAgent: "gatehouse/1"})
	header := http.Header{"X-Api-Key": {"inbound"}}
	_, failure := do(t, e, Request{Method: "tools/list", Header: header,
		Credential: func(context.Context) (string, string, error) { return "x-api-key", "K", nil }})
	if failure != nil {
		t.Fatal(failure)
	}
	none := func(context.Context) (string, string, error) { return "", "", nil }
	if _, failure := do(t, e, Request{Method: "tools/list", Credential: none}); failure != nil {
		t.Errorf("without a credential: %v", failure)
	}
	status, err := e.Delete(t.Context(), header, func(context.Context) (string, string, error) { return "Authorization", "Bearer T", nil })
	if err != nil || status != 200 {
		t.Fatalf("DELETE: %d, %v", status, err)
	}
	got := s.requests()
	if v := got[0].header.Values("X-Api-Key"); len(v) != 1 || v[0] != "K" {
		t.Errorf("X-Api-Key is %q, want K once", v)
	}
	if header.Get("X-Api-Key") != "inbound" {
		t.Error("the caller's header was written to")
	}
	last := got[len(got)-1]
	if last.method != "DELETE" || last.body != "" || last.header.Get("Authorization") != "Bearer T" || last.header.Get("User-Agent") != "gatehouse/1" {
		t.Errorf("the DELETE was %+v", last)
	}
}

func TestDeleteFails(t *testing.T) {
	s := serveBytes(t, func(net.Conn, int, sent) bool { return false })
	e := endpoint(t, EndpointOptions{URL: s.url})
	_, err := e.Delete(t.Context(), nil, nil)
	if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Kind != Transport || !failure.Wrote {
		t.Errorf("got %v, want a transport error of a request that may have arrived", err)
	}
	failing := func(context.Context) (string, string, error) { return "", "", errors.New("none") }
	_, err = e.Delete(t.Context(), nil, failing)
	if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Kind != CredentialFailed || len(s.requests()) != 1 {
		t.Errorf("got %v after %d requests, want no credential and nothing sent", err, len(s.requests()))
	}
}

// A body hands itself out once, and a sealed one not at all.
func TestBodyIsReadOnce(t *testing.T) {
	b := &body{data: []byte("message")}
	if got, err := io.ReadAll(b); string(got) != "message" || err != nil {
		t.Fatalf("read %q, %v", got, err)
	}
	if got, err := io.ReadAll(b); len(got) != 0 || err != nil {
		t.Errorf("read again: %q, %v; want nothing", got, err)
	}
	if b.seal() {
		t.Error("a body that was read passes for one that was not")
	}
	fresh := &body{data: []byte("message")}
	if n, err := fresh.Read(nil); n != 0 || err != nil {
		t.Errorf("an empty read gives %d, %v", n, err)
	}
	for range 2 {
		if !fresh.seal() {
			t.Error("a body that was not read cannot be sealed")
		}
	}
	if got, err := io.ReadAll(fresh); len(got) != 0 || err == nil {
		t.Errorf("a sealed body gave %q, %v", got, err)
	}
}

// A connection proves that nothing was written only when that cannot change.
func TestCountedConn(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go io.Copy(io.Discard, there)
	c := &countedConn{Conn: here}
	c.Write([]byte("before"))
	x := &sharedTrip{body: &body{data: []byte("m")}}
	x.body.Read(make([]byte, 1))
	x.gotConn(httptrace.GotConnInfo{Conn: tls.Client(c, &tls.Config{})})
	if x.conn != c || x.mark != 6 {
		t.Fatalf("noted %v at %d, want the connection under TLS at 6", x.conn, x.mark)
	}
	if x.neverLeft() {
		t.Error("an open connection may still be written to")
	}
	c.Close()
	if !x.neverLeft() {
		t.Error("a closed connection that was not written to since proves that nothing left")
	}
	c.writing.Add(1)
	if x.neverLeft() {
		t.Error("a write under way may have left")
	}
	c.writing.Add(-1)
	c.written.Add(1)
	if x.neverLeft() {
		t.Error("a byte may have left")
	}
}

// Only a work request learns its connection, and only one that can be told.
func TestWorkRequestLearnsItsConnection(t *testing.T) {
	x := &sharedTrip{}
	if httptrace.ContextClientTrace(x.dialing(t.Context())) != nil {
		t.Error("any request is traced")
	}
	x.once = true
	trace := httptrace.ContextClientTrace(x.dialing(t.Context()))
	if trace == nil || trace.GotConn == nil {
		t.Fatal("a work request is not traced")
	}
	here, there := net.Pipe()
	here.Close()
	there.Close()
	trace.GotConn(httptrace.GotConnInfo{Conn: here})
	if x.conn != nil {
		t.Error("a connection that counts nothing was noted")
	}
}

// A DELETE does not wait for the end of its answer either.
func TestDeleteIsNotWaitedFor(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		e := startServer(t, func(w http.ResponseWriter, r *http.Request) { trickle(w, r, "text/plain", "x", 10*time.Millisecond) }, http2)
		start := time.Now()
		if status, err := e.Delete(t.Context(), nil, nil); status != 200 || err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("http2 %t: %d, %v after %s", http2, status, err, time.Since(start))
		}
		e.CloseIdle()
	}
}

// With an HTTP/2 server the work request is made the same way.
func TestHTTP2RoundTrip(t *testing.T) {
	var protocol atomic.Value
	certificate := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protocol.Store(r.Proto)
		sent, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, response(idPattern.FindStringSubmatch(string(sent))[1], "{}"))
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate.server}}
	server.StartTLS()
	defer server.Close()
	e := endpoint(t, EndpointOptions{URL: server.URL, TLS: TLSOptions{CAFile: certificate.file}})
	defer e.CloseIdle()
	for range 3 {
		if reply, failure := do(t, e, work()); failure != nil || string(reply.Result) != "{}" {
			t.Fatalf("got %v, %v", reply, failure)
		}
	}
	if protocol.Load() != "HTTP/2.0" {
		t.Errorf("spoke %v", protocol.Load())
	}
}

// What a server gets does not depend on the way that the message travels.
func TestBothTripsSendTheSame(t *testing.T) {
	certificate := newAuthority(t)
	type request struct {
		method, host, target, body string
		header                     http.Header
	}
	send := func(secure, http2 bool) (got []request, protocol string) {
		var mu sync.Mutex
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			id := "none"
			if m := idPattern.FindStringSubmatch(string(body)); m != nil {
				id = m[1]
			}
			r.Header.Del("Content-Length") // HTTP/2 has a field for it, HTTP/1.1 needs none here
			mu.Lock()
			got = append(got, request{r.Method, r.Host, r.RequestURI, strings.ReplaceAll(string(body), id, "ID"), r.Header.Clone()})
			protocol = r.Proto
			mu.Unlock()
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, response(id, "{}"))
		}))
		server.EnableHTTP2 = http2
		if server.TLS = (&tls.Config{Certificates: []tls.Certificate{certificate.server}}); secure {
			server.StartTLS()
		} else {
			server.Start()
		}
		defer server.Close()
		e := endpoint(t, EndpointOptions{URL: server.URL + "/mcp?tenant=1", UserAgent: "gatehouse/1", TLS: TLSOptions{CAFile: certificate.file}})
		defer e.CloseIdle()
		header := http.Header{"X-Api-Key": {"inbound"}, "Mcp-Method": {"tools/call"}, "X-Two": {"a", "b"}}
		proof := func(context.Context) (string, string, error) { return "x-api-key", "K", nil }
		none := func(context.Context) (string, string, error) { return "", "", nil }
		for _, credential := range []Credential{proof, none, nil} {
			r := work()
			r.Header, r.Credential = header, credential
			if _, failure := do(t, e, r); failure != nil {
				t.Fatal(failure)
			}
		}
		if _, err := e.Delete(t.Context(), header, proof); err != nil {
			t.Fatal(err)
		}
		if header.Get("X-Api-Key") != "inbound" || len(header) != 3 {
			t.Errorf("the caller's header was written to: %v", header)
		}
		server.Close()
		mu.Lock()
		defer mu.Unlock()
		for i := range got {
			if got[i].host != server.Listener.Addr().String() {
				t.Errorf("%s names the host %q", got[i].method, got[i].host)
			}
			got[i].host = ""
		}
		return got, protocol
	}
	plain, _ := send(false, false)
	if len(plain) != 4 || plain[0].method != "POST" || plain[3].method != "DELETE" || plain[0].target != "/mcp?tenant=1" ||
		!reflect.DeepEqual(plain[0].header, http.Header{"Accept": {acceptedMedia}, "Accept-Encoding": {"identity"}, "Content-Type": {jsonBody},
			"User-Agent": {"gatehouse/1"}, "X-Api-Key": {"K"}, "Mcp-Method": {"tools/call"}, "X-Two": {"a", "b"}}) {
		t.Fatalf("over plain HTTP it gets %+v", plain)
	}
	if want := (http.Header{"Accept-Encoding": {"identity"}, "User-Agent": {"gatehouse/1"}, "X-Api-Key": {"K"}, "Mcp-Method": {"tools/call"},
		"X-Two": {"a", "b"}}); !reflect.DeepEqual(plain[3].header, want) || plain[3].body != "" {
		t.Errorf("the DELETE over plain HTTP is %+v", plain[3])
	}
	for _, http2 := range []bool{false, true} {
		got, protocol := send(true, http2)
		if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]; protocol != want {
			t.Errorf("spoke %s, want %s", protocol, want)
		}
		if !reflect.DeepEqual(got, plain) {
			t.Errorf("over %s it gets\n%+v\nand over plain HTTP\n%+v", protocol, got, plain)
		}
	}
}

// The bounds and verdicts of a plain connection hold over TLS.
func TestSharedTripFails(t *testing.T) {
	certificate := newAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		if strings.Contains(string(sent), "tools/list") {
			w.Header().Set("X-Large", strings.Repeat("a", 80<<10))
			io.WriteString(w, response(idPattern.FindStringSubmatch(string(sent))[1], "{}"))
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate.server}}
	server.StartTLS()
	defer server.Close()
	e := endpoint(t, EndpointOptions{URL: server.URL, TLS: TLSOptions{CAFile: certificate.file}})
	defer e.CloseIdle()
	for _, r := range []Request{{Method: "initialize"}, work(), {Method: "tools/list"}} {
		_, failure := do(t, e, r)
		wantKind(t, failure, Transport)
		if !failure.Wrote {
			t.Errorf("%s was read by the server and counts as never sent", r.Method)
		}
	}
	_, err := e.Delete(t.Context(), nil, nil)
	if failure := (*Error)(nil); !errors.As(err, &failure) || failure.Kind != Transport {
		t.Errorf("DELETE: got %v, want a transport error", err)
	}
}

// A cancellation names the request by the id that it had.
func TestCancelledRequestIsNamed(t *testing.T) {
	got := make(chan string, 1)
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { got <- r.id; untilClosed(w); return false })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan *Error)
	go func() { // ends with the cancellation
		_, failure := doIn(t, ctx, endpoint(t, EndpointOptions{URL: s.url}), work())
		done <- failure
	}()
	id := <-got
	cancel()
	failure := <-done
	wantKind(t, failure, Cancelled)
	if failure.ID != id || id == "" {
		t.Errorf("the error names %q, the request was %q", failure.ID, id)
	}
}
