package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

func TestC56EachCallerSeesTheirOwnPages(t *testing.T) {
	b := open(t, newMemory(), server("public", func(s *catalog.ServerSettings) { s.Class = gate.PublicContent }),
		server("internal", func(s *catalog.ServerSettings) { s.Class = gate.InternalConfiguration }),
		server("secret", func(s *catalog.ServerSettings) { s.Class = gate.SecretAdjacent }))
	for _, id := range []gate.ServerID{"public", "internal", "secret"} {
		var tools []string
		for i := range 600 {
			tools = append(tools, tool(fmt.Sprintf("t%03d", i), ""))
		}
		b.take(id, tools...)
	}
	b.enable("mcp_*")
	callers := map[*gate.Caller]int{
		admin: 1800,
		{Name: "low", Admin: true, Groups: gate.EveryGroup()}:                                  600,
		{Name: "eu", Admin: true, Zone: gate.ExternalEU, Groups: gate.EveryGroup()}:            1200,
		{Name: "narrow", Admin: true, Zone: gate.Local, Groups: gate.OnlyGroups("mcp_secret")}: 600,
		{Name: "nothing", Admin: true, Zone: gate.Local}:                                       0,
		{Name: "plain", Zone: gate.Local, Groups: gate.EveryGroup()}:                           0,
	}
	s := b.Snapshot()
	var wg sync.WaitGroup
	for c, want := range callers {
		for _, era := range []catalog.Era{catalog.Era2025, catalog.Era2026} {
			wg.Go(func() {
				for range 20 {
					names, _ := walk(t, s, c, era)
					if got := remote(names); len(got) != want {
						t.Errorf("%s sees %d tools, want %d", c.Name, len(got), want)
					}
					for _, n := range names {
						if reason, _ := gate.Offered(s.Tool(gate.LocalName(n)), c, gate.Enforce); reason != "" || !s.Listed(c, gate.LocalName(n)) {
							t.Errorf("%s sees %s, which is %s", c.Name, n, reason)
						}
					}
				}
			})
		}
	}
	wg.Wait()

	page, err := s.Page(admin, catalog.Era2026, "")
	if err != nil {
		t.Fatal(err)
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal(page, &result); err != nil {
		t.Fatal(err)
	}
	if string(result["cacheScope"]) != `"private"` || string(result["ttlMs"]) != "30000" || string(result["resultType"]) != `"complete"` ||
		string(result["_meta"]) != `{"io.modelcontextprotocol/serverInfo":{"name":"gatehouse","title":"Gatehouse","version":"1.0"}}` {
		t.Errorf("the 2026 page says %s %s %s %s", result["cacheScope"], result["ttlMs"], result["resultType"], result["_meta"])
	}
	var cursor string
	if err := json.Unmarshal(result["nextCursor"], &cursor); err != nil {
		t.Fatal(err)
	}
	for c := range callers {
		_, err := s.Page(c, catalog.Era2026, cursor)
		if (err == nil) != (c == admin) {
			t.Errorf("the administrator's cursor gives %s %v", c.Name, err)
		}
	}
	if _, err := s.Page(admin, catalog.Era2025, cursor); !errors.Is(err, catalog.ErrStaleCursor) {
		t.Errorf("a cursor of the other era gives %v", err)
	}
	if _, err := s.Page(admin, catalog.Era2026, cursor+"A"); !errors.Is(err, catalog.ErrStaleCursor) {
		t.Errorf("a damaged cursor gives %v", err)
	}
	stale := cursor
	low, same := &gate.Caller{Admin: true, Groups: gate.EveryGroup()}, &gate.Caller{Admin: true, Groups: gate.OnlyGroups("mcp_public")}
	page, err = s.Page(low, catalog.Era2026, "")
	if err != nil || json.Unmarshal(page, &result) != nil || json.Unmarshal(result["nextCursor"], &cursor) != nil {
		t.Fatal(err)
	}
	if _, err := s.Page(same, catalog.Era2026, cursor); !errors.Is(err, catalog.ErrStaleCursor) {
		t.Errorf("the cursor of another view with the same tools gives %v", err)
	}
	if _, err := b.Disable(nil, "mcp_secret_t599"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Snapshot().Page(admin, catalog.Era2026, stale); !errors.Is(err, catalog.ErrStaleCursor) {
		t.Errorf("a stale cursor gives %v", err)
	}
	if names, _ := walk(t, b.Snapshot(), admin, catalog.Era2026); len(remote(names)) != 1799 {
		t.Errorf("a change does not act at once: %d tools", len(remote(names)))
	}
}

func TestC60OnlyChangedViewsDiffer(t *testing.T) {
	b := open(t, newMemory(), server("a"), server("b"))
	b.take("a", tool("x", ""), tool("y", ""))
	b.take("b", tool("z", ""))
	onlyA := &gate.Caller{Name: "a", Admin: true, Groups: gate.OnlyGroups("mcp_a")}
	onlyB := &gate.Caller{Name: "b", Admin: true, Groups: gate.OnlyGroups("mcp_b")}
	plain := &gate.Caller{Name: "plain", Groups: gate.EveryGroup()}
	finder := &gate.Caller{Name: "finder", Admin: true, Groups: gate.EveryGroup(), Surface: gate.Find}
	var swaps []map[gate.CallerName]bool
	stop := b.Subscribe(func(old, new *catalog.Snapshot) {
		changed := make(map[gate.CallerName]bool)
		for _, c := range []*gate.Caller{onlyA, onlyB, plain, finder} {
			if !new.SameView(c, old) {
				changed[c.Name] = true
			}
		}
		swaps = append(swaps, changed)
	})
	b.take("a", tool("x", ""), tool("y", "")) // nothing is enabled: nobody's list changes
	b.enable("mcp_a_x", "mcp_a_y")            // one swap for both
	b.take("a", tool("x", ""), tool("y", "")) // the same again
	b.take("a", tool("y", ""))                // x vanishes
	b.Configure([]catalog.ServerSettings{server("a"), server("b"), server("c")}, nil, gate.Enforce)
	stop()
	enabled := b.Snapshot()
	b.take("a", tool("y", `"description":"new","inputSchema":{"type":"object"}`))
	b.enable("mcp_a_y")
	if b.Snapshot().SameView(onlyA, enabled) || !b.Snapshot().SameView(onlyB, enabled) {
		t.Error("an accepted change is no change of the view that shows it")
	}
	b.enable("mcp_b_z")
	none, onA := map[gate.CallerName]bool{}, map[gate.CallerName]bool{"a": true}
	if want := []map[gate.CallerName]bool{none, onA, none, onA, none}; !reflect.DeepEqual(swaps, want) {
		t.Errorf("views changed: %v, want %v", swaps, want)
	}
}
