package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
)

// soon bounds what has to happen by itself.
const soon = 10 * time.Second

// A stream is one open page's. Its events are stamps, in lines.
type stream struct {
	t      *testing.T
	events chan string // closed when the stream is over
	end    func()      // what the browser does when the page is closed
}

// live opens a stream at base; status is what came instead of one.
func (v *visitor) live(base string) (s *stream, status int) {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/console/live", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Gatehouse-Live", "1")
	resp, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		cancel()
		return nil, resp.StatusCode
	}
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		v.t.Errorf("the stream is %q", kind)
	}
	s = &stream{t: v.t, events: make(chan string), end: cancel}
	go s.read(ctx, resp.Body) // ended by cancel, waited for with events
	v.t.Cleanup(func() {
		cancel()
		for range s.events {
		}
	})
	return s, resp.StatusCode
}

func (s *stream) read(ctx context.Context, body io.ReadCloser) {
	defer close(s.events)
	defer body.Close()
	var data []string
	for lines := bufio.NewScanner(body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		} else if lines.Text() == "" && data != nil {
			select {
			case s.events <- strings.Join(data, "\n"):
			case <-ctx.Done():
				return
			}
			data = nil
		}
	}
}

// next waits for an event that holds a text.
func (s *stream) next(want string) string {
	s.t.Helper()
	last := ""
	for limit := time.After(soon); ; {
		select {
		case event, more := <-s.events:
			if !more {
				s.t.Fatalf("the stream is over before it says %q", want)
			}
			if last = event; strings.Contains(event, want) {
				return event
			}
		case <-limit:
			s.t.Fatalf("nothing says %q; the last event is\n%s", want, last)
		}
	}
}

// over waits for the end.
func (s *stream) over() {
	s.t.Helper()
	for limit := time.After(soon); ; {
		select {
		case _, more := <-s.events:
			if !more {
				return
			}
		case <-limit:
			s.t.Fatal("the stream goes on")
		}
	}
}

func TestOpenPageHearsOfNews(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	s, _ := v.live(r.url)
	first := s.next("catalogue")
	if !strings.HasPrefix(first, "0\nquestions\n") {
		t.Errorf("it begins with\n%s", first)
	}
	snapshot := r.g.Catalog.Snapshot()
	ruling := r.g.Gate.Submit(t.Context(), snapshot, r.g.Caller("alice"), gate.Call{Tool: "mcp_demo_notes_add", Arguments: []byte(`{"title":"milk"}`)})
	if ruling.Question == nil {
		t.Fatalf("no question but %+v", ruling)
	}
	s.next("1\nquestions ")
	api := control.NewLocal(r.g, true)
	if err := api.Decide(t.Context(), ruling.Question.Number, false); err != nil {
		t.Fatal(err)
	}
	decided := s.next("0\nquestions\n")
	if _, err := api.Disable(t.Context(), []string{"mcp_demo"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if line := func(event string) string { return strings.Split(event, "\n")[2] }; line(s.next("catalogue")) != line(decided) {
			return
		}
	}
	t.Error("nothing says that the catalogue is another one")
}

func TestOpenPagesAreBounded(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	var open []*stream
	for i := range maxStreams {
		s, status := v.live(r.url)
		if s == nil {
			t.Fatalf("page %d: status %d", i, status)
		}
		open = append(open, s)
	}
	if s, status := v.live(r.url); s != nil || status != http.StatusServiceUnavailable {
		t.Fatalf("one more than the most: status %d", status)
	}
	if s, status := r.signedIn(olga).live(r.url); s == nil {
		t.Errorf("another session pays for it: status %d", status)
	}
	open[0].end()
	for limit := time.Now().Add(soon); ; time.Sleep(10 * time.Millisecond) {
		if s, _ := v.live(r.url); s != nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatal("a closed page still counts")
		}
	}
}

func TestStreamEndsWithItsSession(t *testing.T) {
	var late atomic.Int64
	for name, end := range map[string]func(*visitor, *stream){
		"signed out": func(v *visitor, _ *stream) { v.post("/console/signout", nil) },
		// The stream is no use of it, and notices though nothing happens.
		"idle": func(v *visitor, s *stream) {
			late.Store(int64(idleLimit) * 2 / 3)
			entry := &gate.Entry{Kind: gate.KindTest}
			if err := v.g.Ledger.Append(t.Context(), entry); err != nil {
				t.Fatal(err)
			}
			s.next(fmt.Sprintf("ledger %d", entry.Number))
			late.Store(int64(idleLimit) * 4 / 3)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			late.Store(0)
			r.console.sessions.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
			v := r.signedIn(olga)
			s, _ := v.live(r.url)
			s.next("catalogue")
			end(v, s)
			s.over()
			if s, status := v.live(r.url); s != nil || status != http.StatusUnauthorized {
				t.Errorf("after that: status %d", status)
			}
		})
	}
}

// The gateway does not wait for open pages when it stops.
func TestStreamEndsWhenTheGatewayLeaves(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- r.g.Serve(ctx, l) }() // ended by stop, waited for below
	s, status := r.signedIn(olga).live("http://" + l.Addr().String())
	if s == nil {
		t.Fatalf("status %d", status)
	}
	s.next("catalogue")
	stop()
	s.over()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Error("the gateway waits for an open page")
	}
}
