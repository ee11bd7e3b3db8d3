package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// padded is a response of exactly size bytes.
func padded(id string, size int) string {
	empty := response(id, `{"content":[],"pad":""}`)
	return response(id, `{"content":[],"pad":"`+strings.Repeat("A", size-len(empty))+`"}`)
}

func TestC05_LimitIsExact(t *testing.T) {
	const limit = DefaultMaxResponse
	framings := map[string]func(w net.Conn, id string, size int){
		"declared length": func(w net.Conn, id string, size int) {
			respond(w, "200 OK", "Content-Type: application/json", padded(id, size))
		},
		"chunked": func(w net.Conn, id string, size int) {
			openChunks(w, "200 OK", "application/json")
			text := padded(id, size)
			_ = chunk(w, text[:100]) && chunk(w, text[100:]) && chunk(w, "")
		},
		"event stream": func(w net.Conn, id string, size int) {
			openChunks(w, "200 OK", "text/event-stream")
			text := "data: " + padded(id, size-len("data: \n\n")) + "\n\n"
			_ = chunk(w, text) && chunk(w, "")
		},
		"event stream, short lines": func(w net.Conn, id string, size int) {
			openChunks(w, "200 OK", "text/event-stream")
			end := "data: " + response(id, "{}") + "\n\n"
			text := strings.Repeat(": comment\n", size/10-20)
			text += ":" + strings.Repeat(" ", size-len(text)-len(end)-2) + "\n" + end
			_ = chunk(w, text) && chunk(w, "")
		},
	}
	for name, write := range framings {
		for _, size := range []int{70 << 10, limit, limit + 1, limit + 8<<10} {
			t.Run(fmt.Sprintf("%s of %d", name, size), func(t *testing.T) {
				closed := make(chan bool, 1)
				reply, failure := once(t, Request{Method: "tools/call"}, EndpointOptions{}, func(w net.Conn, r sent) bool {
					write(w, r.id, size)
					if size > limit+1 {
						closed <- untilClosed(w)
					}
					return size <= limit+1
				})
				if size <= limit {
					if failure != nil || reply.BytesIn != int64(size) {
						t.Fatalf("got %v, %v", reply, failure)
					}
					return
				}
				wantKind(t, failure, TooLarge)
				if want := "the reply is larger than the limit of 2097152 bytes, 2 MiB (max_response)"; failure.Error() != want {
					t.Errorf("got %q, want %q", failure, want)
				}
				// With one byte over, all of the body may have been seen.
				if size > limit+1 && !<-closed {
					t.Error("the connection was left open")
				}
			})
		}
	}
}

func TestC05_EndlessLine(t *testing.T) {
	hungUp := make(chan bool, 1)
	_, failure := once(t, Request{Method: "tools/call"}, EndpointOptions{}, func(w net.Conn, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		line, written := strings.Repeat("A", 32<<10), 0
		for written < 256<<20 && chunk(w, line) {
			written += len(line)
		}
		hungUp <- written < 256<<20
		return false
	})
	wantKind(t, failure, TooLarge)
	if !<-hungUp {
		t.Error("256 MiB were taken before the connection was closed")
	}
}

// A countingReader hands out zeros without end and counts them.
type countingReader struct{ n int64 }

