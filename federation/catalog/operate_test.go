package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

func TestImportRefusals(t *testing.T) {
	b := open(t, newMemory(), server("docs"),
		server("unclassified", func(s *catalog.ServerSettings) { s.Class = gate.Unclassified }),
		server("nowhere", func(s *catalog.ServerSettings) { s.URL = "" }))
	asked := false
	list := func(context.Context) (catalog.Listing, error) { asked = true; return listing(), nil }
	for id, want := range map[gate.ServerID]string{
		"unclassified": `server "unclassified": the server has no declared data class; set data_class under its [[server]]`,
		"nowhere":      `server "nowhere": no url is set; set url under its [[server]]`,
		"unknown":      `server "unknown": no [[server]] has this id`,
	} {
		_, err := b.Import(t.Context(), id, list, false)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if asked {
		t.Error("a server was asked that supplies nothing")
	}
	kept := make(map[gate.ServerID]string)
	for _, s := range b.Servers() {
		kept[s.ID] = s.Refusal
	}
	if len(kept) != 2 || kept["unclassified"] == "" || kept["nowhere"] == "" {
		t.Errorf("refusals kept: %q", kept)
	}
}

func TestImportOfNothingIsNoRefusal(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	if r := b.take("docs"); r.Summary() != "docs: 0 imported (0 new, 0 changed), 0 skipped, 0 vanished" {
		t.Errorf("%s", r.Summary())
	}
}

func TestImportCountsAndReports(t *testing.T) {
	b := open(t, newMemory(), server("tickets"))
	b.take("tickets", tool("same", ""), tool("other", ""), tool("gone", ""))
	b.take("tickets", tool("same", ""), tool("other", ""), tool("gone", ""))
	r := b.take("tickets", tool("same", ""), tool("other", `"description":"now","inputSchema":{"type":"object","required":["x"]}`), tool("new", ""), "null", tool("a b", ""))
	if want := "tickets: 3 imported (1 new, 1 changed), 2 skipped, 1 vanished"; r.Summary() != want {
		t.Errorf("got %s, want %s", r.Summary(), want)
	}
	var lines []string
	for _, l := range r.Lines {
		lines = append(lines, fmt.Sprintf("%d %s %s %q %s", l.Index, l.What, l.Name, l.Remote, l.Text))
	}
	equalStrings(t, "lines", lines, []string{
		`1 changed mcp_tickets_other "other" description added, inputSchema.required added`,
		`2 new mcp_tickets_new "new" `,
		`3 skipped  "" it is null, not an object`,
		`4 skipped  "a b" its name would be "mcp_tickets_a b": U+0020 is not one of A-Z a-z 0-9 _ -; give it an alias under [server.alias]`,
		`-1 vanished mcp_tickets_gone "gone" last seen 2026-03-01 12:02`,
	})
	if r := b.take("tickets", tool("same", ""), tool("new", ""), tool("other", "")); r.Vanished != 0 {
		t.Errorf("what vanished before vanishes again: %s", r.Summary())
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	b.take("docs", tool("a", ""))
	before, snapshot := b.store.saves, b.Snapshot()
	r, err := b.Import(t.Context(), "docs", lists(listing(tool("b", ""))), true)
	if err != nil || r.New != 1 || r.Vanished != 1 || !r.DryRun {
		t.Errorf("%s, %v", r.Summary(), err)
	}
	if _, err := b.Import(t.Context(), "docs", func(context.Context) (catalog.Listing, error) { return catalog.Listing{}, errDown }, true); err == nil {
		t.Error("a dry run hides a refusal")
	}
	if b.store.saves != before || b.Snapshot() != snapshot {
		t.Error("a dry run changed something")
	}
}

func TestWhatCannotBeWrittenDoesNotHappen(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	b.take("docs", tool("a", ""))
	b.store.fail = errors.New("disk full")
	if _, err := b.Import(t.Context(), "docs", lists(listing(tool("b", ""))), false); !errors.Is(err, b.store.fail) {
		t.Errorf("import: %v", err)
	}
	if _, err := b.Enable(nil, "mcp_docs_a"); !errors.Is(err, b.store.fail) {
		t.Errorf("enable: %v", err)
	}
	if b.Snapshot().Tool("mcp_docs_b") != nil || b.availability("mcp_docs_a") != gate.Disabled {
		t.Error("the catalogue shows what is not stored")
	}
}

func TestServerThatMovesDuringAnImportIsNotImported(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	_, err := b.Import(t.Context(), "docs", func(context.Context) (catalog.Listing, error) {
		b.Configure([]catalog.ServerSettings{server("docs", func(s *catalog.ServerSettings) { s.URL = "https://new.example.org" })}, nil, gate.Enforce)
		return listing(tool("a", "")), nil
	}, false)
	if err == nil || !strings.Contains(err.Error(), "configuration changed") || b.Snapshot().Tool("mcp_docs_a") != nil {
		t.Errorf("got %v", err)
	}
}

func TestEnableAndDisable(t *testing.T) {
	b := open(t, newMemory(), server("a"), server("b"), server("off", func(s *catalog.ServerSettings) { s.Enabled = false }))
	b.take("a", tool("x", ""), tool("y", ""), tool("bad", `"inputSchema":{"type":"string"}`), tool("gone", ""))
	b.take("a", tool("x", ""), tool("y", ""), tool("bad", `"inputSchema":{"type":"string"}`))
	b.take("b", tool("x", ""))
	b.take("off", tool("x", ""))
	for name, part := range map[string]string{
		"mcp_a_nope":      "no such tool",
		"mcp_a_bad":       "its input schema cannot be used",
		"mcp_a_gone":      "stopped listing it",
		"gatehouse_find":  "our own",
		"mcp_zzz_*":       "no such tool",
		"mcp_a":           "", // a group
		"mcp_[":           "no such tool",
		"":                "no such tool",
		"MCP_A_X":         "no such tool",
		"mcp_a_x\nmcp_b_": "no such tool",
	} {
		_, err := b.Enable(nil, "mcp_b_x", name)
		if part == "" {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("enable %q: %v", name, err)
		}
		if part == "no such tool" && !errors.Is(err, catalog.ErrNoTool) {
			t.Errorf("enable %q: %v is not ErrNoTool", name, err)
		}
	}
	b.Disable(nil, "*")
	if got := b.availability("mcp_b_x"); got != gate.Disabled {
		t.Errorf("a failed enable left mcp_b_x %s", got)
	}
	var got []string
	for _, c := range b.enable("mcp_a", "mcp_*_x") {
		got = append(got, fmt.Sprintf("%s %s %s>%s %.20s", c.Name, c.Kind, c.From, c.To, c.Refused))
	}
	equalStrings(t, "changes", got, []string{
		"mcp_a_bad  skipped>skipped its input schema can",
		"mcp_a_gone  vanished>vanished the server stopped l",
		"mcp_a_x enable disabled>enabled ",
		"mcp_a_y enable disabled>enabled ",
		"mcp_b_x enable disabled>enabled ",
		"mcp_off_x enable server_disabled>server_disabled ",
	})
	if again := b.enable("mcp_a_x"); again[0].Kind != "" || again[0].To != gate.Enabled {
		t.Errorf("enabling twice: %+v", again)
	}
	changes, err := b.Disable(nil, "mcp_a_x", "mcp_a_bad")
	if err != nil || len(changes) != 2 || changes[0].Kind != "" || changes[1].Kind != gate.KindDisable || changes[1].To != gate.Disabled {
		t.Errorf("disable: %+v, %v", changes, err)
	}
	again := open(t, b.store, server("a"), server("b"), server("off"))
	for name, want := range map[gate.LocalName]gate.Availability{"mcp_a_x": gate.Disabled, "mcp_a_y": gate.Enabled, "mcp_b_x": gate.Enabled,
		"mcp_off_x": gate.Enabled, "mcp_a_gone": gate.Vanished, "mcp_a_bad": gate.Skipped} {
		if got := again.availability(name); got != want {
			t.Errorf("after a restart %s is %s, want %s", name, got, want)
		}
	}
}

func TestConfigurationDecidesWhatIsOffered(t *testing.T) {
	store := newMemory()
	b := open(t, store, server("a"))
	b.take("a", tool("x", ""), tool("y.z", ""))
	b.enable("mcp_a_x")
	for _, test := range []struct {
		what   string
		alter  func(*catalog.ServerSettings)
		want   gate.Availability
		detail string
	}{
		{"as it was", func(s *catalog.ServerSettings) {}, gate.Enabled, ""},
		{"switched off", func(s *catalog.ServerSettings) { s.Enabled = false }, gate.ServerDisabled, "enabled = false"},
		{"no class", func(s *catalog.ServerSettings) { s.Class = gate.Unclassified }, gate.Unsupplied, "no declared data class"},
		{"no url", func(s *catalog.ServerSettings) { s.URL = "" }, gate.Unsupplied, "no url"},
		{"waived", func(s *catalog.ServerSettings) {
			s.ApprovalWaived, s.Class, s.CallsPerMinute = true, gate.SourceCode, 7
			s.URL = "https://user:pw@a.example.org:8443/mcp?key=1"
		}, gate.Changed, "url is not the one"},
	} {
		settings := server("a", test.alter)
		b.Configure([]catalog.ServerSettings{settings}, nil, gate.Enforce)
		e, _ := b.Snapshot().Entry("mcp_a_x")
		if e.Availability != test.want || !strings.Contains(e.Detail, test.detail) {
			t.Errorf("%s: %s, %q", test.what, e.Availability, e.Detail)
		}
		if e.Class != settings.Class || e.ApprovalWaived != settings.ApprovalWaived || e.ServerCallsPerMinute != settings.CallsPerMinute {
			t.Errorf("%s: the tool is %+v", test.what, e.Tool)
		}
		if test.what == "waived" && e.Origin != "https://a.example.org:8443" {
			t.Errorf("origin %q", e.Origin)
		}
	}
	b.Configure(nil, nil, gate.Enforce)
	if e, _ := b.Snapshot().Entry("mcp_a_x"); e.Availability != gate.ServerDisabled {
		t.Errorf("with its server gone from the configuration it is %s", e.Availability)
	}
	// An alias is another name for the same pin.
	b.Configure([]catalog.ServerSettings{server("a", func(s *catalog.ServerSettings) {
		s.Alias = map[gate.RemoteName]string{"x": "renamed", "y.z": "y_z"}
	})}, nil, gate.Enforce)
	if b.Snapshot().Tool("mcp_a_x") != nil || b.availability("mcp_a_renamed") != gate.Enabled || b.availability("mcp_a_y_z") != gate.Disabled {
		t.Error("aliases do not rename")
	}
	// A new id inherits nothing.
	b.Configure([]catalog.ServerSettings{server("b", func(s *catalog.ServerSettings) { s.URL = server("a").URL })}, nil, gate.Enforce)
	b.take("b", tool("x", ""))
	if got := b.availability("mcp_b_x"); got != gate.Disabled {
		t.Errorf("under another id the tool is %s", got)
	}
}

func TestEachEraGetsWhatIsValidThere(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	b.take("s", `{"name":"a","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{}},"execution":{"taskSupport":"optional"},"icons":[{"src":"https://x/i.png","odd":1}],"vendor":1.0}`,
		`{"name":"b","title":null,"inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes"},"icons":[{"src":"a","theme":"pink"}],"execution":{"taskSupport":1},"_meta":7}`,
		`{"name":"c","inputSchema":{"type":"object"},"outputSchema":null}`)
	b.enable("mcp_s")
	const a = `{"name":"mcp_s_a","description":"[via the external MCP server \"Server s\"] d","inputSchema":{"type":"object"},`
	_, old := walk(t, b.Snapshot(), admin, catalog.Era2025)
	if want := a + `"execution":{"taskSupport":"optional"},"icons":[{"src":"https://x/i.png","odd":1}],"vendor":1.0}`; string(old["mcp_s_a"]) != want {
		t.Errorf("2025: %s\nwant %s", old["mcp_s_a"], want)
	}
	_, now := walk(t, b.Snapshot(), admin, catalog.Era2026)
	if want := a + `"outputSchema":{"type":"array","items":{}},"icons":[{"src":"https://x/i.png","odd":1}],"vendor":1.0}`; string(now["mcp_s_a"]) != want {
		t.Errorf("2026: %s\nwant %s", now["mcp_s_a"], want)
	}
	// What only decorates and has the wrong shape would cost a strict client the page.
	want := `{"name":"mcp_s_b","description":"[via the external MCP server \"Server s\"] ","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`
	if string(old["mcp_s_b"]) != want || string(now["mcp_s_b"]) != want {
		t.Errorf("got %s and %s, want %s", old["mcp_s_b"], now["mcp_s_b"], want)
	}
	if c := string(now["mcp_s_c"]); !strings.HasSuffix(c, `"inputSchema":{"type":"object"}}`) {
		t.Errorf("without an output schema: %s", c)
	}
	if e, _ := b.Snapshot().Entry("mcp_s_b"); len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "title, annotations, icons, execution, _meta") {
		t.Errorf("warnings %q", e.Warnings)
	}
	if got := string(b.Snapshot().Served(admin, catalog.Era2026, "mcp_s_a")); got != string(now["mcp_s_a"]) {
		t.Errorf("Served gives %s", got)
	}
}

func TestInvalidHeaderBindingsMatterToTheEraThatHasThem(t *testing.T) {
	bad := tool("t", `"inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`)
	good := tool("g", `"inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`)
	b := open(t, newMemory(), server("s"))
	if r := b.take("s", bad, good); r.Skipped != 1 || !strings.Contains(skipped(r)["t"], "x-mcp-header") {
		t.Errorf("%s", r.Summary())
	}
	if h := b.Snapshot().Tool("mcp_s_g").ParamHeaders; len(h) != 1 || h[0].Name != "A" || h[0].Type != "string" || h[0].Path[0] != "a" {
		t.Errorf("bindings %+v", h)
	}
	l := listing(bad, good)
	l.Era = "2025-11-25"
	r, err := b.Import(t.Context(), "s", lists(l), false)
	if err != nil || r.Skipped != 0 {
		t.Errorf("%s, %v", r.Summary(), err)
	}
	if h := b.Snapshot().Tool("mcp_s_t").ParamHeaders; len(h) != 0 {
		t.Errorf("bindings %+v", h)
	}
	// The same definition met in the other era is judged again.
	if r := b.take("s", bad, good); r.Skipped != 1 {
		t.Errorf("%s", r.Summary())
	}
}

func TestOurOwnToolsAreAlwaysThere(t *testing.T) {
	b := open(t, newMemory())
	plain := &gate.Caller{Name: "plain", Groups: gate.OnlyGroups()}
	finder := &gate.Caller{Name: "finder", Surface: gate.Find}
	for c, want := range map[*gate.Caller][]string{
		plain:                    {"gatehouse_find", "gatehouse_status"},
		admin:                    {"gatehouse_find", "gatehouse_status"},
		finder:                   {"gatehouse_call", "gatehouse_find", "gatehouse_status"},
		(*gate.Caller)(nil):      nil,
		{Dialect: gate.Portable}: {"gatehouse_find", "gatehouse_status"},
	} {
		names, tools := walk(t, b.Snapshot(), c, catalog.Era2026)
		equalStrings(t, fmt.Sprintf("%+v sees", c), names, want)
		for n, raw := range tools {
			var d struct {
				InputSchema json.RawMessage
				Annotations struct{ ReadOnlyHint *bool }
			}
			if err := json.Unmarshal(raw, &d); err != nil || d.Annotations.ReadOnlyHint == nil || *d.Annotations.ReadOnlyHint != (n != "gatehouse_call") {
				t.Errorf("%s: %s, %v", n, raw, err)
			}
		}
	}
	find := b.Snapshot().Tool(catalog.FindTool)
	if find.Arguments.Check([]byte(`{"words":"x","limit":20}`)) != nil || find.Arguments.Check([]byte(`{"limit":21}`)) == nil {
		t.Error("gatehouse_find does not check its arguments")
	}
}

func TestFindSurfaceListsOnlyOurOwn(t *testing.T) {
	b := open(t, newMemory(), server("a"))
	b.take("a", tool("x", ""))
	b.enable("mcp_a_x")
	finder := &gate.Caller{Name: "f", Admin: true, Groups: gate.EveryGroup(), Surface: gate.Find}
	names, _ := walk(t, b.Snapshot(), finder, catalog.Era2025)
	equalStrings(t, "listed", names, []string{"gatehouse_call", "gatehouse_find", "gatehouse_status"})
	if hits := b.Snapshot().Find(finder, "x", 3); len(hits) != 1 || hits[0].Name != "mcp_a_x" {
		t.Errorf("found %+v", hits)
	}
	if b.Snapshot().Served(finder, catalog.Era2025, "mcp_a_x") == nil {
		t.Error("a tool that may be called has no definition to show")
	}
}

func TestPortableCallersGetPortableSchemas(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	b.take("s", tool("flat", `"inputSchema":{"type":"object","$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`),
		tool("loop", `"inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/properties/a"}}}}`))
	b.enable("mcp_s")
	c := &gate.Caller{Name: "p", Admin: true, Groups: gate.EveryGroup(), Dialect: gate.Portable}
	names, tools := walk(t, b.Snapshot(), c, catalog.Era2026)
	equalStrings(t, "listed", remote(names), []string{"mcp_s_flat"})
	if !strings.HasSuffix(string(tools["mcp_s_flat"]), `"inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`) {
		t.Errorf("served %s", tools["mcp_s_flat"])
	}
	if reason, detail := gate.Offered(b.Snapshot().Tool("mcp_s_loop"), c, gate.Enforce); reason != gate.NotPortable || !strings.Contains(detail, "recursive") {
		t.Errorf("%s: %s", reason, detail)
	}
	if n := b.Snapshot().Counts(c); n.Offered != 1 || n.Withheld[gate.NotPortable] != 1 {
		t.Errorf("counts %+v", n)
	}
}

func TestNameBudgets(t *testing.T) {
	tight := &gate.Caller{Name: "tight", Admin: true, Groups: gate.EveryGroup(), NameBudget: 40, NamePrefix: 20}
	b := open(t, newMemory(), server("s"))
	b.Configure([]catalog.ServerSettings{server("s")}, []*gate.Caller{tight}, gate.Enforce)
	long := strings.Repeat("l", 45)
	r := b.take("s", tool("short", ""), tool("a_name_of_more_than_20", ""), tool(long, ""))
	var warned []string
	for _, l := range r.Lines {
		if l.What == catalog.LineWarning {
			warned = append(warned, l.Remote+": "+l.Text)
		}
	}
	equalStrings(t, "warnings", warned, []string{
		`a_name_of_more_than_20: its name has 28 characters, too many for the host of "tight"; give it an alias`,
		long + `: its name has 51 characters, too many for the host of "tight"; give it an alias`,
	})
	b.enable("mcp_s")
	names, _ := walk(t, b.Snapshot(), tight, catalog.Era2025)
	equalStrings(t, "listed", remote(names), []string{"mcp_s_short"})
	b.Configure([]catalog.ServerSettings{server("s")}, nil, gate.Enforce)
	for _, l := range b.take("s", tool(long, "")).Lines {
		if l.What == catalog.LineWarning && !strings.Contains(l.Text, "may cut it") {
			t.Errorf("warning %q", l.Text)
		}
	}
}

func TestVanishedToolsDoNotFillTheStore(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	b.take("s", tool("kept", ""))
	b.enable("mcp_s_kept")
	defer catalog.SetMaxVanished(100)()
	for round := range 4 {
		var tools []string
		for i := range 40 {
			tools = append(tools, tool(fmt.Sprintf("r%d_%d", round, i), ""))
		}
		b.take("s", tools...)
	}
	if n := len(b.store.tools); n != 40+100+1 {
		t.Errorf("%d tools are stored", n)
	}
	if got := b.availability("mcp_s_kept"); got != gate.Vanished {
		t.Errorf("what was enabled is %s", got)
	}
	b.take("s", "null", tool("never usable", `"inputSchema":{}`))
	b.take("s")
	for k := range b.store.state() {
		if strings.Contains(k, "never usable") {
			t.Error("what was never usable is kept after it went")
		}
	}
}

// Readers, imports, operators and reloads at once: every page anybody reads is
// one consistent state.
func TestEverythingAtOnce(t *testing.T) {
	b := open(t, newMemory(), server("a"), server("b"))
	var wg sync.WaitGroup
	generation := uint64(0)
	stop := b.Subscribe(func(old, new *catalog.Snapshot) {
		if new.Generation() != old.Generation()+1 || new.Generation() <= generation {
			t.Errorf("generation %d follows %d", new.Generation(), old.Generation())
		}
		generation = new.Generation()
	})
	defer stop()
	for _, id := range []gate.ServerID{"a", "b"} {
		wg.Go(func() {
			for i := range 20 {
				b.take(id, tool("x", ""), tool("y", ""), tool(fmt.Sprintf("z%d", i%3), ""))
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			b.Enable(nil, "mcp_*")
			b.Configure([]catalog.ServerSettings{server("a"), server("b")}, nil, gate.Enforce)
			b.Disable(nil, "mcp_b*")
		}
	})
	for _, c := range []*gate.Caller{admin, {Name: "n", Admin: true, Groups: gate.OnlyGroups("mcp_a")}} {
		wg.Go(func() {
			for range 100 {
				s := b.Snapshot()
				names, _ := walk(t, s, c, catalog.Era2026)
				for _, n := range names {
					if !s.Listed(c, gate.LocalName(n)) || s.Tool(gate.LocalName(n)).Availability != gate.Enabled {
						t.Errorf("%s is listed and not offered", n)
					}
				}
				s.Find(c, "x", 3)
			}
		})
	}
	wg.Wait()
}

func TestImportEndsWithItsContext(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the operator left")
	r, err := b.Import(ctx, "s", func(context.Context) (catalog.Listing, error) {
		cancel(gone)
		return listing(tool("a", "")), nil
	}, false)
	if !errors.Is(err, gone) || r.Refusal != "the import was given up: the operator left" || b.Snapshot().Tool("mcp_s_a") != nil {
		t.Errorf("%q, %v", r.Refusal, err)
	}
}

func TestVanishedToolsTakeNoNames(t *testing.T) {
	b := open(t, newMemory(), server("a", func(s *catalog.ServerSettings) { s.Alias = map[gate.RemoteName]string{"a.x": "x"} }))
	b.take("a", tool("a.x", ""))
	b.enable("mcp_a_x")
	r := b.take("a", tool("x", ""))
	if r.Skipped != 0 || r.Vanished != 1 {
		t.Errorf("%s: %q", r.Summary(), skipped(r))
	}
	if now := b.Snapshot().Tool("mcp_a_x"); now.Remote != "x" || now.Availability != gate.Disabled {
		t.Errorf("the name leads to %q, which is %s", now.Remote, now.Availability)
	}
	b.enable("mcp_a_x")
	if now := b.Snapshot().Tool("mcp_a_x"); now.Remote != "x" || now.Availability != gate.Enabled {
		t.Errorf("enabled, the name leads to %q, which is %s", now.Remote, now.Availability)
	}
}

// TestNothingChangesUnrecorded: a change that cannot be put on record does not
// happen.
func TestNothingChangesUnrecorded(t *testing.T) {
	b := open(t, newMemory(), server("docs"))
	b.take("docs", tool("a", ""))
	full := errors.New("disk full")
	if _, err := b.Enable(func(changes []catalog.Change) error {
		if len(changes) != 1 || changes[0].Kind != gate.KindEnable {
			t.Errorf("to be recorded: %+v", changes)
		}
		return full
	}, "mcp_docs_a"); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if tool := b.Snapshot().Tool("mcp_docs_a"); tool == nil || tool.Availability != gate.Disabled {
		t.Errorf("enabled without a record: %+v", tool)
	}
}
