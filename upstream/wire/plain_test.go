package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What a server says beside, before or after its answer is never the answer to
// another message: the next one travels on a connection of its own.
func TestPlain_NothingIsTakenForAnotherAnswer(t *testing.T) {
	whole := func(id string) string {
		body := response(id, `{"whose":"`+id+`"}`)
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	chunked := func(id, head, trailer string) string {
		body := response(id, `{"whose":"`+id+`"}`)
		return fmt.Sprintf("HTTP/1.1 200 OK\r\n%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", head, len(body), body, trailer)
	}
	next := func(id string) string { // the id that comes after id
		var n uint64
		fmt.Sscanf(id[strings.IndexByte(id, '-')+1:], "%d", &n)
		return fmt.Sprintf("%s-%d", namespace, n+1)
	}
	tests := map[string]struct {
		answer func(id string) string
		warm   bool // the connection is used again
		fails  bool // the first message has no accepted answer
	}{
		"an answer":                      {answer: whole, warm: true},
		"an answer and a line break":     {answer: func(id string) string { return whole(id) + "\r\n" }},
		"the answer twice":               {answer: func(id string) string { return whole(id) + whole(id) }},
		"the next answer with it":        {answer: func(id string) string { return whole(id) + whole(next(id)) }},
		"a 202 behind it":                {answer: func(id string) string { return whole(id) + "HTTP/1.1 202 Accepted\r\n\r\n" }},
		"chunks":                         {answer: func(id string) string { return chunked(id, "", "") }, warm: true},
		"chunks with trailers":           {answer: func(id string) string { return chunked(id, "", "X-Sum: 1\r\nContent-Length: 9\r\n") }, warm: true},
		"chunks and then more":           {answer: func(id string) string { return chunked(id, "", "") + whole(next(id)) }},
		"a length beside chunks":         {answer: func(id string) string { return chunked(id, "Content-Length: 5\r\n", "") }, warm: true},
		"a length beside chunks, larger": {answer: func(id string) string { return chunked(id, "Content-Length: 5000\r\n", "") + whole(next(id)) }},
		"two lengths": {answer: func(id string) string {
			return strings.Replace(whole(id), "\r\n\r\n", "\r\nContent-Length: 3\r\n\r\n", 1)
		}, fails: true},
		"Connection: close": {answer: func(id string) string { return strings.Replace(whole(id), "\r\n", "\r\nConnection: close\r\n", 1) }},
		"HTTP/1.0":          {answer: func(id string) string { return strings.Replace(whole(id), "1.1", "1.0", 1) }},
		"HTTP/1.0 that stays": {answer: func(id string) string {
			return strings.Replace(whole(id), "1.1 200 OK\r\n", "1.0 200 OK\r\nConnection: keep-alive\r\n", 1)
		}, warm: true},
		"100 and 103 first":    {answer: func(id string) string { return "HTTP/1.1 100 \r\n\r\nHTTP/1.1 103 \r\nLink: x\r\n\r\n" + whole(id) }, warm: true},
		"five interim":         {answer: func(id string) string { return strings.Repeat("HTTP/1.1 102 \r\n\r\n", 5) + whole(id) }, warm: true},
		"six interim":          {answer: func(id string) string { return strings.Repeat("HTTP/1.1 102 \r\n\r\n", 6) + whole(id) }, fails: true},
		"101 and no more":      {answer: func(string) string { return "HTTP/1.1 101 \r\nUpgrade: x\r\n\r\n" }, fails: true},
		"101":                  {answer: func(id string) string { return "HTTP/1.1 101 \r\nUpgrade: x\r\n\r\n" + whole(id) }, fails: true},
		"a status under 100":   {answer: func(id string) string { return "HTTP/1.1 099 \r\nContent-Length: 0\r\n\r\n" + whole(id) }, fails: true},
		"204 with a body":      {answer: func(id string) string { return "HTTP/1.1 204 \r\nContent-Length: 500\r\n\r\n" + whole(id) }, fails: true},
		"304 with a body":      {answer: func(id string) string { return "HTTP/1.1 304 \r\nContent-Length: 500\r\n\r\n" + whole(id) }, fails: true},
		"an answer in a 4xx":   {answer: func(id string) string { return strings.Replace(whole(id), "200", "404", 1) + whole(id) }, fails: true},
		"a redirect":           {answer: func(id string) string { return strings.Replace(whole(id), "200 OK", "307 x\r\nLocation: /", 1) }, fails: true},
		"a body of another id": {answer: func(id string) string { return whole(next(id)) }, warm: true, fails: true},
		"a length cut short":   {answer: func(id string) string { return strings.Replace(whole(id), "Length: ", "Length: 0", 1) }, warm: true},
		"not HTTP":             {answer: func(id string) string { return "SSH-2.0-x\r\n" + whole(id) }, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := serveBytes(t, func(w net.Conn, n int, r sent) bool {
				if n > 0 {
					io.WriteString(w, whole(r.id))
				} else {
					io.WriteString(w, test.answer(r.id))
				}
				return true
			})
			e := endpoint(t, EndpointOptions{URL: s.url})
			reply, failure := do(t, e, work())
			if (failure != nil) != test.fails || failure != nil && !failure.Wrote {
				t.Fatalf("the first: %v, %v", reply, failure)
			}
			reply, failure = do(t, e, work())
			if failure != nil {
				t.Fatalf("the second: %v", failure)
			}
			got := s.requests()
			if want := `{"whose":"` + got[1].id + `"}`; len(got) != 2 || string(reply.Result) != want {
				t.Errorf("got %s of %d requests, want %s", reply.Result, len(got), want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if warm := s.conns == 1; warm != test.warm {
				t.Errorf("%d connections, used again: want %t", s.conns, test.warm)
			}
		})
	}
}

// A connection on which something happened while it was idle is not used, and
// the message goes, once, on a fresh one.
func TestPlain_IdleConnectionsThatSpoke(t *testing.T) {
	for name, speak := range map[string]func(net.Conn){
		"closed":       func(c net.Conn) { c.Close() },
		"half closed":  func(c net.Conn) { c.(*net.TCPConn).CloseWrite() },
		"reset":        func(c net.Conn) { c.(*net.TCPConn).SetLinger(0); c.Close() },
		"a late 408":   func(c net.Conn) { respond(c, "408 Request Timeout", "", "") },
		"a late reply": func(c net.Conn) { respond(c, "200 OK", "", response("x", "{}")) },
		"one byte":     func(c net.Conn) { c.Write([]byte{'\n'}) },
	} {
		t.Run(name, func(t *testing.T) {
			conns := make(chan net.Conn, 9)
			s := serveBytes(t, func(w net.Conn, n int, r sent) bool {
				respond(w, "200 OK", "", response(r.id, "{}"))
				conns <- w
				return true
			})
			e := endpoint(t, EndpointOptions{URL: s.url})
			for i := range 3 {
				if _, failure := do(t, e, work()); failure != nil {
					t.Fatalf("message %d: %v", i, failure)
				}
				speak(<-conns)
				time.Sleep(10 * time.Millisecond) // over loopback it has arrived by then
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.got) != 3 || s.conns != 3 {
				t.Errorf("%d requests on %d connections, want each on one of its own", len(s.got), s.conns)
			}
		})
	}
}

// The header is bounded with all interim ones, to the byte.
func TestPlain_HeaderBound(t *testing.T) {
	const final = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	interim := func(size int) string {
		const empty = "HTTP/1.1 103 \r\nX: \r\n\r\n"
		return "HTTP/1.1 103 \r\nX: " + strings.Repeat("a", size-len(empty)) + "\r\n\r\n"
	}
	for _, over := range []int{0, 1, 5 << 10} {
		_, failure := once(t, work(), EndpointOptions{}, func(w net.Conn, r sent) bool {
			size := maxHeader - len(final) + over
			io.WriteString(w, interim(size/2)+interim(size-size/2)+final+"{}")
			return false
		})
		if over == 0 {
			wantKind(t, failure, Malformed) // "{}" was read and judged
			continue
		}
		wantKind(t, failure, Transport)
		if !errors.Is(failure, errHeaderTooLarge) || !failure.Wrote {
			t.Errorf("%d bytes over: %v", over, failure)
		}
	}
}

// Nothing that would begin another field or message leaves.
func TestPlain_InjectedFields(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	e := endpoint(t, EndpointOptions{URL: s.url})
	for _, break_ := range []string{"\r\n", "\n", "\r", "\x00", "\x7f"} {
		for _, header := range []http.Header{{"X-A": {"a" + break_ + "X-B: b"}}, {"X-A" + break_ + "X-B": {"b"}}, {"X-A: a" + break_ + "X-B": {"b"}}, {break_: {"b"}}} {
			r := work()
			r.Header = header
			_, failure := do(t, e, r)
			if failure == nil || failure.Wrote || len(s.requests()) != 0 {
				t.Errorf("%q: %v after %d requests", header, failure, len(s.requests()))
			}
		}
		for _, name := range []string{"X" + break_ + "Y", "X: y" + break_ + "Z"} {
			r := work()
			r.Credential = func(context.Context) (string, string, error) { return name, "v", nil }
			_, failure := do(t, e, r)
			if failure == nil || failure.Wrote || len(s.requests()) != 0 {
				t.Errorf("credential %q: %v after %d requests", name, failure, len(s.requests()))
			}
		}
	}
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Host", "Connection", "Trailer",
		"Upgrade", "Te", "User-Agent", "Accept", "Accept-Encoding", "Content-Type"} {
		r := work()
		r.Header = http.Header{name: {"1"}}
		_, failure := do(t, e, r)
		if failure == nil || failure.Wrote || len(s.requests()) != 0 {
			t.Errorf("%s: %v after %d requests; it is set by the connection itself", name, failure, len(s.requests()))
		}
	}
}

// A trip that has ended leaves its connection alone, and one that was cut does
// not give it back.
func TestPlain_CutBeforeAndAfterTheEnd(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	p := endpoint(t, EndpointOptions{URL: s.url}).plain
	begin := func() *plainTrip {
		trip := &plainTrip{pool: p}
		body := [][]byte{[]byte(`{"jsonrpc":"2.0","id":"1","method":"ping"}`)}
		res, err := trip.send(t.Context(), &outgoing{body: body, size: sizeOf(body)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		return trip
	}
	idle := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.idle)
	}
	trip := begin()
	trip.cut()
	trip.end()
	if n := idle(); n != 0 {
		t.Errorf("%d connections are kept after a cut, want none", n)
	}
	trip = begin()
	trip.end()
	trip.cut()
	if n := idle(); n != 1 {
		t.Fatalf("%d connections are kept, want the one that was used", n)
	}
	begin().end() // on a connection that a late cut must not have reached
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns != 2 {
		t.Errorf("%d connections were made, want 2", s.conns)
	}
}

// The port is that of the scheme where the url names none. Nothing is dialed.
func TestPlain_Port(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for url, want := range map[string]string{"http://127.0.0.1/mcp": "127.0.0.1:80", "http://127.0.0.1:8080/mcp": "127.0.0.1:8080"} {
		if _, err := endpoint(t, EndpointOptions{URL: url}).plain.dial(ctx); err == nil || !strings.Contains(err.Error(), " "+want+":") {
			t.Errorf("%s: %v, want a dial of %s", url, err, want)
		}
	}
}

// large is a work request that does not fit what is written at once.
func large(size int) Request {
	r := work()
	r.Params = [][]byte{[]byte(`{"name":"transfer","pad":"`), bytes.Repeat([]byte("p"), size), []byte(`"}`)}
	return r
}

// A large message arrives whole, and its connection is used again.
func TestPlain_LargeMessage(t *testing.T) {
	for _, size := range []int{atOnce - 100, atOnce, atOnce + 1, 1 << 20} {
		var arrived atomic.Int64
		s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
			arrived.Store(int64(strings.Count(r.body, "p")))
			respond(w, "200 OK", "", response(r.id, "{}"))
			return true
		})
		e := endpoint(t, EndpointOptions{URL: s.url})
		for range 3 {
			reply, failure := do(t, e, large(size))
			if failure != nil || arrived.Load() < int64(size) || reply.BytesOut < int64(size) {
				t.Fatalf("%d bytes: %v, %v, %d arrived", size, reply, failure, arrived.Load())
			}
		}
	}
}

