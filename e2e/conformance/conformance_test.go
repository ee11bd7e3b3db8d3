package conformance

import (
	"testing"

	"gatehouse/e2e/rig"
)

var revisions = []string{"2025-11-25", "2026-07-28"}

// caller is the one whose token the suite's requests carry.
var caller = []rig.Caller{{Name: "suite", Admin: true, Zone: "local", Extra: "max_concurrent_calls = 0"}}

// Straight at the gateway: the protocol as it serves it itself.
func TestStraight(t *testing.T) {
	g := rig.New(t, rig.Settings{Callers: caller, Servers: []rig.Upstream{{ID: "orders", URL: rig.Orders(t).URL, Free: true}}})
	g.Serve(t)
	g.Open(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			judge(t, "straight", revision, run(t, g.URL, g.Token(t, "suite"), revision))
		})
	}
}

// Through the gateway: the tools of an upstream that passes the whole suite on
// its own, in the same era on both sides and in different ones.
func TestThrough(t *testing.T) {
	for _, era := range revisions {
		t.Run("upstream "+era, func(t *testing.T) {
			upstream := rig.Conformance(t, era == "2026-07-28")
			g := rig.New(t, rig.Settings{Callers: caller, Servers: []rig.Upstream{
				// Some of its tools wait for an answer that no gateway gives.
				{ID: "conf", URL: upstream, Free: true, Extra: `timeout = "3s"`},
			}})
			g.Serve(t)
			g.Open(t)
			for _, revision := range revisions {
				t.Run(revision, func(t *testing.T) {
					judge(t, "through-"+era[:4], revision, run(t, shim(t, g.URL, g.Token(t, "suite")), "", revision))
				})
			}
		})
	}
}

// The upstream of TestThrough passes on its own, so that what fails through the
// gateway is the gateway's.
func TestUpstreamAlone(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			judge(t, "alone", revision, run(t, rig.Conformance(t, revision == "2026-07-28"), "", revision))
		})
	}
}
