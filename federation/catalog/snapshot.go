package catalog

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/gate"
)

// A Snapshot is one consistent state of catalogue and configuration. It is
// immutable; what callers see is encoded when it is first asked for.
type Snapshot struct {
	generation  uint64
	enforcement gate.Enforcement
	companion   any // what ConfigureWith was given
	info        []byte

	entries  []*entry // those with a name, our own included, in order of name
	nameless []*entry // those without
	byName   map[gate.LocalName]*entry

	views viewCache
	index func() *index // for searches, made by the first of them
}

var _ gate.Snapshot = (*Snapshot)(nil)

// An entry is one tool in a snapshot.
type entry struct {
	tool   *gate.Tool
	rec    *record // nil for our own tools
	detail string
	place  int // in Snapshot.entries
}

// newSnapshot makes the snapshot of c's present records under the given
// settings. c.mu is held.
func newSnapshot(c *Catalog, settings map[gate.ServerID]*ServerSettings, generation uint64) *Snapshot {
	s := &Snapshot{generation: generation, enforcement: c.enforcement, companion: c.companion, info: c.info}
	var records []*record
	var keys []toolKey
	for _, tools := range c.tools {
		for _, r := range tools {
			records = append(records, r)
			if !r.Vanished {
				keys = append(keys, toolKey{r.Server, r.Remote})
			}
		}
	}
	// Listed tools come first: one that vanished never takes a name from them.
	slices.SortFunc(records, func(a, b *record) int {
		if a.Vanished != b.Vanished {
			if a.Vanished {
				return 1
			}
			return -1
		}
		if n := strings.Compare(string(a.Server), string(b.Server)); n != 0 {
			return n
		}
		return strings.Compare(string(a.Remote), string(b.Remote))
	})
	names := nameTools(keys, settings)
	s.byName = make(map[gate.LocalName]*entry, len(records)+len(ownTools))
	for _, own := range ownTools {
		s.add(own.entry())
	}
	for _, r := range records {
		n, listed := names[toolKey{r.Server, r.Remote}]
		if !listed {
			n = nameTools([]toolKey{{r.Server, r.Remote}}, settings)[toolKey{r.Server, r.Remote}]
		}
		s.add(newEntry(settings[r.Server], r, n))
	}
	slices.SortStableFunc(s.entries, func(a, b *entry) int { return strings.Compare(string(a.tool.Name), string(b.tool.Name)) })
	for i, e := range s.entries {
		e.place = i
	}
	s.index = sync.OnceValue(func() *index { return newIndex(s.entries) })
	return s
}

func (s *Snapshot) add(e *entry) {
	if e.tool.Name == "" {
		s.nameless = append(s.nameless, e)
		return
	}
	s.entries = append(s.entries, e)
	if s.byName[e.tool.Name] == nil {
		s.byName[e.tool.Name] = e
	}
}

func newEntry(settings *ServerSettings, r *record, n localNaming) *entry {
	t := &gate.Tool{Name: n.name, Server: r.Server, Remote: r.Remote, Group: groupOf(r.Server), Definition: r.Digest, ServerName: string(r.Server)}
	e := &entry{tool: t, rec: r}
	t.Availability, e.detail = availability(settings, r, n.reason)
	if settings != nil {
		t.ServerName, t.Origin, t.Class = settings.display(), settings.origin(), settings.Class
		t.ApprovalWaived, t.ApprovalMemory, t.ServerCallsPerMinute = settings.ApprovalWaived, settings.ApprovalMemory, settings.CallsPerMinute
	}
	if r.ready != nil {
		t.Arguments, t.ParamHeaders, t.Unportable = r.ready.arguments, r.ready.headers, r.ready.unportable
		t.Structured = r.ready.structured
	}
	return e
}

// Tool returns the tool of that name, whatever its availability, or nil.
func (s *Snapshot) Tool(name gate.LocalName) *gate.Tool {
	if e := s.byName[name]; e != nil {
		return e.tool
	}
	return nil
}

// Detail says why the tool of that name is not offered, or what to know about
// it; "" when there is nothing to say.
func (s *Snapshot) Detail(name gate.LocalName) string {
	if e := s.byName[name]; e != nil {
		return e.detail
	}
	return ""
}