// A server that answers a large message without reading it is heard, and the
// rest of the message is never taken for the beginning of another.
func TestPlain_LargeMessageRefusedEarly(t *testing.T) {
	for name, after := range map[string]func(net.Conn){
		"and closes":     func(c net.Conn) { c.Close() },
		"and reads on":   func(c net.Conn) { io.Copy(io.Discard, c) },
		"and stays away": func(c net.Conn) { time.Sleep(300 * time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var served sync.WaitGroup
			defer served.Wait()
			defer l.Close()
			served.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					served.Go(func() {
						defer c.Close()
						c.Read(make([]byte, 100))
						respond(c, "413 Content Too Large", "", "")
						after(c)
					})
				}
			})
			e := endpoint(t, EndpointOptions{URL: "http://" + l.Addr().String()})
			for range 3 {
				_, failure := do(t, e, large(8<<20))
				if name == "and closes" && failure != nil && failure.Kind == Transport && failure.Wrote {
					continue // its reset may overtake its answer
				}
				wantKind(t, failure, HTTPStatus)
				if failure.Status != 413 || !failure.Wrote {
					t.Errorf("%v, wrote %t", failure, failure.Wrote)
				}
			}
			e.plain.mu.Lock()
			defer e.plain.mu.Unlock()
			if n := len(e.plain.idle); n != 0 {
				t.Errorf("%d connections with half a message on them are kept", n)
			}
		})
	}
}

