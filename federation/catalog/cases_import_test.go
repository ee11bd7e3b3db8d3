package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

func TestC22FailedWalkLeavesTheCatalogueAlone(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	b.take("docs", tool("a", ""), tool("b", ""))
	b.enable("mcp_docs_a")
	before, snapshot := b.store.state(), b.Snapshot()
	r, err := b.Import(t.Context(), "docs", func(context.Context) (catalog.Listing, error) {
		return catalog.Listing{}, errDown
	}, false)
	var refused *catalog.RefusedError
	if !errors.As(err, &refused) || refused.Server != "docs" || !errors.Is(err, errDown) {
		t.Fatalf("got %v, want a refusal that names the server and keeps its cause", err)
	}
	if r.Refusal != "connection refused" || r.Summary() != "docs: refused: connection refused" {
		t.Errorf("report says %q, %q", r.Refusal, r.Summary())
	}
	if b.Snapshot() != snapshot {
		t.Error("a refused import swapped the snapshot")
	}
	after := b.store.state()
	delete(before, "server docs")
	delete(after, "server docs")
	if !maps.Equal(before, after) {
		t.Errorf("tools changed: %v, were %v", after, before)
	}
	s := b.Servers()[0]
	if s.Refusal != "connection refused" || !s.LastRefusal.After(s.LastImport) || s.LastImport.IsZero() {
		t.Errorf("the server's record is %+v", s)
	}
	b.take("docs", tool("a", ""))
	if s := b.Servers()[0]; s.Refusal != "" || !s.LastRefusal.IsZero() {
		t.Errorf("a success leaves the old refusal: %+v", s)
	}
}

func TestC22RefusesMoreToolsThanItKeeps(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	l := catalog.Listing{Era: "2025-11-25"}
	for i := range 5001 {
		l.Tools = append(l.Tools, json.RawMessage(tool(fmt.Sprintf("t%d", i), "")))
	}
	_, err := b.Import(t.Context(), "docs", lists(l), false)
	if err == nil || !strings.Contains(err.Error(), "5001 tools") {
		t.Fatalf("got %v", err)
	}
	if n := len(b.Tools("mcp_docs")); n != 0 {
		t.Errorf("%d tools were kept", n)
	}
}

func TestC24NoNameReachesTwoTools(t *testing.T) {
	for _, test := range []struct {
		what  string
		tools map[gate.ServerID][]string
		alias map[gate.RemoteName]string // of server "a"
		gone  map[string]string          // remote name -> part of the reason
	}{
		{"ids that were never allowed", map[gate.ServerID][]string{"a": {"b_c", "d"}, "a_b": {"c"}}, nil,
			map[string]string{"b_c": `"c" of server "a_b"`, "c": `"b_c" of server "a"`}},
		{"leading and trailing underscore", map[gate.ServerID][]string{"x": {"_y"}, "x_": {"y"}}, nil,
			map[string]string{"_y": `"y" of server "x_"`, "y": `"_y" of server "x"`}},
		{"an alias that is another's name", map[gate.ServerID][]string{"a": {"search.all", "find", "other"}},
			map[gate.RemoteName]string{"search.all": "find"},
			map[string]string{"search.all": `"mcp_a_find" is also that of "find"`, "find": `"search.all" (by its alias)`}},
	} {
		t.Run(test.what, func(t *testing.T) {
			var servers []catalog.ServerSettings
			for id := range test.tools {
				servers = append(servers, server(id, func(s *catalog.ServerSettings) {
					if id == "a" {
						s.Alias = test.alias
					}
				}))
			}
			b := open(t, newMemory(), servers...)
			for id, names := range test.tools {
				var tools []string
				for _, n := range names {
					tools = append(tools, tool(n, ""))
				}
				b.take(id, tools...)
			}
			b.enable("*")
			found := 0
			for _, e := range b.Tools("") {
				part, gone := test.gone[string(e.Remote)]
				switch {
				case !gone && e.Availability != gate.Enabled && !e.Own:
					t.Errorf("%q is %s: %s", e.Remote, e.Availability, e.Detail)
				case gone && (e.Availability != gate.Skipped || !strings.Contains(e.Detail, part)):
					t.Errorf("%q is %s: %s, want it skipped for %q", e.Remote, e.Availability, e.Detail, part)
				case gone:
					found++
				}
			}
			if found != len(test.gone) {
				t.Errorf("%d of %d colliding tools are explained", found, len(test.gone))
			}
		})
	}
}

func TestC24CollisionIsReportedByTheImport(t *testing.T) {
	b := open(t, newMemory(), server("a", func(s *catalog.ServerSettings) { s.Alias = map[gate.RemoteName]string{"search.all": "find"} }))
	r := b.take("a", tool("search.all", ""), tool("find", ""), tool("other", ""), tool("twice", ""), tool("twice", `"inputSchema":{"type":"object","title":"x"}`))
	got := skipped(r)
	equalStrings(t, "skipped", sortedNames(got), []string{"find", "search.all", "twice"})
	if r.Skipped != 4 || r.Imported != 1 {
		t.Errorf("%s", r.Summary())
	}
	if !strings.Contains(got["twice"], "2 times") {
		t.Errorf("twice: %q", got["twice"])
	}
}

