package catalog

import (
	"fmt"
	"maps"
	"path"
	"strings"
	"time"

	"gatehouse/gate"
)

// A Change is what Enable or Disable did to one tool.
type Change struct {
	Name       gate.LocalName    `json:"name"`
	Server     gate.ServerID     `json:"server"`
	Remote     gate.RemoteName   `json:"remote_name"`
	Definition gate.Digest       `json:"definition"`
	Kind       gate.Kind         `json:"kind,omitempty"` // enable, accept_change or disable; empty: nothing had to be done
	From       gate.Availability `json:"from"`
	To         gate.Availability `json:"to"`
	Refused    string            `json:"refused,omitempty"` // why it was left as it is
}

// Enable pins the tools that the names, globs or groups cover to the definition
// now in the catalogue, and to the place it comes from; for a changed tool that
// accepts the change. Of tools that a glob or a group covers, those that cannot
// be enabled are left as they are. A name that cannot be is an error, and then
// nothing is enabled at all.
func (c *Catalog) Enable(record Recorder, patterns ...string) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pin(patterns, c.enabling, record)
}

// Disable removes the pins of the tools that the names, globs or groups cover.
func (c *Catalog) Disable(record Recorder, patterns ...string) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pin(patterns, c.disabling, record)
}

// A Recorder puts changes on record before they are in force; its error keeps
// them from happening. Nil records nothing.
type Recorder func([]Change) error

// pin lets alter decide about each covered tool, then writes one transaction a
// server and swaps the snapshot once.
func (c *Catalog) pin(patterns []string, alter func(*entry, time.Time) (*StoredPin, Change), put Recorder) ([]Change, error) {
	chosen, named, err := c.current.Load().choose(patterns)
	if err != nil {
		return nil, err
	}
	now := c.now()
	var out []Change
	altered := make(map[gate.ServerID]map[gate.RemoteName]*record)
	for _, e := range chosen {
		pin, change := alter(e, now)
		if change.Refused != "" && named[e.tool.Name] {
			return nil, fmt.Errorf("%s: %s", e.tool.Name, change.Refused)
		}
		out = append(out, change)
		if change.Kind == "" {
			continue
		}
		if altered[e.tool.Server] == nil {
			altered[e.tool.Server] = make(map[gate.RemoteName]*record)
		}
		next := *e.rec
		next.Pin = pin
		altered[e.tool.Server][e.tool.Remote] = &next
	}
	if len(altered) == 0 {
		return out, nil
	}
	if put != nil {
		if err := put(out); err != nil {
			return nil, err
		}
	}
	err = c.savePins(altered)
	c.swap()
	return out, err
}

func (c *Catalog) savePins(altered map[gate.ServerID]map[gate.RemoteName]*record) error {
	for id, records := range altered {
		var put []StoredTool
		for _, name := range sortedKeys(records) {
			put = append(put, records[name].StoredTool)
		}
		if err := c.store.Save(c.serverRecord(id), put, nil); err != nil {
			return fmt.Errorf("the state could not be written, so tools of server %q stay as they were: %w", string(id), err)
		}
		tools := maps.Clone(c.tools[id])
		maps.Copy(tools, records)
		c.tools[id] = tools
	}
	return nil
}

func (c *Catalog) enabling(e *entry, now time.Time) (*StoredPin, Change) {
	change := e.change()
	settings := c.settings[e.tool.Server]
	switch a := e.tool.Availability; {
	case e.tool.Own:
		change.Refused = "it is our own, and always enabled"
		return nil, change
	case settings == nil || a == gate.Skipped || a == gate.Vanished || a == gate.Unsupplied || e.rec.ready == nil:
		change.Refused = firstOf(e.detail, "it cannot be enabled")
		return nil, change
	}
	pin := &StoredPin{Digest: e.rec.Digest, URL: settings.URL, Identity: settings.identity(), Time: now}
	switch {
	case e.rec.Pin == nil:
		change.Kind = gate.KindEnable
	case samePlace(e.rec.Pin, pin) && e.rec.Pin.Digest == pin.Digest:
		return nil, change
	default:
		change.Kind = gate.KindAcceptChange
	}
	if change.To = gate.Enabled; !settings.Enabled {
		change.To = gate.ServerDisabled
	}
	return pin, change
}

func (c *Catalog) disabling(e *entry, _ time.Time) (*StoredPin, Change) {
	change := e.change()
	switch {
	case e.tool.Own:
		change.Refused = "it is our own, and always enabled"
	case e.rec.Pin != nil:
		change.Kind = gate.KindDisable
		if a := e.tool.Availability; a == gate.Enabled || a == gate.Changed {
			change.To = gate.Disabled
		}
	}
	return nil, change
}

func (e *entry) change() Change {
	return Change{Name: e.tool.Name, Server: e.tool.Server, Remote: e.tool.Remote, Definition: e.tool.Definition,
		From: e.tool.Availability, To: e.tool.Availability}
}

func samePlace(a, b *StoredPin) bool { return a.URL == b.URL && a.Identity == b.Identity }

// availability is what a tool's pin and the configuration make of it, and why.
// nameReason says why it has no name of its own, if so.
func availability(s *ServerSettings, r *record, nameReason string) (gate.Availability, string) {
	switch {
	case s == nil:
		return gate.ServerDisabled, "its server is not in the configuration"
	case !s.Enabled:
		return gate.ServerDisabled, "its server's table says enabled = false"
	}
	if reason := unsupplied(s); reason != "" {
		return gate.Unsupplied, reason
	}
	pin := r.Pin
	switch {
	case r.Vanished:
		return gate.Vanished, "the server stopped listing it; last seen " + day(r.LastSeen)
	case r.Refusal != "" || nameReason != "":
		return gate.Skipped, oneLine(firstOf(r.Refusal, nameReason), 500)
	case r.ready == nil:
		return gate.Skipped, "its stored definition cannot be read; import its server again"
	case pin == nil:
		return gate.Disabled, "nobody enabled it"
	case pin.Digest != r.Digest:
		return gate.Changed, "its definition is not the one enabled on " + day(pin.Time)
	case pin.URL != s.URL:
		return gate.Changed, "its server's url is not the one it was enabled at on " + day(pin.Time)
	case pin.Identity != s.identity():
		return gate.Changed, "we authenticate to its server in another way than when it was enabled on " + day(pin.Time)
	}
	return gate.Enabled, ""
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// choose returns the entries that the patterns cover, in order of name, and
// which of them were named outright.
func (s *Snapshot) choose(patterns []string) (chosen []*entry, named map[gate.LocalName]bool, err error) {
	named = make(map[gate.LocalName]bool)
	wanted := make(map[*entry]bool)
	for _, p := range patterns {
		if e := s.byName[gate.LocalName(p)]; e != nil {
			named[e.tool.Name], wanted[e] = true, true
			continue
		}
		found := false
		for _, e := range s.entries {
			if covers(p, e) {
				wanted[e], found = true, true
			}
		}
		if !found {
			return nil, nil, fmt.Errorf("%q: %w; `gatehouse tools list` shows all names", p, ErrNoTool)
		}
	}
	for _, e := range s.entries {
		if wanted[e] {
			chosen = append(chosen, e)
		}
	}
	return chosen, named, nil
}

// covers reports whether a glob or a group covers an entry.
func covers(pattern string, e *entry) bool {
	if pattern == e.tool.Group && e.tool.Group != "" {
		return true
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return false
	}
	ok, err := path.Match(pattern, string(e.tool.Name))
	return ok && err == nil
}
