// Package scenarios drives the gatehouse binary with clients and servers that
// are not ours, through what an operator and a caller live through.
package scenarios

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// A world is one order desk behind one daemon, three times over: asking before
// every call, asking never, and holding data that few callers may see.
type world struct {
	*rig.Gatehouse
	desk     *rig.OrderDesk
	settings rig.Settings
}

// The callers of every world: alice may do everything, bob is no administrator,
// carol's model runs anywhere.
var callers = []rig.Caller{
	{Name: "alice", Admin: true, Zone: "local"},
	{Name: "bob", Zone: "local"},
	{Name: "carol", Admin: true},
}

func newWorld(t *testing.T, approvalTimeout string) *world {
	t.Helper()
	desk := rig.Orders(t)
	settings := rig.Settings{
		ApprovalTimeout: approvalTimeout,
		Callers:         callers,
		Servers: []rig.Upstream{
			{ID: "orders", URL: desk.URL},
			{ID: "free", URL: desk.URL, Free: true},
			{ID: "secret", URL: desk.URL, Free: true, Class: "secret_adjacent"},
		},
	}
	w := &world{rig.New(t, settings), desk, settings}
	w.Serve(t)
	w.Open(t)
	return w
}

func (w *world) open(t *testing.T, k client.Kind, caller string, answer client.Answer) client.Client {
	t.Helper()
	return k.Open(t, client.Options{URL: w.URL, Token: w.Token(t, caller), Answer: answer})
}

// eachKind runs a test once with every client.
func eachKind(t *testing.T, test func(t *testing.T, k client.Kind)) {
	for _, k := range client.Kinds {
		t.Run(k.Name, func(t *testing.T) { test(t, k) })
	}
}

// remote keeps the names of tools that come from upstream servers.
func remote(tools []client.Tool) []string {
	var names []string
	for _, name := range client.Names(tools) {
		if strings.HasPrefix(name, "mcp_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// only keeps the entries of a kind.
func only(entries []rig.Entry, kind string) []rig.Entry {
	var kept []rig.Entry
	for _, e := range entries {
		if e.Kind == kind {
			kept = append(kept, e)
		}
	}
	return kept
}

// wantAnswer fails unless the entries hold exactly one answer, which is no, for
// the reason, and no intent.
func wantAnswer(t *testing.T, entries []rig.Entry, reason string) {
	t.Helper()
	answers := only(entries, "answer")
	if len(answers) != 1 || answers[0].Verdict != "declined" || answers[0].Reason != reason || answers[0].Approval == 0 {
		t.Errorf("the ledger says %+v; want one answer, declined, reason %q", entries, reason)
	}
	wantNoIntent(t, entries)
}

func wantNoIntent(t *testing.T, entries []rig.Entry) {
	t.Helper()
	if intents := only(entries, "intent"); len(intents) != 0 {
		t.Errorf("a refused call left the intents %+v", intents)
	}
}

// wantDenied fails unless the entries hold exactly one denial for the reason and
// no intent.
func wantDenied(t *testing.T, entries []rig.Entry, verdict, reason string) {
	t.Helper()
	denied := only(entries, "denied")
	if len(denied) != 1 || denied[0].Verdict != verdict || denied[0].Reason != reason {
		t.Errorf("the ledger says %+v; want one denial, verdict %q, reason %q", entries, verdict, reason)
	}
	wantNoIntent(t, entries)
}