// A server that accepts and reads nothing is left at the deadline, whatever the size.
func TestPlain_NeverRead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := endpoint(t, EndpointOptions{URL: "http://" + l.Addr().String()})
	for _, size := range []int{100, 8 << 20} {
		began := time.Now()
		_, failure := doFor(t, 150*time.Millisecond, e, large(size))
		wantKind(t, failure, Deadline)
		if took := time.Since(began); took > 2*time.Second || !failure.Wrote {
			t.Errorf("%d bytes: took %s, wrote %t", size, took, failure.Wrote)
		}
	}
}

// A dial that hangs is left when the context ends, and nothing was sent.
func TestPlain_CancelledDial(t *testing.T) {
	e := endpoint(t, EndpointOptions{URL: "http://127.0.0.1:1/"})
	e.plain.dial = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	_, failure := doFor(t, 50*time.Millisecond, e, work())
	wantKind(t, failure, Deadline)
	if failure.Wrote {
		t.Error("nothing was sent, and the error says that it may have been")
	}
}

// A scriptConn is a connection whose writes end after a number of bytes, and
// which answers all the same.
type scriptConn struct {
	net.Conn
	takes  int
	answer *strings.Reader
	closed atomic.Bool
}

func (c *scriptConn) Write(b []byte) (int, error) {
	n := min(len(b), c.takes)
	c.takes -= n
	if n < len(b) {
		return n, errors.New("no more")
	}
	return n, nil
}
func (c *scriptConn) Read(b []byte) (int, error)  { return c.answer.Read(b) }
func (c *scriptConn) Close() error                { c.closed.Store(true); return nil }
func (c *scriptConn) SetDeadline(time.Time) error { return nil }