func TestC26NamesFitOrAreSkippedNeverRewritten(t *testing.T) {
	const id = "network-function-inventory"
	long := strings.Repeat("x", 120)
	names := map[string]string{ // remote name -> part of the reason, "" = kept
		strings.Repeat("a", 64):  "that is 95 characters, 64 fit",
		strings.Repeat("b", 101): "132 characters",
		strings.Repeat("c", 129): "160 characters",
		long + "one":             "154 characters",
		long + "two":             "154 characters",
		"a b":                    "U+0020",
		"café":                   `"é" (U+00E9)`,
		"admin.tools.list":       `"." (U+002E)`,
		"pay/refund":             `"/" (U+002F)`,
		"t\u200bool":             "U+200B",
		"line\nbreak":            "U+000A",
		"\u202eevil":             "U+202E",
		"esc\x1b[2J":             "U+001B",
		"mcp_docs_search":        "",
		"MixedCase-1":            "",
		strings.Repeat("d", 64-len("mcp_"+id+"_")):   "",
		strings.Repeat("e", 64-len("mcp_"+id+"_")+1): "65 characters",
		"ok\n": "U+000A",
	}
	var tools []string
	kept := 0
	for n, reason := range names {
		quoted, _ := json.Marshal(n)
		tools = append(tools, fmt.Sprintf(`{"name":%s,"inputSchema":{"type":"object"}}`, quoted))
		if reason == "" {
			kept++
		}
	}
	tools = append(tools, `{"name":"","inputSchema":{"type":"object"}}`)
	b := open(t, newMemory(), server(id))
	r := b.take(id, tools...)
	if r.Imported != kept || r.Skipped != len(tools)-kept {
		t.Errorf("%s, want %d imported", r.Summary(), kept)
	}
	b.enable("*")
	for _, e := range b.Tools("") {
		if e.Own {
			continue
		}
		reason := names[string(e.Remote)]
		if reason == "" {
			if want := gate.LocalName("mcp_" + id + "_" + string(e.Remote)); e.Name != want || e.Availability != gate.Enabled {
				t.Errorf("%q is %q, %s", e.Remote, e.Name, e.Availability)
			}
			continue
		}
		if e.Name != "" || e.Availability != gate.Skipped || !strings.Contains(e.Detail, reason) {
			t.Errorf("%q is %q, %s: %s; want it skipped for %q", e.Remote, e.Name, e.Availability, e.Detail, reason)
		}
		if strings.ContainsAny(e.Detail+e.RemoteText, "\n\x1b\u200b\u202e") {
			t.Errorf("%q reaches the terminal as it is", e.Detail)
		}
	}
	for _, l := range r.Lines {
		if strings.ContainsAny(l.Text+l.Remote, "\n\x1b\u200b\u202e") {
			t.Errorf("%q reaches the terminal as it is", l.Text+l.Remote)
		}
	}
	if !strings.Contains(skipped(r)[fmt.Sprintf("#%d", len(tools)-1)], "its name is empty") {
		t.Errorf("the empty name is not reported by its place: %v", skipped(r))
	}

	b.Configure([]catalog.ServerSettings{server(id, func(s *catalog.ServerSettings) {
		s.Alias = map[gate.RemoteName]string{"admin.tools.list": "admin_tools_list"}
	})}, nil, gate.Enforce)
	if got := b.availability("mcp_" + id + "_admin_tools_list"); got != gate.Disabled {
		t.Errorf("with an alias the tool is %s", got)
	}
}

func TestC39ListingAsksNoServer(t *testing.T) {
	b := open(t, newMemory(), server("a"), server("b"))
	b.take("a", tool("x", ""))
	b.enable("mcp_a_x")
	hang, begun := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() { // ends when hang is closed, and is waited for below
		_, err := b.Import(context.Background(), "b", func(context.Context) (catalog.Listing, error) {
			close(begun)
			<-hang
			return catalog.Listing{}, errDown
		}, false)
		done <- err
	}()
	<-begun
	for range 3 {
		names, _ := walk(t, b.Snapshot(), admin, catalog.Era2026)
		equalStrings(t, "listed while a server hangs", remote(names), []string{"mcp_a_x"})
	}
	b.take("a", tool("x", ""), tool("y", ""))
	b.enable("mcp_a_y")
	names, _ := walk(t, b.Snapshot(), admin, catalog.Era2025)
	equalStrings(t, "listed after another import", remote(names), []string{"mcp_a_x", "mcp_a_y"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Import(ctx, "b", lists(listing()), false); !errors.Is(err, context.Canceled) {
		t.Errorf("a second import of the hanging server: %v", err)
	}
	close(hang)
	if err := <-done; !errors.Is(err, errDown) {
		t.Errorf("the hanging import: %v", err)
	}
}

func TestC39StartsFromTheStore(t *testing.T) {
	b := open(t, newMemory(), server("a"))
	b.take("a", tool("x", `"description":"<b>&\u2028","inputSchema":{"type":"object","title":"<b>&","properties":{"n":{"type":"integer"}}}`), tool("y", ""))
	b.enable("mcp_a_x")
	again := open(t, b.store, server("a"))
	for _, era := range []catalog.Era{catalog.Era2025, catalog.Era2026} {
		before, err := b.Snapshot().Page(admin, era, "")
		if err != nil {
			t.Fatal(err)
		}
		after, err := again.Snapshot().Page(admin, era, "")
		if err != nil || string(before) != string(after) {
			t.Errorf("after a restart the page is %s, %v; was %s", after, err, before)
		}
	}
	if err := again.Snapshot().Tool("mcp_a_x").Arguments.Check([]byte(`{"n":"1"}`)); err == nil {
		t.Error("after a restart nothing is checked")
	}
}
