package scenarios

import (
	"strings"
	"testing"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

// The reference server has a switch that belongs to the session: the first call
// of a session turns it on, the second off. With session = "caller" every caller
// has a session that lasts from call to call, and nobody meets another's.
func TestKeptSessionsAreNotShared(t *testing.T) {
	url := rig.Everything(t)
	g := rig.New(t, rig.Settings{Callers: callers, Servers: []rig.Upstream{
		{ID: "kept", URL: url, Free: true, Extra: `session = "caller"`},
		{ID: "fresh", URL: url, Free: true},
	}})
	g.Serve(t)
	g.Open(t)
	open := func(caller string) client.Client {
		return client.TypeScript(t, client.Options{URL: g.URL, Token: g.Token(t, caller), Answer: client.None})
	}
	alice, carol, again := open("alice"), open("carol"), open("alice")
	steps := []struct {
		who    string
		client client.Client
		server string
		want   string
	}{
		{"alice", alice, "kept", "Started"},
		{"carol", carol, "kept", "Started"},
		{"alice", alice, "kept", "Stopped"},
		{"alice in a second session", again, "kept", "Started"},
		{"carol", carol, "kept", "Stopped"},
		{"alice", alice, "fresh", "Started"},
		{"alice", alice, "fresh", "Started"},
	}
	names := remote(alice.List(t))
	for i, s := range steps {
		r := s.client.Call(t, localName(t, names, "mcp_"+s.server+"_", "toggle_simulated_logging"), `{}`)
		if !r.OK() || !strings.HasPrefix(r.Text(), s.want) {
			t.Errorf("step %d, %s at %q: want %s: %s", i, s.who, s.server, s.want, r)
		}
	}
}
