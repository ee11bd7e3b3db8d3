package conformance

import (
	"strings"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest"
)

// budgetChecks move a clock while the server answers, so that a budget of
// seconds is spent in no time.
var budgetChecks = []check{
	{"all legs share one budget", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		// Each request takes 6 of the 20 seconds, so the fifth has nothing left.
		b := slow(t, impl, p, 6*time.Second, listed(func(_ string, n int) string {
			return pageOf(one, `"c`+strings.Repeat("c", n)+`"`)
		}))
		tools, err := b.client.List(b.ctx())
		if err == nil || tools != nil {
			t.Fatal("a list that takes longer than the budget was accepted")
		}
		b.close()
		want, next := 4, "page 5"
		if !p.Modern {
			next = "page 3"
		}
		if got := b.requests(); got != want {
			t.Errorf("%d requests were made, want %d: %q", got, want, b.server.Methods())
		}
		for _, part := range []string{serverName, "20s", next, "not sent", "page 1 6.0s"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
		if b.contacts.Load() != 0 {
			t.Error("counts as a contact")
		}
	}},
	{"a spent budget sends no call", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if p.Modern {
			t.Skip("a call of this era has no earlier leg")
		}
		b := slow(t, impl, p, 10*time.Second, nil)
		_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "not_sent" || b.server.Count("tools/call") != 0 {
			t.Fatalf("verdict %s, error %v, sent %q", verdict, err, b.server.Methods())
		}
		for _, part := range []string{serverName, "our limit of 20s", "initialize 10.0s", "initialized 10.0s", "tools/call was not sent"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
	}},
	{"a leg gets what is left and no more", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := late(t, impl, p, func(x *upstreamtest.Exchange) { <-x.Gone() })
		b.expectCut("an answer that never comes")
	}},
	{"what trickles for ever is cut", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, kind := range []string{"keep-alive", "progress-for-ever", "trickling-body", "silent", "asks-back"} {
			b := late(t, impl, p, upstreamtest.Misdeed(kind, "tools/call"))
			err := b.expectCut(kind)
			if kind == "asks-back" && !strings.Contains(err, "ping") {
				t.Errorf("the error does not name what the server waits for: %s", err)
			}
		}
	}},
}

// late plays a server that has used its budget up to half a second when the
// call arrives, which it answers with script.
func late(t *testing.T, impl Implementation, p upstreamtest.Profile, script upstreamtest.Script) *bench {
	t.Helper()
	s := upstreamtest.New(p)
	clock := NewClock()
	before := "notifications/initialized"
	if p.Modern {
		before = "server/discover"
	}
	s.OnRequest = func(r *upstreamtest.Request) {
		if r.Method == before {
			clock.Advance(20*time.Second - 500*time.Millisecond)
		}
	}
	s.On("tools/call", script)
	return open(t, impl, s, func(o *Options) { o.Timeout, o.Now = 20*time.Second, clock.Now })
}

// expectCut makes a call that only the end of the budget can end, and gives
// the text of its error.
func (b *bench) expectCut(what string) string {
	b.Helper()
	start := time.Now()
	_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`, Progress: func([]byte) {}})
	if took := time.Since(start); took > budget {
		b.Errorf("%s: the call took %s", what, took)
	}
	if err == nil {
		b.Fatalf("%s: the call succeeded", what)
	}
	if verdict != "outcome_unknown" || !strings.Contains(err.Error(), "20s") || b.server.Count("tools/call") != 1 {
		b.Errorf("%s: verdict %s, error %v, sent %d times", what, verdict, err, b.server.Count("tools/call"))
	}
	return err.Error()
}

// slow plays a server each of whose answers takes some time on the clock.
func slow(t *testing.T, impl Implementation, p upstreamtest.Profile, each time.Duration, list upstreamtest.Script) *bench {
	t.Helper()
	s := upstreamtest.New(p)
	clock := NewClock()
	s.OnRequest = func(*upstreamtest.Request) { clock.Advance(each) }
	if list != nil {
		s.On("tools/list", list)
	}
	return open(t, impl, s, func(o *Options) { pinned(p)(o); o.Timeout, o.Now = 20*time.Second, clock.Now })
}

// requests counts everything but the DELETE.
func (b *bench) requests() (n int) {
	for _, name := range b.server.Methods() {
		if name != "DELETE" {
			n++
		}
	}
	return n
}
