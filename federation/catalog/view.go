package catalog

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/gate"
)

// A viewKey is all of a caller that decides what they see. Callers with the
// same key share one view.
type viewKey struct {
	nobody  bool
	admin   bool
	zone    gate.Zone
	dialect gate.Dialect
	surface gate.Surface
	room    int    // characters that a name may have, 0: any number
	groups  string // sorted, "*" for every group
}

func keyOf(c *gate.Caller) viewKey {
	if c == nil {
		return viewKey{nobody: true}
	}
	k := viewKey{admin: c.Admin, zone: c.Zone, dialect: c.Dialect, surface: c.Surface}
	if c.NameBudget > 0 {
		k.room = max(1, c.NameBudget-c.NamePrefix)
	}
	if k.groups = "*"; !c.Groups.Every() {
		names := c.Groups.Names()
		slices.Sort(names)
		k.groups = strings.Join(names, " ")
	}
	return k
}

// A view is what the callers of one key see of one snapshot.
type view struct {
	key     viewKey
	offered []*entry // what they may call, in order of name
	listed  []*entry // what tools/list shows of it
	content [sha256.Size]byte

	once  [2]sync.Once // by era
	pages [2]*pages
}

// Bounds on the views kept for one snapshot. OIDC callers can have any
// combination of groups, so their number has no bound of its own.
const (
	maxViews     = 256
	maxPageBytes = 64 << 20
)

// A viewCache keeps views until there are too many; then it starts afresh.
// Views are made again when they are asked for, so that only costs time.
type viewCache struct {
	mu    sync.RWMutex
	views map[viewKey]*view
	bytes atomic.Int64 // of encoded pages
}

func (s *Snapshot) view(c *gate.Caller) *view {
	key := keyOf(c)
	s.views.mu.RLock()
	v := s.views.views[key]
	s.views.mu.RUnlock()
	if v != nil {
		return v
	}
	v = s.newView(key, c)
	s.views.mu.Lock()
	defer s.views.mu.Unlock()
	if first := s.views.views[key]; first != nil {
		return first
	}
	if s.views.views == nil || len(s.views.views) >= maxViews || s.views.bytes.Load() > maxPageBytes {
		s.views.views = make(map[viewKey]*view)
		s.views.bytes.Store(0)
	}
	s.views.views[key] = v
	return v
}

func (s *Snapshot) newView(key viewKey, c *gate.Caller) *view {
	v := &view{key: key}
	sum := sha256.New()
	for _, e := range s.entries {
		if reason, _ := gate.Offered(e.tool, c, s.enforcement); reason != "" {
			continue
		}
		v.offered = append(v.offered, e)
		if !e.listedOn(key.surface) {
			continue
		}
		v.listed = append(v.listed, e)
		sum.Write([]byte(e.tool.Name))
		sum.Write([]byte{0})
		sum.Write(e.tool.Definition[:])
		sum.Write([]byte(e.tool.ServerName))
		sum.Write([]byte{0})
	}
	sum.Sum(v.content[:0])
	return v
}

// listedOn reports whether tools/list shows an offered tool on a surface. Both
// show our own tools; gatehouse_call only makes sense where it is needed.
func (e *entry) listedOn(s gate.Surface) bool {
	if own := ownByName[e.tool.Name]; own != nil {
		return own.surface == gate.Everything || own.surface == s
	}
	return s == gate.Everything
}

func find(entries []*entry, name gate.LocalName) *entry {
	i, ok := slices.BinarySearchFunc(entries, name, func(e *entry, n gate.LocalName) int { return strings.Compare(string(e.tool.Name), string(n)) })
	if !ok {
		return nil
	}
	return entries[i]
}

// Listed reports whether tools/list shows c the tool. It is true for exactly
// the tools of all pages.
func (s *Snapshot) Listed(c *gate.Caller, name gate.LocalName) bool {
	return find(s.view(c).listed, name) != nil
}

// SameView reports whether tools/list says the same to c in both snapshots.
func (s *Snapshot) SameView(c *gate.Caller, other *Snapshot) bool {
	return s == other || s.SameViewAs(c, other, c)
}

// SameViewAs is SameView for a caller whose rights changed between the two: c
// has those of s, before those of other.
func (s *Snapshot) SameViewAs(c *gate.Caller, other *Snapshot, before *gate.Caller) bool {
	now, then := s.view(c), other.view(before)
	return now.content == then.content && now.key.dialect == then.key.dialect
}

// Served returns the tool's definition as it is written for c, or nil when c is
// not offered it.
func (s *Snapshot) Served(c *gate.Caller, era Era, name gate.LocalName) []byte {
	e := find(s.view(c).offered, name)
	if e == nil {
		return nil
	}
	f := e.form(c.Dialect, era)
	return f.appendTo(make([]byte, 0, f.size()))
}

// Counts says how many remote tools there are for c.
type Counts struct {
	Offered  int
	Withheld map[gate.Reason]int // by the reason, for those that exist and are not offered
}

// Counts counts c's view.
func (s *Snapshot) Counts(c *gate.Caller) Counts {
	n := Counts{Withheld: make(map[gate.Reason]int)}
	for _, e := range s.entries {
		if e.tool.Own {
			continue
		}
		if reason, _ := gate.Offered(e.tool, c, s.enforcement); reason != "" {
			n.Withheld[reason]++
		} else {
			n.Offered++
		}
	}
	return n
}