func (c *countingReader) Read(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestC05_NeverReadsMoreThanOneByteOver(t *testing.T) {
	for _, limit := range []int64{0, 1, 100, 4 << 10, 70 << 10} {
		endless := &countingReader{}
		if _, err := readAll(&capReader{src: endless, limit: limit}, -1); !errors.Is(err, errTooLarge) || endless.n != limit+1 {
			t.Errorf("limit %d: read %d bytes, %v", limit, endless.n, err)
		}
		endless = &countingReader{}
		r := &eventReader{}
		r.reset(&capReader{src: endless, limit: limit})
		if _, err := r.next(); !errors.Is(err, errTooLarge) || endless.n != limit+1 {
			t.Errorf("limit %d: an event stream read %d bytes, %v", limit, endless.n, err)
		}
		exact := bytes.Repeat([]byte("x"), int(limit))
		if got, err := readAll(&capReader{src: bytes.NewReader(exact), limit: limit}, limit); err != nil || int64(len(got)) != limit {
			t.Errorf("limit %d: at the limit %d bytes, %v", limit, len(got), err)
		}
	}
}

// A length that a server only claims is not allocated.
func TestDeclaredLengthIsNotTrusted(t *testing.T) {
	data, err := readAll(strings.NewReader("x"), 16<<20)
	if err != nil || string(data) != "x" || cap(data) > firstRead+1 {
		t.Errorf("read %q, %v, in %d bytes", data, err, cap(data))
	}
}

func TestMaxResponseIsBounded(t *testing.T) {
	for limit, ok := range map[int64]bool{0: true, 1: true, 16 << 20: true, 16<<20 + 1: false, -1: false} {
		_, err := NewEndpoint(EndpointOptions{URL: "https://example.org", Network: loopbackNetwork(t), MaxResponse: limit})
		if (err == nil) != ok {
			t.Errorf("max_response %d: %v", limit, err)
		}
	}
	if _, err := NewEndpoint(EndpointOptions{URL: "https://example.org"}); err == nil {
		t.Error("an endpoint without a host gate")
	}
}

func TestC38_CompressedBodyIsNotExpanded(t *testing.T) {
	for _, encoding := range []string{"gzip", "br", "zstd", "gzip, gzip", "x-unknown"} {
		_, failure := once(t, Request{Method: "tools/call"}, EndpointOptions{}, func(w net.Conn, r sent) bool {
			if got := r.header.Values("Accept-Encoding"); len(got) != 1 || got[0] != "identity" {
				t.Errorf("asked for %q", got)
			}
			respond(w, "200 OK", "Content-Type: application/json\nContent-Encoding: "+encoding, strings.Repeat("x", 60<<10))
			return false
		})
		wantKind(t, failure, ContentType)
	}
}

func TestHeaderCap(t *testing.T) {
	for size, ok := range map[int]bool{32 << 10: true, 80 << 10: false} {
		_, failure := once(t, Request{Method: "initialize"}, EndpointOptions{}, func(w net.Conn, r sent) bool {
			respond(w, "200 OK", "X-Large: "+strings.Repeat("a", size), response(r.id, "{}"))
			return ok
		})
		if ok && failure != nil {
			t.Errorf("%d bytes of header: %v", size, failure)
		}
		if !ok {
			wantKind(t, failure, Transport)
		}
	}
}

// tricklers are servers that never come to an end.
var tricklers = map[string]http.HandlerFunc{
	"keep-alives": func(w http.ResponseWriter, r *http.Request) {
		trickle(w, r, "text/event-stream", ": k\n", 5*time.Millisecond)
	},
	"progress": func(w http.ResponseWriter, r *http.Request) {
		trickle(w, r, "text/event-stream",
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":1}}\n\n", 5*time.Millisecond)
	},
	"slow JSON": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		trickle(w, r, "application/json", "{", 20*time.Millisecond)
	},
	"silence": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"header only": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	},
	"slow error": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	},
}

func trickle(w http.ResponseWriter, r *http.Request, media, text string, pause time.Duration) {
	w.Header().Set("Content-Type", media)
	for r.Context().Err() == nil {
		io.WriteString(w, text)
		w.(http.Flusher).Flush()
		time.Sleep(pause)
	}
}

// draining reads the request first: a handler learns of a hang-up only then.
func draining(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h(w, r)
	}
}

