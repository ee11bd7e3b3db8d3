package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

// A server's line in servers list.
type server struct {
	ID          string `json:"id"`
	Enabled     bool   `json:"enabled"`
	Era         string `json:"era"`
	ImportError string `json:"import_error"`
	Tools       int    `json:"tools"`
}

// The reference server of the 2025 era.
func TestServerEverything(t *testing.T) {
	g := rig.New(t, rig.Settings{Callers: callers, Servers: []rig.Upstream{{ID: "everything", URL: rig.Everything(t), Free: true}}})
	g.Serve(t)
	g.Open(t)
	servers := rig.JSON[server](t, g, "servers", "list")
	if len(servers) != 1 || servers[0].Era != "2025-11-25" || servers[0].Tools < 10 || servers[0].ImportError != "" {
		t.Fatalf("servers list says %+v", servers)
	}
	eachKind(t, func(t *testing.T, k client.Kind) {
		c := k.Open(t, client.Options{URL: g.URL, Token: g.Token(t, "alice"), Answer: client.None})
		calls := []struct{ tool, arguments, want string }{
			{"echo", `{"message":"9007199254740993"}`, "9007199254740993"},
			{"get_sum", `{"a":9007199254740991,"b":1}`, "9007199254740992"},
			{"get_structured_content", `{"location":"Chicago"}`, "structuredContent"},
			{"get_tiny_image", `{}`, `"type":"image"`},
			{"get_resource_links", `{"count":2}`, `"type":"resource_link"`},
			{"trigger_long_running_operation", `{"duration":0.4,"steps":4}`, "completed"},
		}
		names := remote(c.List(t))
		for _, call := range calls {
			name := localName(t, names, "mcp_everything_", call.tool)
			r := c.Call(t, name, call.arguments, client.WithProgress)
			if !r.OK() || r.Outcome() != "ok" || !r.OnWire(call.want) {
				t.Errorf("%s: %s", name, r)
			}
			if call.tool == "trigger_long_running_operation" && len(r.Progress) == 0 {
				t.Errorf("%s reported no progress", name)
			}
		}
	})
}

// localName finds the name that the catalogue gave a tool: hyphens may have
// become underscores.
func localName(t *testing.T, names []string, prefix, tool string) string {
	t.Helper()
	for _, name := range names {
		if strings.ReplaceAll(name, "-", "_") == prefix+tool {
			return name
		}
	}
	t.Fatalf("no %s%s among %q", prefix, tool, names)
	return ""
}

// Eleven published servers and two more libraries, all behind one gateway.
func TestPublishedServers(t *testing.T) {
	settings := rig.Settings{Callers: callers}
	dirs := map[string]string{}
	for _, s := range rig.Published {
		url, dir := s.Start(t)
		dirs[s.ID] = dir
		upstream := rig.Upstream{ID: s.ID, URL: url, Free: true}
		if s.Protocol != "" {
			upstream.Extra = fmt.Sprintf("protocol = %q", s.Protocol)
		}
		settings.Servers = append(settings.Servers, upstream)
	}
	settings.Servers = append(settings.Servers,
		rig.Upstream{ID: "measures", URL: rig.MCPGo(t), Free: true},
		rig.Upstream{ID: "orders", URL: rig.Orders(t).URL, Free: true})
	g := rig.New(t, settings)
	g.Serve(t)
	g.Open(t)

	eras := map[string]int{}
	for _, s := range rig.JSON[server](t, g, "servers", "list") {
		if s.ImportError != "" || s.Tools == 0 {
			t.Errorf("server %q: %d tools, import error %q", s.ID, s.Tools, s.ImportError)
		}
		eras[s.Era]++
	}
	if eras["2025-11-25"] < 8 || eras["2026-07-28"] < 3 {
		t.Errorf("eras found: %v", eras)
	}
	c := client.Go(t, client.Options{URL: g.URL, Token: g.Token(t, "alice"), Answer: client.None})
	names := remote(c.List(t))
	for _, s := range rig.Published {
		t.Run(s.ID, func(t *testing.T) {
			prefix := "mcp_" + s.ID + "_"
			for _, tool := range s.Tools {
				localName(t, names, prefix, strings.ReplaceAll(tool, "-", "_"))
			}
			last := g.Last(t)
			r := c.Call(t, localName(t, names, prefix, strings.ReplaceAll(s.Tool, "-", "_")), strings.ReplaceAll(s.Arguments, "{dir}", dirs[s.ID]))
			if r.OK() != (s.Outcome == "ok") || !r.OnWire(s.Want) {
				t.Errorf("%s: %s", s.Tool, r)
			}
			if outcomes := only(g.Since(t, last, "outcome"), "outcome"); len(outcomes) != 1 || outcomes[0].Verdict != s.Outcome {
				t.Errorf("the ledger says %+v, want the outcome %s", outcomes, s.Outcome)
			}
		})
	}
	if r := c.Call(t, "mcp_measures_to_grams", `{"ounces":2}`); !r.OK() || !strings.Contains(r.Text(), "56.69904625") {
		t.Errorf("to_grams: %s", r)
	}
}

