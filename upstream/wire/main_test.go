package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestMain fails the package when a goroutine outlives its tests.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	// The fuzzing engine has goroutines of its own.
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	if code == 0 && !fuzzing && !settles(before) {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "goroutines outlive the tests: %d, %d before\n%s", runtime.NumGoroutine(), before,
			stacks[:runtime.Stack(stacks, true)])
		code = 1
	}
	os.Exit(code)
}

// settles waits for the number of goroutines to come down to want.
func settles(want int) bool {
	for range 200 {
		if runtime.NumGoroutine() <= want {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// quiet keeps the complaints of test servers out of the output.
var quiet = log.New(io.Discard, "", 0)

// A sent is one request as a server received it.
type sent struct {
	method, path, host string
	header             http.Header
	body               string
	id                 string // its JSON-RPC id
}

var idPattern = regexp.MustCompile(`"id":"([^"]*)"`)

// A bytesServer answers every request with bytes of the test's choosing.
type bytesServer struct {
	url   string
	mu    sync.Mutex
	got   []sent
	conns int
}

func (s *bytesServer) requests() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]sent(nil), s.got...)
}

// serveBytes starts a server. answer writes the response to the n-th request,
// from 0; the connection is kept open when it returns true.
func serveBytes(t testing.TB, answer func(w net.Conn, n int, r sent) bool) *bytesServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &bytesServer{url: "http://" + l.Addr().String() + "/mcp"}
	var wait sync.WaitGroup
	var open sync.Map
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		wait.Wait()
	})
	wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(conn, true)
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			wait.Go(func() {
				defer conn.Close()
				s.serve(conn, answer)
			})
		}
	})
	return s
}

func (s *bytesServer) serve(conn net.Conn, answer func(w net.Conn, n int, r sent) bool) {
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r := sent{method: req.Method, path: req.URL.Path, host: req.Host, header: req.Header, body: string(body)}
		if m := idPattern.FindStringSubmatch(r.body); m != nil {
			r.id = m[1]
		}
		s.mu.Lock()
		n := len(s.got)
		s.got = append(s.got, r)
		s.mu.Unlock()
		if !answer(conn, n, r) {
			return
		}
	}
}

// respond writes a whole response with a declared length.
func respond(w io.Writer, status, header, body string) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %s\r\n", status)
	for _, h := range strings.Split(header, "\n") {
		if h != "" {
			b.WriteString(h + "\r\n")
		}
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	w.Write(b.Bytes())
}

// openChunks begins a chunked response.
func openChunks(w io.Writer, status, contentType string) {
	fmt.Fprintf(w, "HTTP/1.1 %s\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", status, contentType)
}

// chunk writes one chunk and reports whether the other side still listens.
func chunk(w io.Writer, data string) bool {
	_, err := fmt.Fprintf(w, "%x\r\n%s\r\n", len(data), data)
	return err == nil
}

// untilClosed waits for the client to hang up, at most for a few seconds.
func untilClosed(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func loopbackNetwork(t testing.TB) *Network {
	t.Helper()
	n, err := NewNetwork(NetworkOptions{PrivateHosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func endpoint(t testing.TB, o EndpointOptions) *Endpoint {
	t.Helper()
	if o.Network == nil {
		o.Network = loopbackNetwork(t)
	}
	e, err := NewEndpoint(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.CloseIdle)
	return e
}

// once plays one response to one request.
func once(t testing.TB, r Request, o EndpointOptions, answer func(w net.Conn, r sent) bool) (*Reply, *Error) {
	t.Helper()
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { return answer(w, r) })
	o.URL = s.url
	return do(t, endpoint(t, o), r)
}

// do makes one round trip that may take five seconds.
func do(t testing.TB, e *Endpoint, r Request) (*Reply, *Error) {
	t.Helper()
	return doFor(t, 5*time.Second, e, r)
}

// doFor makes one round trip with a budget of its own.
func doFor(t testing.TB, budget time.Duration, e *Endpoint, r Request) (*Reply, *Error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), budget)
	defer cancel()
	return doIn(t, ctx, e, r)
}

func doIn(t testing.TB, ctx context.Context, e *Endpoint, r Request) (*Reply, *Error) {
	t.Helper()
	reply, err := e.Do(ctx, r)
	if err == nil {
		return reply, nil
	}
	failure, ok := err.(*Error)
	if !ok {
		t.Fatalf("Do returned a %T, want an *Error: %v", err, err)
	}
	if reply != nil {
		t.Errorf("Do returned a reply beside the error %v", err)
	}
	return nil, failure
}

// wantKind fails the test unless failure is of the wanted kind.
func wantKind(t testing.TB, failure *Error, want Kind) {
	t.Helper()
	if failure == nil {
		t.Fatalf("accepted, want %s", want)
	}
	if failure.Kind != want {
		t.Fatalf("refused as %s (%v), want %s", failure.Kind, failure, want)
	}
}

// result wraps members of a result in a response.
func response(id, result string) string {
	return `{"jsonrpc":"2.0","id":"` + id + `","result":` + result + `}`
}
