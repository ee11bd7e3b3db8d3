package scenarios

import (
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/client"
)

func TestBytesSurvive(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := w.open(t, k, "alice", client.None)
		arguments := `{ "order":9007199254740993, "rate":1.10, "note":"<\u00e9>" }`
		if r := c.Call(t, "mcp_free_echo", arguments); r.Text() != arguments && r.Text() != strings.ReplaceAll(arguments, " ", "") {
			t.Errorf("echo of %s: %s", arguments, r)
		}
		if r := c.Call(t, "mcp_free_big_numbers", `{}`); !r.OnWire(`"structuredContent":{"order":9007199254740993,"serial":123456789012345678901234567890,"rate":1.10,"tiny":1E-7}`) {
			t.Errorf("big_numbers: %q", r.Wire)
		}
		if r := c.Call(t, "mcp_free_hologram", `{}`); !r.OnWire(`{"type":"hologram","frames":[9007199254740993],"lens":{"f":1.40}}`) {
			t.Errorf("hologram: %q", r.Wire)
		}
	})
}

func TestOutcomeOfACall(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := w.open(t, k, "alice", client.None)
		if r := c.Call(t, "mcp_free_echo", `{}`); !r.OK() || r.Outcome() != "ok" {
			t.Errorf("echo: %s", r)
		}
		if r := c.Call(t, "mcp_free_fail", `{}`); r.OK() || r.Outcome() != "tool_error" || !strings.Contains(r.Text(), "on fire") {
			t.Errorf("fail: %s", r)
		}
		ran := w.desk.Ran(t, "slow")
		last := w.Last(t)
		if r := c.Call(t, "mcp_free_slow", `{"steps":"three","pause_ms":1}`); r.OK() || r.Result == nil || !strings.Contains(r.Text(), "steps") {
			t.Errorf("arguments against the schema: %s", r)
		}
		wantDenied(t, w.Since(t, last, "denied"), "refused", "invalid_arguments")
		if again := w.desk.Ran(t, "slow"); again != ran {
			t.Errorf("slow ran %d times more", again-ran)
		}
	})
}

func TestProgressReachesTheCaller(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := w.open(t, k, "alice", client.None)
		r := c.Call(t, "mcp_free_slow", `{"steps":4,"pause_ms":50}`, client.WithProgress)
		if !r.OK() || len(r.Progress) != 4 {
			t.Fatalf("slow: %s; %d notifications", r, len(r.Progress))
		}
		for i, p := range r.Progress {
			if p.Progress != float64(i+1) || p.Total != 4 {
				t.Errorf("notification %d: %+v", i, p)
			}
		}
	})
}

// A caller that gives up cuts the upstream off at once, and cannot keep the call
// off the record.
func TestCallerGivesUp(t *testing.T) {
	eachKind(t, func(t *testing.T, k client.Kind) {
		w := newWorld(t, "")
		c := w.open(t, k, "alice", client.None)
		last := w.Last(t)
		if r := c.Call(t, "mcp_free_slow", `{"steps":300,"pause_ms":50}`, client.CancelAfter(time.Second)); r.OK() {
			t.Fatalf("slow: %s", r)
		}
		gone := time.Now()
		<-w.desk.Started("slow cut off")
		if took := time.Since(gone); took > 3*time.Second || w.desk.Ran(t, "slow") != 1 {
			t.Errorf("the upstream worked on for %s; slow ran %d times", took, w.desk.Ran(t, "slow"))
		}
		entries := w.Since(t, last, "outcome")
		intents, outcomes := only(entries, "intent"), only(entries, "outcome")
		if len(intents) != 1 || len(outcomes) != 1 || outcomes[0].Verdict != "outcome_unknown" {
			t.Errorf("the ledger says %+v; want one intent, settled as outcome_unknown", entries)
		}
	})
}

func TestCallersWhoMayNot(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		bob, carol := w.open(t, k, "bob", client.Accept), w.open(t, k, "carol", client.Accept)

		last := w.Last(t)
		forbidden := bob.Call(t, "mcp_free_echo", `{}`)
		wantDenied(t, w.Since(t, last, "denied"), "refused", "requires_admin")
		absent := bob.Call(t, "mcp_free_teleport", `{}`)
		if forbidden.OK() || withoutDigits(forbidden.Text(), "mcp_free_echo") != withoutDigits(absent.Text(), "mcp_free_teleport") {
			t.Errorf("bob can tell a forbidden tool from an absent one:\n%s\n%s", forbidden, absent)
		}

		last = w.Last(t)
		if r := carol.Call(t, "mcp_secret_echo", `{}`); r.OK() {
			t.Errorf("a server above carol's zone: %s", r)
		}
		wantDenied(t, w.Since(t, last, "denied"), "refused", "trust_zone")
		if ran := w.desk.Ran(t, "echo"); ran != 0 {
			t.Errorf("echo ran %d times", ran)
		}
	})
}

// withoutDigits takes the record number and the tool's own name out of a refusal.
func withoutDigits(text, tool string) string {
	text = strings.ReplaceAll(text, tool, "TOOL")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

func TestWrongTokenGetsNoFurther(t *testing.T) {
	w := newWorld(t, "")
	if e := client.TypeScriptRefused(t, client.Options{URL: w.URL, Token: "gh_wrong", Answer: client.None}); e.Code != 401 {
		t.Errorf("the TypeScript client was refused with %+v, want 401", e)
	}
	if err := client.GoRefused(t, client.Options{URL: w.URL, Token: "gh_wrong", Answer: client.None}); !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("the go-sdk client was refused with %v, want 401 Unauthorized", err)
	}
	if entries := only(w.Since(t, 0, "auth_failure"), "auth_failure"); len(entries) == 0 {
		t.Error("the failures are not on record")
	}
}