// What explain says is what the list shows and what a call meets, for every
// caller and every tool of a real set of servers.
func TestExplainListAndCallAgree(t *testing.T) {
	desk := rig.Orders(t)
	people := append(slices.Clone(callers),
		rig.Caller{Name: "dave", Admin: true, Zone: "external_eu", Extra: `groups = ["mcp_orders", "mcp_measures"]`},
		rig.Caller{Name: "erin", Admin: true, Zone: "private_hosted", Extra: `groups = []`})
	g := rig.New(t, rig.Settings{Callers: people, Servers: []rig.Upstream{
		{ID: "orders", URL: desk.URL, Free: true, Class: "internal_configuration"},
		{ID: "everything", URL: rig.Everything(t), Free: true, Class: "editor_content"},
		{ID: "measures", URL: rig.MCPGo(t), Free: true},
		{ID: "off", URL: desk.URL, Free: true, Extra: "enabled = false"},
		{ID: "unclassified", URL: desk.URL, Free: true, Class: rig.Unclassified},
	}})
	g.Serve(t)
	g.Do(t, "import", "orders", "everything", "measures")
	g.Do(t, "tools", "enable", "mcp_*")
	g.Do(t, "tools", "disable", "mcp_orders_fail", "mcp_everything_echo")

	every := map[string]bool{"mcp_orders_nonsense": true, "mcp_off_echo": true, "mcp_unclassified_echo": true}
	lists := map[string][]string{}
	clients := map[string]client.Client{}
	for _, p := range people {
		clients[p.Name] = client.Go(t, client.Options{URL: g.URL, Token: g.Token(t, p.Name), Answer: client.None})
		lists[p.Name] = client.Names(clients[p.Name].List(t))
		for _, name := range lists[p.Name] {
			every[name] = true
		}
	}
	every["mcp_orders_fail"], every["mcp_everything_echo"] = true, true
	for _, name := range slices.Sorted(maps.Keys(every)) {
		for _, p := range people {
			listed := slices.Contains(lists[p.Name], name)
			if explained := explainAllows(t, g, name, p.Name); explained != listed {
				t.Errorf("%s for %s: explain says %v, tools/list %v", name, p.Name, explained, listed)
			}
			if called := reaches(t, g, clients[p.Name], name); called != listed {
				t.Errorf("%s for %s: tools/call gets through the gate: %v, tools/list %v", name, p.Name, called, listed)
			}
		}
	}
}

func explainAllows(t *testing.T, g *rig.Gatehouse, tool, caller string) bool {
	t.Helper()
	r := g.Run(t, "explain", tool, "--caller", caller, "--json")
	var explanation struct {
		Offered *bool  `json:"offered"`
		Reason  string `json:"reason"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &explanation); err != nil || explanation.Offered == nil {
		t.Fatalf("explain %s --caller %s --json printed %q %q", tool, caller, r.Stdout, r.Stderr)
	}
	if *explanation.Offered != (explanation.Reason == "") {
		t.Errorf("explain %s --caller %s: offered %v, reason %q", tool, caller, *explanation.Offered, explanation.Reason)
	}
	return *explanation.Offered
}

// quick are arguments for tools that would otherwise take their time or fail.
var quick = map[string]string{
	"trigger_long_running_operation": `{"duration":0.1,"steps":1}`,
	"slow":                           `{"steps":1,"pause_ms":1}`,
	"simulate_research_query":        `{"unfit":true}`,
}

// reaches reports whether a call got past the checks that decide what is offered.
func reaches(t *testing.T, g *rig.Gatehouse, c client.Client, name string) bool {
	t.Helper()
	arguments := `{}`
	for suffix, a := range quick {
		if strings.HasSuffix(strings.ReplaceAll(name, "-", "_"), suffix) {
			arguments = a
		}
	}
	r := c.Call(t, name, arguments)
	if r.OK() {
		return true
	}
	for _, e := range slices.Backward(g.Ledger(t)) {
		switch e.Kind { // outcomes may lag, these two do not
		case "intent":
			return true
		case "denied":
			return e.Reason == "invalid_arguments"
		}
	}
	return false
}
