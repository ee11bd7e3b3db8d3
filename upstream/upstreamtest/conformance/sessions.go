package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest"
)

// keep asks for sessions per caller.
func keep(p upstreamtest.Profile) func(*Options) {
	return func(o *Options) { pinned(p)(o); o.Keep = true }
}

// sessionChecks look at sessions that are kept between calls. Where the era
// has no sessions, nothing may change.
var sessionChecks = []check{
	{"without being asked nothing is kept", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), pinned(p))
		b.call(Call{Tool: "navigate", Arguments: `{"to":"Oslo"}`, Caller: "ada", Holder: "h"})
		if got := string(b.call(Call{Tool: "where", Arguments: `{}`, Caller: "ada", Holder: "h"})); strings.Contains(got, "Oslo") {
			t.Errorf("the second call found the session of the first: %s", got)
		}
	}},
	{"a kept session is one session", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), keep(p))
		for range 3 {
			b.call(Call{Tool: "echo", Arguments: `{}`, Caller: "ada", Holder: "h"})
		}
		want := 0
		if !p.Modern {
			want = 1
		}
		if got := b.server.Count("initialize"); got != want {
			t.Errorf("%d handshakes, want %d", got, want)
		}
		if n := b.server.Count(http.MethodDelete); n != 0 {
			t.Errorf("%d DELETEs while the session is kept", n)
		}
		b.close()
		if n := b.server.Sessions(); n != 0 {
			t.Errorf("%d sessions are left after the client closed", n)
		}
	}},
	{"nobody is given anybody else's session", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if !p.Sessions {
			t.Skip("there are no sessions")
		}
		b := open(t, impl, upstreamtest.New(p), keep(p))
		holders := []Call{{Caller: "ada", Holder: "h1"}, {Caller: "ada", Holder: "h2"}, {Caller: "bob", Holder: "h1"}, {Caller: "bob"}}
		var wg sync.WaitGroup
		for i, c := range holders {
			wg.Go(func() {
				place := fmt.Sprintf("place-%d", i)
				c.Tool, c.Arguments = "navigate", `{"to":"`+place+`"}`
				if _, _, err := b.client.Call(b.ctx(), c); err != nil {
					t.Error(err)
				}
				for range 5 {
					c.Tool, c.Arguments = "where", `{}`
					result, _, err := b.client.Call(b.ctx(), c)
					if err != nil || !strings.Contains(string(result), place) {
						t.Errorf("caller %s, holder %q: went to %s and found %s, error %v", c.Caller, c.Holder, place, result, err)
					}
				}
			})
		}
		wg.Wait()
		if got := b.server.Issued(); got != len(holders) {
			t.Errorf("%d sessions for %d holders", got, len(holders))
		}
	}},
	{"a kept session ends with its holder", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if !p.Sessions {
			t.Skip("there are no sessions")
		}
		b := open(t, impl, upstreamtest.New(p), keep(p))
		for _, holder := range []string{"h1", "h2", ""} {
			b.call(Call{Tool: "echo", Arguments: `{}`, Caller: "ada", Holder: holder})
		}
		b.client.EndHolder("h1")
		b.client.EndHolder("")
		b.eventually(func() bool { return b.server.Sessions() == 2 })
		b.call(Call{Tool: "echo", Arguments: `{}`, Caller: "ada", Holder: "h2"})
		if got := b.server.Issued(); got != 3 {
			t.Errorf("%d sessions were opened, want 3", got)
		}
	}},
	{"a session that the server lost", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if !p.Sessions {
			t.Skip("there are no sessions")
		}
		b := open(t, impl, upstreamtest.New(p), keep(p))
		c := Call{Tool: "echo", Arguments: `{}`, Caller: "ada", Holder: "h"}
		b.call(c)
		b.server.EndSessions()
		sent := b.server.Count("tools/call")
		_, verdict, err := b.client.Call(b.ctx(), c)
		if err == nil || verdict != "upstream_error" {
			t.Errorf("verdict %s, error %v", verdict, err)
		}
		if got := b.server.Count("tools/call") - sent; got != 1 {
			t.Errorf("tools/call was sent %d times", got)
		}
		b.call(c)
		if got := b.server.Issued(); got != 2 {
			t.Errorf("%d sessions were opened, want 2", got)
		}
	}},
	{"tests and listings have sessions of their own", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if !p.Sessions {
			t.Skip("there are no sessions")
		}
		b := open(t, impl, upstreamtest.New(p), keep(p))
		b.call(Call{Tool: "echo", Arguments: `{}`, Caller: "ada"})
		kept, _ := b.server.Last("tools/call")
		if _, err := b.client.List(b.ctx()); err != nil {
			t.Fatal(err)
		}
		list, _ := b.server.Last("tools/list")
		if kept.Header.Get("Mcp-Session-Id") == list.Header.Get("Mcp-Session-Id") {
			t.Error("the listing used the caller's session")
		}
	}},
}

// eventually waits for what happens after a call has returned.
func (b *bench) eventually(done func() bool) {
	b.Helper()
	for deadline := time.Now().Add(budget); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if done() {
			return
		}
	}
	b.Error("waited in vain")
}
