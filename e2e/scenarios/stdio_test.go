package scenarios

import (
	"slices"
	"testing"

	"gatehouse/e2e/client"
)

// A client that speaks stdio meets the same catalogue and the same gate.
func TestStdio(t *testing.T) {
	w := newWorld(t, "")
	eachKind(t, func(t *testing.T, k client.Kind) {
		ask := func(answer client.Answer, caller string) client.Client {
			return k.Open(t, client.Options{Command: w.Command("stdio", "--caller", caller), Answer: answer})
		}
		alice := ask(client.Accept, "alice")
		if got := remote(alice.List(t)); !slices.Equal(got, prefixed("orders", "free", "secret")) {
			t.Errorf("alice is offered %q", got)
		}
		if r := alice.Call(t, "mcp_free_echo", `{"order":"7"}`); !r.OK() || r.Text() != `{"order":"7"}` {
			t.Errorf("echo: %s", r)
		}
		last := w.Last(t)
		if r := alice.Call(t, "mcp_orders_ship", order); !r.OK() || len(r.Questions) != 1 {
			t.Errorf("ship: %s; asked %d times", r, len(r.Questions))
		}
		if outcomes := only(w.Since(t, last, "outcome"), "outcome"); len(outcomes) != 1 || outcomes[0].Verdict != "ok" {
			t.Errorf("the ledger says %+v", outcomes)
		}
		ran := w.desk.Ran(t, "ship")
		if r := ask(client.Decline, "alice").Call(t, "mcp_orders_ship", order); r.OK() || len(r.Questions) != 1 {
			t.Errorf("ship, declined: %s; asked %d times", r, len(r.Questions))
		}
		if again := w.desk.Ran(t, "ship"); again != ran {
			t.Errorf("ship ran although it was declined")
		}
		if got := remote(ask(client.None, "bob").List(t)); len(got) != 0 {
			t.Errorf("bob is offered %q", got)
		}
	})
}
