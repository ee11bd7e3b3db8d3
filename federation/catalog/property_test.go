package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// Whatever happened to a catalogue, a caller is listed exactly the tools that
// the gate would offer them, under names that lead back to those tools, and a
// catalogue that starts from the store says the same.
func TestListedIsOffered(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 40 {
		store := newMemory()
		b := open(t, store)
		var settings []catalog.ServerSettings
		var callers []*gate.Caller
		reconfigure := func() {
			settings, callers = randomServers(r), randomCallers(r)
			b.Configure(settings, callers, gate.Enforcement(r.IntN(2)))
		}
		reconfigure()
		for range 12 {
			switch r.IntN(5) {
			case 0:
				reconfigure()
			case 1:
				if all := b.Snapshot().Entries("mcp_*"); len(all) > 0 {
					b.Enable(nil, string(all[r.IntN(len(all))].Name))
				}
			case 2:
				b.Enable(nil, "mcp_*")
			case 3:
				b.Disable(nil, fmt.Sprintf("mcp_s%d", r.IntN(3)))
			default:
				b.Import(t.Context(), gate.ServerID(fmt.Sprintf("s%d", r.IntN(3))), lists(randomListing(r)), r.IntN(6) == 0)
			}
			compareViews(t, b.Snapshot(), callers)
		}
		again := open(t, store)
		again.Configure(settings, callers, gate.Enforce)
		b.Configure(settings, callers, gate.Enforce)
		for _, c := range callers {
			if !again.Snapshot().SameView(c, b.Snapshot()) {
				t.Fatalf("round %d: a restart changes what %+v sees", round, c)
			}
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

func compareViews(t *testing.T, s *catalog.Snapshot, callers []*gate.Caller) {
	t.Helper()
	for _, c := range callers {
		for _, era := range []catalog.Era{catalog.Era2025, catalog.Era2026} {
			names, _ := walk(t, s, c, era)
			var want []string
			for tool := range s.Tools() {
				reason, _ := gate.Offered(tool, c, s.Enforcement())
				if shown := c.Surface == gate.Everything && tool.Name != catalog.CallTool || tool.Own && c.Surface == gate.Find; reason == "" && shown {
					want = append(want, string(tool.Name))
				}
				if reason == "" && s.Tool(tool.Name) != tool {
					t.Errorf("%s leads to another tool", tool.Name)
				}
			}
			if !slices.Equal(names, want) {
				t.Errorf("%+v is listed %q, offered %q", c, names, want)
			}
			if n := slices.Compact(slices.Clone(names)); len(n) != len(names) {
				t.Errorf("names repeat: %q", names)
			}
		}
	}
}

func randomServers(r *rand.Rand) []catalog.ServerSettings {
	var out []catalog.ServerSettings
	for i := range 3 {
		if r.IntN(8) == 0 {
			continue
		}
		out = append(out, server(gate.ServerID(fmt.Sprintf("s%d", i)), func(s *catalog.ServerSettings) {
			s.Enabled = r.IntN(6) != 0
			s.Class = gate.Class(r.IntN(7))
			if r.IntN(6) == 0 {
				s.URL = "https://moved.example.org"
			}
			if r.IntN(3) == 0 {
				s.Alias = map[gate.RemoteName]string{"t1": fmt.Sprintf("t%d", r.IntN(4)), "odd.name": "odd"}
			}
		}))
	}
	return out
}

func randomCallers(r *rand.Rand) []*gate.Caller {
	out := []*gate.Caller{admin}
	for range 3 {
		c := &gate.Caller{Admin: r.IntN(4) != 0, Zone: gate.Zone(r.IntN(4)), Groups: gate.EveryGroup(), Dialect: gate.Dialect(r.IntN(2)), Surface: gate.Surface(r.IntN(2))}
		if r.IntN(3) == 0 {
			c.Groups = gate.OnlyGroups("mcp_s0", "mcp_s1")
		}
		if r.IntN(3) == 0 {
			c.NameBudget, c.NamePrefix = 30, 22
		}
		out = append(out, c)
	}
	return out
}

func randomListing(r *rand.Rand) catalog.Listing {
	schemas := []string{`{"type":"object"}`, `{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/properties/a"}}}}`, `{"type":"string"}`,
		`{"type":"object","minProperties":1}`}
	var tools []string
	for range r.IntN(8) {
		name := fmt.Sprintf("t%d", r.IntN(5))
		if r.IntN(5) == 0 {
			name = "odd.name"
		}
		tools = append(tools, tool(name, fmt.Sprintf(`"description":"d%d","inputSchema":%s`, r.IntN(2), schemas[r.IntN(len(schemas))])))
	}
	return listing(tools...)
}
