package catalog

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"gatehouse/gate"
)

// Options are what a Catalog needs. Store is required.
type Options struct {
	Store   Store
	Logger  *slog.Logger     // nil: nothing is logged
	Now     func() time.Time // nil: time.Now
	Version string           // of this program, shown to callers as serverInfo
}

// A Catalog is the stored catalogue together with the configuration's part in
// it. It is safe for concurrent use.
type Catalog struct{ opts Options }

// ErrNoTool says that no tool has the name, or matches the pattern, asked for.
var ErrNoTool = errors.New("no such tool")

// Open reads the store. Until Configure is called no remote tool is offered.
func Open(o Options) (*Catalog, error) { return &Catalog{opts: o}, nil }

// Configure puts the configuration's part in place and swaps in a new snapshot.
// Callers are those whose hosts' name budgets an import should warn about.
func (c *Catalog) Configure(servers []ServerSettings, callers []*gate.Caller, e gate.Enforcement) {}

// Snapshot returns the current snapshot. It is a pointer read.
func (c *Catalog) Snapshot() *Snapshot { return nil }

// Subscribe has f called after each swap, one swap at a time and in order. f
// must not block and must not call a method of c that changes the catalogue.
// The function returned ends the subscription.
func (c *Catalog) Subscribe(f func(old, new *Snapshot)) (stop func()) { return func() {} }

// Import takes over what list returns for one server, or with dryRun says what
// it would take over. Imports of one server run one after the other. A refusal
// is a *RefusedError and changes nothing but the server's LastRefusal.
func (c *Catalog) Import(ctx context.Context, id gate.ServerID, list func(context.Context) (Listing, error), dryRun bool) (Report, error) {
	return Report{}, nil
}

// Servers returns what is kept of each server, in order of id.
func (c *Catalog) Servers() []StoredServer { return nil }

// A Change is what Enable or Disable did to one tool.
type Change struct {
	Name       gate.LocalName    `json:"name"`
	Server     gate.ServerID     `json:"server"`
	Remote     gate.RemoteName   `json:"remote_name"`
	Definition gate.Digest       `json:"definition"`
	Kind       gate.Kind         `json:"kind,omitempty"` // enable, accept_change or disable; empty: nothing had to be done
	From       gate.Availability `json:"from"`
	To         gate.Availability `json:"to"`
}

// Enable pins the tools that the names, globs or groups cover to the definition
// now in the catalogue; for a changed tool that accepts the change.
func (c *Catalog) Enable(patterns ...string) ([]Change, error) { return nil, nil }

// Disable removes the pins of the tools that the names, globs or groups cover.
func (c *Catalog) Disable(patterns ...string) ([]Change, error) { return nil, nil }

// Tools returns the entries that pattern covers (a name, a glob, a group, or
// "" for all) in order of name; those without a fitting name come last.
func (c *Catalog) Tools(pattern string) []Entry { return nil }

// Diff says how a tool differs from what was enabled.
func (c *Catalog) Diff(name gate.LocalName) (Difference, error) { return Difference{}, nil }
