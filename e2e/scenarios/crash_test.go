package scenarios

import (
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/client"
)

// The daemon dies while the upstream works. Nobody here can know how the call
// ended, and the record must say so after the restart.
func TestKilledBetweenRequestAndAnswer(t *testing.T) {
	eachKind(t, func(t *testing.T, k client.Kind) {
		w := newWorld(t, "")
		c := k.Open(t, client.Options{URL: w.URL, Token: w.Token(t, "alice"), Answer: client.None, Timeout: 10 * time.Second})
		last := w.Last(t)
		daemon := w.Daemon()
		go func() { // ends once the tool runs
			<-w.desk.Started("slow")
			daemon.Kill()
		}()
		if r := c.Call(t, "mcp_free_slow", `{"steps":300,"pause_ms":50}`); r.OK() {
			t.Fatalf("the call survived kill -9: %s", r)
		}
		daemon.Kill()
		w.Serve(t)

		if out := w.Do(t, "audit", "verify"); strings.Contains(out, "unsettled: ") && !strings.Contains(out, "unsettled: 0") {
			t.Errorf("audit verify after the restart:\n%s", out)
		}
		entries := w.Since(t, last, "outcome")
		intents, outcomes := only(entries, "intent"), only(entries, "outcome")
		if len(intents) != 1 || len(outcomes) != 1 || outcomes[0].Intent != intents[0].Number || outcomes[0].Verdict != "outcome_unknown" {
			t.Errorf("the ledger says %+v; want one intent, settled as outcome_unknown", entries)
		}
		if ran := w.desk.Ran(t, "slow"); ran != 1 {
			t.Errorf("slow ran %d times", ran)
		}
		if r := k.Open(t, client.Options{URL: w.URL, Token: w.Token(t, "alice"), Answer: client.None}).Call(t, "mcp_free_echo", `{}`); !r.OK() {
			t.Errorf("a call after the restart: %s", r)
		}
	})
}
