package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/client"
)

var deskTools = []string{"big_numbers", "echo", "fail", "hologram", "ship", "slow"}

func prefixed(servers ...string) []string {
	var names []string
	for _, s := range servers {
		for _, tool := range deskTools {
			names = append(names, "mcp_"+s+"_"+tool)
		}
	}
	slices.Sort(names)
	return names
}

func TestListDependsOnTheCaller(t *testing.T) {
	w := newWorld(t, "")
	want := map[string][]string{
		"alice": prefixed("orders", "free", "secret"),
		"bob":   nil,
		"carol": prefixed("orders", "free"),
	}
	eachKind(t, func(t *testing.T, k client.Kind) {
		for caller, names := range want {
			tools := w.open(t, k, caller, client.None).List(t)
			if got := remote(tools); !slices.Equal(got, names) {
				t.Errorf("%s is offered %q, want %q", caller, got, names)
			}
			if !slices.Contains(client.Names(tools), "gatehouse_status") {
				t.Errorf("%s is not offered gatehouse_status", caller)
			}
		}
	})
}

// Until somebody enables a tool the catalogue is empty, and says so.
func TestNothingIsEnabledByImport(t *testing.T) {
	w := newWorld(t, "")
	w.Do(t, "tools", "disable", "mcp_*")
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := w.open(t, k, "alice", client.None)
		if got := remote(c.List(t)); len(got) != 0 {
			t.Errorf("offered after disabling everything: %q", got)
		}
		name, instructions := c.Info(t)
		if name == "" || !strings.Contains(instructions, "0 enabled") || !strings.Contains(instructions, "gatehouse tools enable") {
			t.Errorf("server %q, instructions %q; want to be told that 0 are enabled and how to enable", name, instructions)
		}
	})
}

func TestChangedDefinitionIsOffUntilAccepted(t *testing.T) {
	eachKind(t, func(t *testing.T, k client.Kind) {
		w := newWorld(t, "")
		c := w.open(t, k, "alice", client.Accept)
		list := func() []string { // with a client of its own: a client may keep a list for as long as ttlMs says
			return remote(w.open(t, k, "alice", client.Accept).List(t))
		}
		w.desk.Revise(t)
		if got := list(); !slices.Contains(got, "mcp_free_ship") {
			t.Fatalf("a change upstream reached the catalogue without an import: %q", got)
		}
		w.Do(t, "import", "--all")

		if got := list(); slices.Contains(got, "mcp_free_ship") || len(got) != 3*len(deskTools)-3 {
			t.Errorf("offered after the change: %q", got)
		}
		last := w.Last(t)
		if r := c.Call(t, "mcp_free_ship", `{"order":"7"}`); r.OK() {
			t.Errorf("the changed tool was called: %s", r)
		}
		wantDenied(t, w.Since(t, last, "denied"), "refused", "tool_disabled")
		if ran := w.desk.Ran(t, "ship"); ran != 0 {
			t.Errorf("ship ran %d times", ran)
		}
		if diff := w.Do(t, "tools", "diff", "mcp_free_ship"); !strings.Contains(diff, "bank") || !strings.Contains(diff, "description") {
			t.Errorf("tools diff does not show the change:\n%s", diff)
		}

		w.Do(t, "tools", "enable", "mcp_free_ship")
		if got := list(); !slices.Contains(got, "mcp_free_ship") {
			t.Errorf("not offered after the change was accepted: %q", got)
		}
		if r := c.Call(t, "mcp_free_ship", `{"order":"7"}`); !r.OK() {
			t.Errorf("ship: %s", r)
		}
		if len(only(w.Ledger(t), "accept_change")) == 0 {
			t.Error("accepting the change is not on record")
		}
	})
}

// atOnce is how long a list may take when upstreams are down: it never asks them.
const atOnce = time.Second

func TestStoppedUpstream(t *testing.T) {
	eachKind(t, func(t *testing.T, k client.Kind) {
		w := newWorld(t, "")
		c := w.open(t, k, "alice", client.None)
		want := remote(c.List(t))
		w.desk.Kill()

		start := time.Now()
		got := remote(c.List(t))
		if took := time.Since(start); took > atOnce || !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("with the server stopped, %d of %d tools are listed after %s", len(got), len(want), took)
		}
		last := w.Last(t)
		r := c.Call(t, "mcp_free_echo", `{}`)
		if r.OK() || !strings.Contains(r.Text(), `server "free"`) || r.Took > 25*time.Second {
			t.Errorf("the call does not say what happened: %s", r)
		}
		outcomes := only(w.Since(t, last, "outcome"), "outcome")
		if len(outcomes) != 1 || outcomes[0].Verdict != "not_sent" {
			t.Errorf("the ledger says %+v, want one outcome not_sent", outcomes)
		}
	})
}
