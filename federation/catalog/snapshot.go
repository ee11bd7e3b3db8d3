package catalog

import (
	"encoding/json"
	"errors"
	"iter"
	"time"

	"gatehouse/gate"
)

// An Era is the family of protocol revisions that a result is written for.
type Era uint8

// The eras: with an initialize handshake, and with self-describing requests.
const (
	Era2025 Era = iota
	Era2026
)

// PageSize is how many tools one page of tools/list holds.
const PageSize = 500

// ErrStaleCursor says that a cursor is not one of this view's, or of an earlier
// state of it.
var ErrStaleCursor = errors.New("the cursor is not valid any more; list from the start")

// An Entry is one tool as operators see it. Its texts are safe to print.
type Entry struct {
	*gate.Tool                  // Name is empty when no name fits
	Detail      string          // why it is not offered, or what to know about it
	Title       string          // escaped
	Description string          // as the server wrote it, escaped
	Raw         json.RawMessage // the definition as received
	Warnings    []string        // what an import warned about
	FirstSeen   time.Time
	LastSeen    time.Time
	EnabledAt   time.Time // zero: not enabled
}

// A Snapshot is one consistent state of catalogue and configuration. It is
// immutable; what callers see is encoded when it is first asked for.
type Snapshot struct{}

var _ gate.Snapshot = (*Snapshot)(nil)

// Tool returns the tool of that name, whatever its availability, or nil.
func (s *Snapshot) Tool(name gate.LocalName) *gate.Tool { return nil }

// Generation counts the snapshots of this process.
func (s *Snapshot) Generation() uint64 { return 0 }

// Tools iterates over every tool that has a local name, our own included, in
// order of name.
func (s *Snapshot) Tools() iter.Seq[*gate.Tool] { return func(func(*gate.Tool) bool) {} }

// Entry returns what operators see of one tool.
func (s *Snapshot) Entry(name gate.LocalName) (Entry, bool) { return Entry{}, false }

// Page returns a whole result object of tools/list for c, encoded beforehand.
// The empty cursor asks for the first page. The bytes must not be changed. A
// cursor that is not of this view and content gives ErrStaleCursor.
func (s *Snapshot) Page(c *gate.Caller, era Era, cursor string) ([]byte, error) { return nil, nil }

// Listed reports whether tools/list shows c the tool. It is true for exactly
// the tools of all pages.
func (s *Snapshot) Listed(c *gate.Caller, name gate.LocalName) bool { return false }

// SameView reports whether tools/list says the same to c in both snapshots.
func (s *Snapshot) SameView(c *gate.Caller, other *Snapshot) bool { return false }

// Served returns the tool's definition as Page writes it for c, or nil when c
// is not offered it.
func (s *Snapshot) Served(c *gate.Caller, era Era, name gate.LocalName) []byte { return nil }

// A Hit is one result of a search. Description is as it is served.
type Hit struct {
	Name        gate.LocalName
	Title       string
	Description string
	Score       float64
}

// Find searches the remote tools that c may call by words: names, titles,
// descriptions and parameter names. The best hit comes first; equal ones are in
// order of name.
func (s *Snapshot) Find(c *gate.Caller, words string, limit int) []Hit { return nil }

// Counts says how many remote tools there are for c.
type Counts struct {
	Offered  int
	Withheld map[gate.Reason]int // by the reason, for those that exist and are not offered
}

// Counts counts c's view.
func (s *Snapshot) Counts(c *gate.Caller) Counts { return Counts{} }