// Wrote is false only where the connection took nothing, and half a message on
// a connection ends it, whatever comes as an answer.
func TestPlain_HalfWritten(t *testing.T) {
	for _, size := range []int{10, atOnce + 10} {
		for _, takes := range []int{0, 1, 200, size} {
			conn := &scriptConn{takes: takes, answer: strings.NewReader("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")}
			e := endpoint(t, EndpointOptions{URL: "http://127.0.0.1:1/"})
			e.plain.dial = func(context.Context) (net.Conn, error) { return conn, nil }
			_, failure := do(t, e, large(size))
			if failure == nil || failure.Kind == Transport && failure.Wrote != (takes > 0) {
				t.Errorf("%d of %d bytes: %v, wrote %t", takes, size, failure, failure.Wrote)
			}
			if !conn.closed.Load() || len(e.plain.idle) != 0 {
				t.Errorf("%d of %d bytes: the connection is kept", takes, size)
			}
		}
	}
}

// still is a connection in a pool that nothing happens on.
func still(t *testing.T, p *plainPool) (*plainConn, net.Conn) {
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	p.dial = func(context.Context) (net.Conn, error) { return here, nil }
	c, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.silent = func() bool { return true }
	return c, there
}

func isClosed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return err == io.EOF
}

func TestPlain_PoolIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plainPool{}
		var conns []*plainConn
		var ends []net.Conn
		for range warmConnections + 3 {
			c, end := still(t, p)
			conns, ends = append(conns, c), append(ends, end)
		}
		for _, c := range conns {
			p.put(c)
		}
		closed := 0
		for _, end := range ends {
			if isClosed(end) {
				closed++
			}
		}
		if len(p.idle) != warmConnections || closed != 3 {
			t.Errorf("%d are idle and %d closed, want %d and 3", len(p.idle), closed, warmConnections)
		}
		p.closeIdle()
		for i, end := range ends {
			if !isClosed(end) {
				t.Fatalf("connection %d is open", i)
			}
		}
	})
}

// What is idle for idleTimeout is closed by then, and only that.
func TestPlain_IdleSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plainPool{}
		old, oldEnd := still(t, p)
		young, youngEnd := still(t, p)
		p.put(old)
		time.Sleep(idleTimeout / 2)
		p.put(young)
		time.Sleep(idleTimeout/2 + time.Second)
		synctest.Wait()
		if !isClosed(oldEnd) || isClosed(youngEnd) {
			t.Errorf("after the first's time: closed %t and %t, want only the first", isClosed(oldEnd), isClosed(youngEnd))
		}
		time.Sleep(idleTimeout / 2)
		synctest.Wait()
		if !isClosed(youngEnd) || p.sweep != nil {
			t.Error("after its time the second is open, or there is still a timer")
		}
	})
}

