package upstream_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream"
	"gatehouse/upstream/upstreamtest"
)

func kept(t *testing.T, change func(*upstream.Server)) (*upstreamtest.Server, *upstream.Client, upstream.Server) {
	t.Helper()
	s := upstreamtest.New(upstreamtest.Profile{Sessions: true})
	server := upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Legacy, Session: upstream.PerCaller}
	if change != nil {
		change(&server)
	}
	return s, newClient(t, &store{}, nil, server), server
}

func use(t *testing.T, c *upstream.Client, caller, holder string) {
	t.Helper()
	if _, err := call(t, c, "demo", "echo", caller, upstream.CallOptions{Holder: holder}); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what a goroutine of the client does after a call.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if done() {
			return
		}
	}
	t.Errorf("waited in vain: %s", what)
}

func TestKeptSessionEndsWhenIdle(t *testing.T) {
	s, c, _ := kept(t, func(s *upstream.Server) { s.SessionIdle = 50 * time.Millisecond })
	use(t, c, "ada", "h")
	eventually(t, "the idle session ends", func() bool { return s.Sessions() == 0 })
	if s.Count(http.MethodDelete) != 1 {
		t.Errorf("the session was not ended by a DELETE: %q", s.Methods())
	}
	use(t, c, "ada", "h")
	if s.Issued() != 2 {
		t.Errorf("%d sessions were opened, want 2", s.Issued())
	}
	eventually(t, "the second one ends too", func() bool { return s.Sessions() == 0 })
}

