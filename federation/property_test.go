package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/leak"
)

// TestListedCallableExplainable: for every pair of caller and tool, in both eras,
// tools/list shows the tool exactly if tools/call reaches the approval or the
// upstream, and explain says the same. Configurations, catalogues, enablements
// and changes are drawn at random.
func TestListedCallableExplainable(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Logf("seed %d", seed)
			world := newWorld(t, rand.New(rand.NewPCG(seed, 1)))
			for range 3 {
				world.check()
				world.change()
			}
			world.check()
		})
	}
}

// A world is a random configuration in force, with played upstreams.
type world struct {
	*rig
	random  *rand.Rand
	servers []*upstreamtest.Server
	callers []gate.CallerName
}

func newWorld(t *testing.T, random *rand.Rand) *world {
	w := &world{rig: &rig{t: t, tokens: map[string]string{}, dir: t.TempDir()}, random: random}
	var file strings.Builder
	file.WriteString("[network]\nprivate_hosts = [\"127.0.0.1\"]\n")
	profiles := upstreamtest.Profiles()
	for i := range 3 {
		server := upstreamtest.New(pick(random, profiles))
		server.Tools = w.tools()
		server.On("tools/call", func(x *upstreamtest.Exchange) { x.Result(upstreamtest.Text("done")) })
		w.servers = append(w.servers, server)
		up := httptest.NewServer(server)
		t.Cleanup(up.Close)
		fmt.Fprintf(&file, "[[server]]\nid = \"s%d\"\nurl = \"%s/mcp\"\n", i, up.URL)
		w.maybe(&file, 9, "data_class = %q\n", pick(random, gate.ClassNames()))
		w.maybe(&file, 2, "enabled = false\n")
		w.maybe(&file, 5, "requires_approval = false\n")
	}
	for i := range 8 {
		name := fmt.Sprintf("c%d", i)
		token := leak.Token()
		w.tokens[name] = token
		w.callers = append(w.callers, gate.CallerName(name))
		fmt.Fprintf(&file, "[[caller]]\nname = %q\ntoken = \"sha256:%s\"\nmax_calls_per_minute = 0\n", name, gate.DigestOf([]byte(token)))
		w.maybe(&file, 7, "admin = true\n")
		w.maybe(&file, 8, "trust_zone = %q\n", pick(random, gate.ZoneNames()))
		w.maybe(&file, 3, "groups = %s\n", pick(random, []string{`[]`, `["mcp_s0"]`, `["mcp_s0", "mcp_s2"]`}))
		w.maybe(&file, 3, "schema_dialect = \"portable\"\n")
		w.maybe(&file, 2, "name_budget = %d\n", 12+random.IntN(12))
		w.maybe(&file, 2, "surface = \"find\"\n")
	}
	w.open(file.String())
	w.change()
	return w
}

// tools draws a catalogue, with definitions that some dialects cannot carry.
func (w *world) tools() []upstreamtest.Tool {
	var tools []upstreamtest.Tool
	for i := range 1 + w.random.IntN(6) {
		name := fmt.Sprintf("t%d%s", i, strings.Repeat("x", w.random.IntN(6)))
		schema := pick(w.random, []string{
			`{"type":"object"}`,
			`{"type":"object","patternProperties":{"^x":{"type":"string"}}}`,
			`{"type":"object","$defs":{"a":{"type":"string"}},"properties":{"p":{"$ref":"#/$defs/a"}}}`,
			`{"type":"string"}`,
		})
		tools = append(tools, upstreamtest.Tool{Name: name, Definition: fmt.Sprintf(`{"name":%q,"description":"d%d","inputSchema":%s}`, name, w.random.IntN(3), schema)})
	}
	return tools
}

func (w *world) maybe(file *strings.Builder, tenths int, format string, args ...any) {
	if w.random.IntN(10) < tenths {
		fmt.Fprintf(file, format, args...)
	}
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// change imports what servers now list and enables or disables some of it.
func (w *world) change() {
	for i, server := range w.servers {
		if w.random.IntN(2) == 0 {
			server.Tools = w.tools()
		}
		// A refusal (no data class) is one of the states to check.
		_, _ = w.g.Import(context.Background(), gate.ServerID(fmt.Sprintf("s%d", i)), false)
	}
	for tool := range w.g.Catalog.Snapshot().Tools() {
		if tool.Own {
			continue
		}
		switch w.random.IntN(4) {
		case 0:
			_, _ = w.g.Disable(context.Background(), "test", string(tool.Name))
		case 1, 2:
			_, _ = w.g.Enable(context.Background(), "test", string(tool.Name))
		}
	}
}

func (w *world) check() {
	w.t.Helper()
	names := []gate.LocalName{"mcp_s0_never", "gatehouse_nothing"}
	for tool := range w.g.Catalog.Snapshot().Tools() {
		names = append(names, tool.Name)
	}
	for _, name := range w.callers {
		who := w.g.Caller(name)
		older, newer := w.listed(who, legacy), w.listed(who, modern)
		if !slices.Equal(older, newer) {
			w.t.Errorf("%s: the eras list different tools: %v and %v", name, older, newer)
		}
		for _, tool := range names {
			listed := slices.Contains(newer, string(tool))
			checks := w.g.Explain(tool, who, nil)
			allowed := true
			for _, c := range checks {
				if c.Number <= 6 && !c.Passed {
					allowed = false
				}
			}
			// On the find surface a tool is called through gatehouse_call and
			// listed by gatehouse_find; tools/list shows our own tools only.
			if who.Surface == gate.Everything || strings.HasPrefix(string(tool), "gatehouse_") {
				if listed != allowed {
					w.t.Errorf("%s, %s: listed %v, explained %v: %+v", name, tool, listed, allowed, checks)
				}
			}
			if tool == "gatehouse_call" && allowed {
				continue // stands for whatever it is given
			}
			for _, e := range []era{legacy, modern} {
				if reached := w.reached(who, tool, e); reached != allowed {
					w.t.Errorf("%s, %s, era %d: a call gets through %v, explained %v: %+v", name, tool, e, reached, allowed, checks)
				}
			}
		}
	}
}

// reached makes a call and reports whether it got as far as a question or an answer.
func (w *world) reached(who *gate.Caller, tool gate.LocalName, e era) bool {
	arguments := []byte(`{}`)
	if tool == "gatehouse_find" {
		arguments = []byte(`{"words":"x"}`)
	}
	r := w.g.invoke(context.Background(), &invocation{caller: who, name: tool, arguments: arguments, era: e, canAsk: true})
	return r.question != nil || r.verdict == gate.OK
}

func (w *world) listed(who *gate.Caller, e era) (names []string) {
	for cursor := ""; ; {
		page, err := w.g.Catalog.Snapshot().Page(who, e, cursor)
		if err != nil {
			w.t.Fatal(err)
		}
		var decoded struct {
			Tools      []struct{ Name string }
			NextCursor string
		}
		if err := json.Unmarshal(page, &decoded); err != nil {
			w.t.Fatal(err)
		}
		for _, tool := range decoded.Tools {
			names = append(names, tool.Name)
		}
		if cursor = decoded.NextCursor; cursor == "" {
			return names
		}
	}
}