// closeIdle also closes what was in use, when it comes back, whatever was taken
// since; what is dialed later is kept.
func TestPlain_CloseIdleWithConnectionsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plainPool{}
		before, beforeEnd := still(t, p)
		p.closeIdle()
		later, laterEnd := still(t, p)
		p.put(before)
		p.put(later)
		if !isClosed(beforeEnd) || isClosed(laterEnd) || len(p.idle) != 1 {
			t.Errorf("closed %t and %t, want the one from before", isClosed(beforeEnd), isClosed(laterEnd))
		}
		p.closeIdle()
	})
}

// Many exchanges with a server that misbehaves at random, many of them cancelled:
// every answer that is accepted is that of its message, and no message arrives
// twice. An answer that is sent a second time, and comes just when the next message
// leaves, is refused by its id.
func TestPlain_Chaos(t *testing.T) {
	span := 3 * time.Second
	if testing.Short() {
		span = 300 * time.Millisecond
	}
	var mu sync.Mutex
	arrived := make(map[string]int)
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		mu.Lock()
		arrived[r.id]++
		mu.Unlock()
		good := response(r.id, `{"whose":"`+r.id+`"}`)
		switch rand.IntN(16) {
		case 0:
			return false
		case 1:
			w.(*net.TCPConn).SetLinger(0)
			return false
		case 2:
			respond(w, "200 OK", "", good)
			respond(w, "200 OK", "", good)
		case 3:
			respond(w, "200 OK", "", good)
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			respond(w, "200 OK", "", good)
		case 4:
			io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"+good)
			return false
		case 5:
			openChunks(w, "200 OK", "text/event-stream")
			chunk(w, "data: "+good+"\n\n")
			io.WriteString(w, "0\r\n\r\n")
		case 6:
			openChunks(w, "200 OK", "text/event-stream")
			chunk(w, "data: "+good+"\n\n")
			return false
		case 7:
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			respond(w, "200 OK", "", good)
		case 8:
			io.WriteString(w, strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", rand.IntN(9)))
			respond(w, "200 OK", "", good)
		case 9:
			respond(w, "204 No Content", "", good)
		case 10:
			respond(w, "200 OK", "Connection: close", good)
		default:
			respond(w, "200 OK", "", good)
		}
		return true
	})
	e := endpoint(t, EndpointOptions{URL: s.url})
	stop := time.Now().Add(span)
	var accepted atomic.Int64
	var all sync.WaitGroup
	for range 24 {
		all.Go(func() {
			for time.Now().Before(stop) {
				ctx, cancel := context.WithCancel(t.Context())
				if rand.IntN(3) == 0 {
					time.AfterFunc(time.Duration(rand.IntN(8000))*time.Microsecond, cancel)
				}
				r := work()
				if rand.IntN(6) == 0 {
					r = large(40 << 10)
				}
				reply, failure := doIn(t, ctx, e, r)
				cancel()
				mu.Lock()
				switch {
				case failure == nil:
					accepted.Add(1)
					id := strings.TrimSuffix(strings.TrimPrefix(string(reply.Result), `{"whose":"`), `"}`)
					if arrived[id] != 1 {
						t.Errorf("accepted %s, which arrived %d times", reply.Result, arrived[id])
					}
					delete(arrived, id) // nobody else may be given it
				case !failure.Wrote && arrived[failure.ID] > 0:
					t.Errorf("%v: it arrived, and the error says that it never left", failure)
				}
				mu.Unlock()
				if rand.IntN(50) == 0 {
					e.CloseIdle()
				}
			}
		})
	}
	all.Wait()
	for id, n := range arrived {
		if n > 1 {
			t.Errorf("%s arrived %d times", id, n)
		}
	}
	if accepted.Load() < 20 {
		t.Errorf("only %d were accepted", accepted.Load())
	}
}

// The peek takes nothing.
func TestPlain_SilenceTakesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	silent := silence(here)
	if first, second := silent(), silent(); !first || !second {
		t.Error("a connection on which nothing happened is not silent")
	}
	io.WriteString(there, "x")
	time.Sleep(10 * time.Millisecond)
	if first, second := silent(), silent(); first || second {
		t.Error("a connection on which something came is silent")
	}
	if b, err := bufio.NewReader(here).ReadByte(); b != 'x' || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	if pipe, _ := net.Pipe(); silence(pipe)() {
		t.Error("a connection that cannot be looked at passes for silent")
	}
}
