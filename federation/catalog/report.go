package catalog

import (
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/gate"
)

// A Listing is what one walk over all pages of a server's tools/list gave.
type Listing struct {
	Tools []json.RawMessage // every element of every page, in order, as received
	Era   string            // the protocol version it was spoken in
	Legs  []gate.Leg
	Pages int
}

// A Report says what an import did, or with DryRun would have done.
type Report struct {
	Server    gate.ServerID `json:"server"`
	Time      time.Time     `json:"time"`
	DryRun    bool          `json:"dry_run,omitempty"`
	Refusal   string        `json:"refusal,omitempty"` // the import was refused and nothing changed
	Imported  int           `json:"imported"`          // new, changed and unchanged together
	New       int           `json:"new"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Skipped   int           `json:"skipped"`
	Vanished  int           `json:"vanished"`
	Pages     int           `json:"pages"`
	Era       string        `json:"era,omitempty"`
	Lines     []ReportLine  `json:"lines,omitempty"` // in the order of the listing, vanished ones last
	Legs      []gate.Leg    `json:"legs,omitempty"`
}

// The things a ReportLine says.
const (
	LineNew      = "new"
	LineChanged  = "changed"
	LineSkipped  = "skipped"
	LineVanished = "vanished"
	LineWarning  = "warning" // kept, but somebody should know
)

// A ReportLine is about one tool. Its texts are safe to print.
type ReportLine struct {
	What   string         `json:"what"`
	Name   gate.LocalName `json:"name,omitempty"` // empty when it has none that fits
	Remote string         `json:"remote_name,omitempty"`
	Index  int            `json:"index"` // in the listing, from 0; -1 for a vanished tool
	Text   string         `json:"text,omitempty"`
}

// Summary is one line: "tickets: 12 imported (2 new, 1 changed), 3 skipped, 1 vanished".
func (r Report) Summary() string {
	if r.Refusal != "" {
		return fmt.Sprintf("%s: refused: %s", r.Server, r.Refusal)
	}
	return fmt.Sprintf("%s: %d imported (%d new, %d changed), %d skipped, %d vanished",
		r.Server, r.Imported, r.New, r.Changed, r.Skipped, r.Vanished)
}

// A RefusedError says why an import changed nothing. Cause is the listing's
// error when it was the listing that failed.
type RefusedError struct {
	Server gate.ServerID
	Reason string
	Cause  error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("server %q: %s", string(e.Server), e.Reason)
}

// Unwrap gives the listing's error.
func (e *RefusedError) Unwrap() error { return e.Cause }