// Companion is what ConfigureWith was given with the settings that this
// snapshot was made of.
func (s *Snapshot) Companion() any { return s.companion }

// Generation counts the snapshots of this process.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Enforcement is the one that views were made with.
func (s *Snapshot) Enforcement() gate.Enforcement { return s.enforcement }

// Tools iterates over every tool that has a local name, our own included, in
// order of name. Tools that want the same name come one after the other.
func (s *Snapshot) Tools() iter.Seq[*gate.Tool] {
	return func(yield func(*gate.Tool) bool) {
		for _, e := range s.entries {
			if !yield(e.tool) {
				return
			}
		}
	}
}

// Size counts the tools of servers, also those without a name, and how many of
// them are enabled.
func (s *Snapshot) Size() (tools, enabled int) {
	for _, entries := range [][]*entry{s.entries, s.nameless} {
		for _, e := range entries {
			if e.tool.Own {
				continue
			}
			tools++
			if e.tool.Availability == gate.Enabled {
				enabled++
			}
		}
	}
	return tools, enabled
}

// An Entry is one tool as operators see it. Its texts are safe to print.
type Entry struct {
	*gate.Tool                  // Name is empty when no name fits
	RemoteText  string          // the remote name, escaped
	Detail      string          // why it is not offered, or what to know about it
	Title       string          // escaped
	Description string          // as the server wrote it, escaped
	Raw         json.RawMessage // the definition as received
	Warnings    []string        // what an import warned about
	FirstSeen   time.Time
	LastSeen    time.Time
	EnabledAt   time.Time // zero: not enabled
}

// Entry returns what operators see of one tool.
func (s *Snapshot) Entry(name gate.LocalName) (Entry, bool) {
	e := s.byName[name]
	if e == nil {
		return Entry{}, false
	}
	return e.describe(), true
}

// Entries returns the entries that pattern covers (a name, a glob, a group, or
// "" for all) in order of name; only "" covers those without a fitting name,
// which come last.
func (s *Snapshot) Entries(pattern string) []Entry {
	var out []Entry
	for _, e := range s.entries {
		if pattern == "" || string(e.tool.Name) == pattern || covers(pattern, e) {
			out = append(out, e.describe())
		}
	}
	if pattern == "" {
		for _, e := range s.nameless {
			out = append(out, e.describe())
		}
	}
	return out
}

// Tools returns the entries of the current snapshot that pattern covers.
func (c *Catalog) Tools(pattern string) []Entry { return c.Snapshot().Entries(pattern) }

func (e *entry) describe() Entry {
	out := Entry{Tool: e.tool, RemoteText: oneLine(string(e.tool.Remote), maxRemoteName), Detail: e.detail}
	raw := e.raw()
	out.Raw = raw
	if d, err := readDefinition(raw); err == nil {
		out.Title, _ = visible(d.title)
		out.Description, _ = visible(d.description)
	}
	if e.rec != nil {
		out.Warnings, out.FirstSeen, out.LastSeen = e.rec.Warnings, e.rec.FirstSeen, e.rec.LastSeen
		if e.rec.Pin != nil {
			out.EnabledAt = e.rec.Pin.Time
		}
	}
	return out
}

// raw is the definition as received, or ours.
func (e *entry) raw() []byte {
	if e.rec == nil {
		return ownByName[e.tool.Name].definition
	}
	return e.rec.Definition
}

// form is how the tool is written for one dialect and era. Two callers may
// write it at once; both get the same.
func (e *entry) form(d gate.Dialect, era Era) *form {
	if e.rec == nil {
		return &form{head: ownByName[e.tool.Name].definition}
	}
	last := &e.rec.ready.written[d][era]
	if w := last.Load(); w != nil && w.name == e.tool.Name && w.server == e.tool.ServerName {
		return w.form
	}
	f := e.write(d, era)
	last.Store(&written{f, e.tool.Name, e.tool.ServerName})
	return f
}

func (e *entry) write(dialect gate.Dialect, era Era) *form {
	d, err := readDefinition(e.rec.Definition)
	if err != nil {
		return &form{} // unreachable: a tool is offered only when its definition could be read
	}
	var input []byte
	if dialect == gate.Portable {
		input, _ = portable(d.input)
	}
	return d.serve(e.tool.Name, e.tool.ServerName, era, input)
}