func startServer(t *testing.T, h http.HandlerFunc, http2 bool) *Endpoint {
	t.Helper()
	server := httptest.NewUnstartedServer(draining(h))
	server.Config.ErrorLog = quiet
	options := EndpointOptions{}
	if http2 {
		a := newAuthority(t)
		server.EnableHTTP2, server.TLS, options.TLS.CAFile = true, &tls.Config{Certificates: []tls.Certificate{a.server}}, a.file
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	options.URL = server.URL
	return endpoint(t, options)
}

func TestC37_DeadlineCutsWhateverTrickles(t *testing.T) {
	for name, h := range tricklers {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s http2=%t", name, http2), func(t *testing.T) {
				t.Parallel()
				e := startServer(t, h, http2)
				const budget = 200 * time.Millisecond
				start := time.Now()
				_, failure := doFor(t, budget, e, Request{Method: "tools/call", Once: true, Token: "t", Progress: func([]byte) {}})
				took := time.Since(start)
				if name == "slow error" {
					// The status was an answer; only its body was not to be had.
					wantKind(t, failure, HTTPStatus)
				} else {
					wantKind(t, failure, Deadline)
				}
				if took > budget+2*time.Second || !failure.Wrote {
					t.Errorf("took %s of %s, wrote %t", took, budget, failure.Wrote)
				}
				e.CloseIdle()
			})
		}
	}
}

func TestCancelCutsAtOnce(t *testing.T) {
	for name, h := range tricklers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startServer(t, h, false)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(50*time.Millisecond, cancel)
			start := time.Now()
			_, failure := doIn(t, ctx, e, Request{Method: "tools/call", Once: true})
			if failure == nil || failure.Kind != Cancelled && failure.Kind != HTTPStatus || time.Since(start) > 3*time.Second {
				t.Errorf("got %v after %s", failure, time.Since(start))
			}
			if failure.Kind == Cancelled && !errors.Is(failure, context.Canceled) {
				t.Error("the error does not hold its cause")
			}
		})
	}
}

func TestC37_OpenStreamAfterTheReply(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		chunk(w, "data: "+response(r.id, `{"content":[]}`)+"\n\n")
		untilClosed(w)
		return false
	})
	start := time.Now()
	reply, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), Request{Method: "tools/call"})
	took := time.Since(start)
	if failure != nil || string(reply.Result) != `{"content":[]}` {
		t.Fatalf("got %v, %v", reply, failure)
	}
	if took < grace || took > grace+2*time.Second {
		t.Errorf("took %s, want the %s of grace and little more", took, grace)
	}
}

// A budget that ends during the grace leaves the reply as it is.
func TestReplyStandsWhenTheBudgetEndsInTheGrace(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		chunk(w, "data: "+response(r.id, "{}")+"\n\n")
		untilClosed(w)
		return false
	})
	reply, failure := doFor(t, grace/2, endpoint(t, EndpointOptions{URL: s.url}), Request{Method: "tools/list"})
	if failure != nil || string(reply.Result) != "{}" {
		t.Errorf("got %v, %v", reply, failure)
	}
}

// A second response is seen when it comes late in the grace.
func TestC06_SecondResponseLateInTheGrace(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		chunk(w, "data: "+response(r.id, "{}")+"\n\n")
		time.Sleep(grace / 2)
		chunk(w, "data: "+response(r.id, "{}")+"\n\n")
		untilClosed(w)
		return false
	})
	_, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), Request{Method: "tools/list"})
	wantKind(t, failure, Malformed)
}

func TestC08_NotificationIsNotWaitedFor(t *testing.T) {
	answers := map[string]func(w net.Conn){
		"endless stream":        func(w net.Conn) { openChunks(w, "202 Accepted", "text/event-stream"); chunk(w, ": k\n") },
		"body that never comes": func(w net.Conn) { fmt.Fprint(w, "HTTP/1.1 202 Accepted\r\nContent-Length: 8\r\n\r\n") },
		"endless text": func(w net.Conn) {
			openChunks(w, "200 OK", "text/plain")
			for chunk(w, strings.Repeat("x", 4<<10)) {
			}
		},
	}
	for name, answer := range answers {
		s := serveBytes(t, func(w net.Conn, _ int, _ sent) bool { answer(w); untilClosed(w); return false })
		start := time.Now()
		reply, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), Request{Method: "notifications/initialized", Notification: true})
		if failure != nil || reply.Result != nil || time.Since(start) > 2*time.Second {
			t.Errorf("%s: %v, %v after %s", name, reply, failure, time.Since(start))
		}
	}
}