// A downstream session that ends takes what is kept for it at every server, and
// nothing of callers without one. Close takes the rest.
func TestKeptSessionsAtSeveralServers(t *testing.T) {
	var servers []upstream.Server
	var sites []*upstreamtest.Server
	ids := []gate.ServerID{"a", "b", "c"}
	for _, id := range ids {
		s := upstreamtest.New(upstreamtest.Profile{Sessions: true})
		sites = append(sites, s)
		servers = append(servers, upstream.Server{ID: id, URL: play(t, s), Protocol: upstream.Legacy, Session: upstream.PerCaller})
	}
	c := newClient(t, &store{}, nil, servers...)
	for _, id := range ids {
		for _, holder := range []string{"", "h"} {
			if _, err := call(t, c, id, "echo", "ada", upstream.CallOptions{Holder: holder}); err != nil {
				t.Fatal(err)
			}
		}
	}
	left := func(want int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(sites, func(s *upstreamtest.Server) bool { return s.Sessions() != want })
		}
	}
	c.EndHolder("h")
	eventually(t, "one session is left at each server", left(1))
	c.EndHolder("")
	for _, id := range ids {
		if _, err := call(t, c, id, "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range sites {
		if s.Issued() != 2 {
			t.Errorf("server %s: %d sessions were opened, want the two of before", ids[i], s.Issued())
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if !left(0)() {
		t.Error("sessions are left after Close")
	}
}

func TestKeptSessionInUseIsNotIdle(t *testing.T) {
	s, c, _ := kept(t, func(s *upstream.Server) { s.SessionIdle = 20 * time.Millisecond })
	s.On("tools/call", func(x *upstreamtest.Exchange) {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-x.Gone():
		}
		s.Answer(x)
	})
	use(t, c, "ada", "h") // fails if the session ends below it
	if s.Issued() != 1 {
		t.Errorf("%d sessions were opened", s.Issued())
	}
}

func TestKeptSessionsAreBounded(t *testing.T) {
	s, c, _ := kept(t, func(s *upstream.Server) { s.MaxSessions = 2 })
	use(t, c, "ada", "h1")
	use(t, c, "ada", "h2")
	use(t, c, "ada", "h1") // so h2 is idle for longest
	use(t, c, "ada", "h3")
	eventually(t, "the session idle for longest ends", func() bool { return s.Sessions() == 2 })
	before := s.Issued()
	use(t, c, "ada", "h1")
	if s.Issued() != before {
		t.Error("the wrong session was ended")
	}
}

func TestKeptSessionsAllInUse(t *testing.T) {
	s, c, _ := kept(t, func(s *upstream.Server) { s.MaxSessions = 1 })
	arrived, release := make(chan struct{}), make(chan struct{})
	s.On("tools/call", func(x *upstreamtest.Exchange) {
		close(arrived)
		<-release
		s.Answer(x)
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	_, err := call(t, c, "demo", "echo", "bob", upstream.CallOptions{})
	if failed := failure(t, err); failed.Verdict != gate.NotSent || failed.Reason != upstream.ReasonSessions {
		t.Errorf("%+v: %v", failed, err)
	}
	close(release)
	wg.Wait()
}

func TestKeptSessionIsOpenedOnce(t *testing.T) {
	s, c, _ := kept(t, nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.Issued() != 1 || s.Count("tools/call") != 20 {
		t.Errorf("%d sessions for %d calls", s.Issued(), s.Count("tools/call"))
	}
}

func TestKeptSessionWhoseOpeningFails(t *testing.T) {
	s, c, _ := kept(t, nil)
	s.On("initialize", func(x *upstreamtest.Exchange) { x.Raw(500, "text/plain", "no") })
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
			if failed := failure(t, err); failed.Verdict != gate.NotSent {
				t.Errorf("%+v: %v", failed, err)
			}
		})
	}
	wg.Wait()
	s.On("initialize", nil)
	use(t, c, "ada", "")
}

func TestKeptSessionsAndReload(t *testing.T) {
	s, c, server := kept(t, nil)
	use(t, c, "ada", "h")
	if err := c.Configure([]upstream.Server{server}); err != nil {
		t.Fatal(err)
	}
	use(t, c, "ada", "h")
	if s.Issued() != 1 {
		t.Errorf("a reload without a change cost %d sessions", s.Issued()-1)
	}
	server.Auth.Audience = "another"
	if err := c.Configure([]upstream.Server{server}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session ends with its server's settings", func() bool { return s.Sessions() == 0 })
	use(t, c, "ada", "h")
	if err := c.Configure(nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session ends with its server", func() bool { return s.Sessions() == 0 })
}

// TestReloadDuringACall changes the server below a call: the call finishes, its
// session ends afterwards.
func TestReloadDuringACall(t *testing.T) {
	s, c, _ := kept(t, nil)
	arrived, release := make(chan struct{}), make(chan struct{})
	s.On("tools/call", func(x *upstreamtest.Exchange) {
		close(arrived)
		<-release
		s.Answer(x)
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{}); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	if err := c.Configure(nil); err != nil {
		t.Fatal(err)
	}
	if s.Sessions() != 1 {
		t.Error("the session was ended below a call")
	}
	close(release)
	wg.Wait()
	eventually(t, "the session ends after its call", func() bool { return s.Sessions() == 0 })
}

func TestKeptSessionTheServerLost(t *testing.T) {
	s, c, _ := kept(t, nil)
	use(t, c, "ada", "h")
	s.EndSessions()
	_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{Holder: "h"})
	failed := failure(t, err)
	if failed.Verdict != gate.UpstreamError || failed.Reason != upstream.ReasonSessionGone || !strings.Contains(err.Error(), "opens a new one") {
		t.Errorf("%+v: %v", failed, err)
	}
	use(t, c, "ada", "h")
	if s.Count(http.MethodDelete) != 0 {
		t.Error("a session that the server has lost was ended by a DELETE")
	}
}

// TestCallersComeAndGo has many holders open sessions and leave.
func TestCallersComeAndGo(t *testing.T) {
	many := 10_000 / scale
	s, c, _ := kept(t, func(s *upstream.Server) { s.MaxSessions = 100 })
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < many; i += 4 {
				holder := fmt.Sprintf("h%d", i)
				if _, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{Holder: holder}); err != nil {
					t.Error(err)
				}
				if i%3 != 0 { // the others are left to the bound and to the end
					c.EndHolder(holder)
				}
				if i%500 < 4 {
					s.Forget()
				}
			}
		})
	}
	wg.Wait()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if s.Issued() != many || s.Sessions() != 0 {
		t.Errorf("%d sessions were opened, %d are left", s.Issued(), s.Sessions())
	}
}
