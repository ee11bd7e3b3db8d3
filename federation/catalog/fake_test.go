package catalog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// A memory keeps the catalogue as JSON, so that what does not survive being
// written down does not survive in a test either.
type memory struct {
	mu      sync.Mutex
	servers map[gate.ServerID][]byte
	tools   map[string][]byte
	fail    error
	saves   int
}

func newMemory() *memory {
	return &memory{servers: make(map[gate.ServerID][]byte), tools: make(map[string][]byte)}
}

func (m *memory) Load() (servers []catalog.StoredServer, tools []catalog.StoredTool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.servers {
		var s catalog.StoredServer
		if err := json.Unmarshal(b, &s); err != nil {
			return nil, nil, err
		}
		servers = append(servers, s)
	}
	for _, b := range m.tools {
		var t catalog.StoredTool
		if err := json.Unmarshal(b, &t); err != nil {
			return nil, nil, err
		}
		tools = append(tools, t)
	}
	return servers, tools, nil
}

func (m *memory) Save(s catalog.StoredServer, put []catalog.StoredTool, drop []gate.RemoteName) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	m.saves++
	b, err := encode(s)
	if err != nil {
		return err
	}
	m.servers[s.ID] = b
	for _, t := range put {
		if t.Server != s.ID {
			return fmt.Errorf("tool %q of server %q is saved with %q", t.Remote, t.Server, s.ID)
		}
		if b, err = encode(t); err != nil {
			return err
		}
		m.tools[string(s.ID)+"\x00"+string(t.Remote)] = b
	}
	for _, name := range drop {
		delete(m.tools, string(s.ID)+"\x00"+string(name))
	}
	return nil
}

// encode leaves definitions as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func (m *memory) state() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]string)
	for k, b := range m.servers {
		out["server "+string(k)] = string(b)
	}
	for k, b := range m.tools {
		out["tool "+k] = string(b)
	}
	return out
}

// A bench is a catalogue with its store and a clock that moves a minute with
// each look.
type bench struct {
	*catalog.Catalog
	t     testing.TB
	store *memory
}

func open(t testing.TB, store *memory, servers ...catalog.ServerSettings) *bench {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c, err := catalog.Open(catalog.Options{Store: store, Version: "1.0", Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Minute)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.Configure(servers, nil, gate.Enforce)
	return &bench{c, t, store}
}

func server(id gate.ServerID, alter ...func(*catalog.ServerSettings)) catalog.ServerSettings {
	s := catalog.ServerSettings{ID: id, Name: "Server " + string(id), URL: "https://" + string(id) + ".example.org/mcp",
		Enabled: true, Class: gate.EditorContent}
	for _, f := range alter {
		f(&s)
	}
	return s
}

func listing(tools ...string) catalog.Listing {
	l := catalog.Listing{Era: "2026-07-28", Pages: 1}
	for _, t := range tools {
		l.Tools = append(l.Tools, json.RawMessage(t))
	}
	return l
}

func lists(l catalog.Listing) func(context.Context) (catalog.Listing, error) {
	return func(context.Context) (catalog.Listing, error) { return l, nil }
}

// take imports the tools, which must succeed.
func (b *bench) take(id gate.ServerID, tools ...string) catalog.Report {
	b.t.Helper()
	r, err := b.Import(b.t.Context(), id, lists(listing(tools...)), false)
	if err != nil {
		b.t.Fatalf("import of %s: %v", id, err)
	}
	return r
}

func (b *bench) enable(patterns ...string) []catalog.Change {
	b.t.Helper()
	changes, err := b.Enable(nil, patterns...)
	if err != nil {
		b.t.Fatalf("enable %q: %v", patterns, err)
	}
	return changes
}

func (b *bench) availability(name gate.LocalName) gate.Availability {
	b.t.Helper()
	t := b.Snapshot().Tool(name)
	if t == nil {
		b.t.Fatalf("no tool %s", name)
	}
	return t.Availability
}

var admin = &gate.Caller{Name: "admin", Admin: true, Zone: gate.Local, Groups: gate.EveryGroup()}

// walk reads all pages as a client would and returns the tools by name.
func walk(t testing.TB, s *catalog.Snapshot, c *gate.Caller, era catalog.Era) (names []string, tools map[string]json.RawMessage) {
	t.Helper()
	tools = make(map[string]json.RawMessage)
	cursor := ""
	for {
		raw, err := s.Page(c, era, cursor)
		if err != nil {
			t.Fatalf("page %q: %v", cursor, err)
		}
		var page struct {
			Tools      []json.RawMessage
			NextCursor *string
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			t.Fatalf("page %q is no JSON: %v\n%s", cursor, err, raw)
		}
		for _, raw := range page.Tools {
			var tool struct{ Name string }
			if err := json.Unmarshal(raw, &tool); err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			tools[tool.Name] = raw
		}
		if page.NextCursor == nil {
			break
		}
		cursor = *page.NextCursor
	}
	if !slices.IsSorted(names) {
		t.Errorf("names are not in order: %q", names)
	}
	return names, tools
}

// remote leaves our own tools out of a listing.
func remote(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.HasPrefix(n, "gatehouse_") })
}

// skipped returns the report's reasons by remote name, or by "#index".
func skipped(r catalog.Report) map[string]string {
	out := make(map[string]string)
	for _, l := range r.Lines {
		if l.What != catalog.LineSkipped {
			continue
		}
		key := l.Remote
		if key == "" {
			key = fmt.Sprintf("#%d", l.Index)
		}
		out[key] = l.Text
	}
	return out
}

func tool(name, rest string) string {
	if rest == "" {
		rest = `"inputSchema":{"type":"object"}`
	}
	return fmt.Sprintf(`{"name":%q,%s}`, name, rest)
}

func equalStrings(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var errDown = errors.New(`server "docs": connection refused`)