// An event stream is not read at all: accepting it takes no grace.
func TestC08_EventStreamIsAcceptedAtOnce(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, _ sent) bool {
		openChunks(w, "202 Accepted", "Text/Event-Stream; charset=utf-8")
		chunk(w, ": k\n")
		untilClosed(w)
		return false
	})
	e := endpoint(t, EndpointOptions{URL: s.url})
	best := time.Hour
	for range 5 {
		start := time.Now()
		if _, failure := do(t, e, Request{Method: "notifications/initialized", Notification: true}); failure != nil {
			t.Fatal(failure)
		}
		best = min(best, time.Since(start))
	}
	if best >= grace {
		t.Errorf("it took %s at best", best)
	}
}

// Connections are used again whenever a body was read to its end, whatever came
// of the reply.
func TestConnectionsStayWarm(t *testing.T) {
	answers := []func(w net.Conn, id string){
		func(w net.Conn, id string) { respond(w, "200 OK", "", response(id, "{}")) },
		func(w net.Conn, id string) { respond(w, "202 Accepted", "Content-Type: text/plain", "Accepted") },
		func(w net.Conn, id string) {
			openChunks(w, "200 OK", "text/event-stream")
			chunk(w, "data: "+response(id, "{}")+"\n\n")
			io.WriteString(w, "0\r\n\r\n")
		},
		func(w net.Conn, id string) { respond(w, "202 Accepted", "", "") },
		func(w net.Conn, id string) { respond(w, "200 OK", "", "not JSON") },
		func(w net.Conn, id string) { respond(w, "400 Bad Request", "Content-Type: application/json", "{}") },
	}
	s := serveBytes(t, func(w net.Conn, n int, r sent) bool { answers[n%len(answers)](w, r.id); return true })
	e := endpoint(t, EndpointOptions{URL: s.url})
	for i := range 3 * len(answers) {
		do(t, e, Request{Method: "m", Notification: i%len(answers) == 1 || i%len(answers) == 3})
	}
	if s.conns != 1 {
		t.Errorf("%d connections for %d requests, want 1", s.conns, len(s.requests()))
	}
}

func TestCloseIdleClosesIdleConnections(t *testing.T) {
	closed := make(chan bool, 1)
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		respond(w, "200 OK", "", response(r.id, "{}"))
		closed <- untilClosed(w)
		return false
	})
	e := endpoint(t, EndpointOptions{URL: s.url})
	if _, failure := do(t, e, Request{Method: "initialize"}); failure != nil {
		t.Fatal(failure)
	}
	e.CloseIdle()
	if !<-closed {
		t.Error("the connection is still open")
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	return len(entries)
}

// Many calls that end badly leave nothing behind.
func TestC37_NothingIsLeftBehind(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", http2), func(t *testing.T) {
			goroutines, files := runtime.NumGoroutine(), descriptors(t)
			t.Run("calls", func(t *testing.T) {
				for _, h := range tricklers {
					e := startServer(t, h, http2)
					var wait sync.WaitGroup
					for range 80 {
						wait.Go(func() {
							_, failure := doFor(t, 100*time.Millisecond, e, Request{Method: "tools/call", Once: true})
							if failure == nil {
								t.Error("accepted")
							}
						})
					}
					wait.Wait()
					e.CloseIdle()
				}
			})
			if !settles(goroutines) {
				t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
			}
			if now := descriptors(t); now > files+2 {
				t.Errorf("%d open files, %d before", now, files)
			}
		})
	}
}
