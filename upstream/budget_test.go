package upstream_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/upstream"
	"gatehouse/upstream/upstreamtest"
)

// TestNoOperationOutlivesItsBudget runs every hostile kind, one at a time. A
// busy machine adds to what an operation takes, but not every time; a leg with a
// budget of its own would.
func TestNoOperationOutlivesItsBudget(t *testing.T) {
	const budget, slack, tries = 50 * time.Millisecond, 100 * time.Millisecond, 6
	worst := time.Duration(0)
	for _, kind := range upstreamtest.HostileKinds() {
		for _, name := range []string{"list", "call"} {
			best := time.Duration(1 << 62)
			for range tries {
				if best = min(best, overrun(t, kind, name, budget)); best <= slack {
					break
				}
			}
			worst = max(worst, best)
			if best > slack {
				t.Errorf("%s: %s outlives its %s by %s", kind, name, budget, best)
			}
		}
	}
	t.Logf("the longest overrun of %s is %s", budget, worst)
}

// overrun is how much longer than its budget one operation takes.
func overrun(t *testing.T, kind, name string, budget time.Duration) time.Duration {
	t.Helper()
	site := httptest.NewServer(upstreamtest.HostileServer(kind))
	site.Config.ErrorLog = silent
	defer site.Close()
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: site.URL, Protocol: upstream.Legacy, Timeout: budget})
	start := time.Now()
	if name == "list" {
		_, _ = c.List(t.Context(), "demo") // how it ends is for others to test
	} else {
		_, _ = c.Call(t.Context(), gatetest.Permit(t, toolOf("demo", "echo"), nil, `{}`), upstream.CallOptions{})
	}
	took := time.Since(start) - budget
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("%s: %v", kind, err)
	}
	return took
}

// TestGivenUpBeforeAnything: in the 2026 era the call is the first leg of all.
func TestGivenUpBeforeAnything(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Call(ctx, gatetest.Permit(t, toolOf("demo", "echo"), nil, `{}`), upstream.CallOptions{})
	if failed := failure(t, err); failed.Verdict != gate.Cancelled || len(s.Requests()) != 0 {
		t.Errorf("verdict %s after %d requests: %v", failed.Verdict, len(s.Requests()), err)
	}
}
