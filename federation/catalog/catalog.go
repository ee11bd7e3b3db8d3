package catalog

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
// it. It is safe for concurrent use: reading takes no lock, changes are made
// one at a time.
type Catalog struct {
	store Store
	log   *slog.Logger
	now   func() time.Time
	info  []byte // the serverInfo object of results

	current atomic.Pointer[Snapshot]

	// mu guards all below. It is held while the store writes, so that the order
	// of snapshots is the order of what is durable; it is never held while a
	// server is listed or a schema compiled.
	mu          sync.Mutex
	servers     map[gate.ServerID]StoredServer
	tools       map[gate.ServerID]map[gate.RemoteName]*record // inner maps are replaced, not changed
	settings    map[gate.ServerID]*ServerSettings
	callers     []*gate.Caller
	enforcement gate.Enforcement
	companion   any
	importing   map[gate.ServerID]chan struct{}
	subscribers []*subscriber
}

type subscriber struct{ notify func(old, new *Snapshot) }

// ErrNoTool says that no tool has the name, or matches the pattern, asked for.
var ErrNoTool = errors.New("no such tool")

// Open reads the store. Until Configure is called no remote tool is offered.
func Open(o Options) (*Catalog, error) {
	if o.Store == nil {
		return nil, errors.New("the catalogue has no store")
	}
	c := &Catalog{store: o.Store, log: o.Logger, now: o.Now, info: serverInfo(o.Version),
		servers: make(map[gate.ServerID]StoredServer), tools: make(map[gate.ServerID]map[gate.RemoteName]*record),
		importing: make(map[gate.ServerID]chan struct{})}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	servers, tools, err := o.Store.Load()
	if err != nil {
		return nil, fmt.Errorf("the stored catalogue cannot be read: %w", err)
	}
	for _, s := range servers {
		c.servers[s.ID] = s
	}
	for _, r := range restoreAll(tools) {
		if c.tools[r.Server] == nil {
			c.tools[r.Server] = make(map[gate.RemoteName]*record)
		}
		c.tools[r.Server][r.Remote] = r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.swap()
	return c, nil
}

// Configure puts the configuration's part in place and swaps in a new snapshot.
// Callers are those whose hosts' name budgets an import should warn about.
func (c *Catalog) Configure(servers []ServerSettings, callers []*gate.Caller, e gate.Enforcement) {
	c.ConfigureWith(servers, callers, e, nil)
}

// ConfigureWith is Configure for whoever has more to swap than a catalogue:
// from now on every snapshot carries companion, so that one pointer read gives
// both as one configuration made them.
func (c *Catalog) ConfigureWith(servers []ServerSettings, callers []*gate.Caller, e gate.Enforcement, companion any) {
	settings := settingsByID(servers)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settings, c.callers, c.enforcement, c.companion = settings, slices.Clone(callers), e, companion
	c.swap()
}

// Preview is the snapshot that Configure would swap in. It changes nothing, and
// it is for looking only: it takes the present snapshot's generation.
func (c *Catalog) Preview(servers []ServerSettings, e gate.Enforcement) *Snapshot {
	settings := settingsByID(servers)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := newSnapshot(c, settings, c.current.Load().generation)
	s.enforcement, s.companion = e, nil
	return s
}

func settingsByID(servers []ServerSettings) map[gate.ServerID]*ServerSettings {
	settings := make(map[gate.ServerID]*ServerSettings, len(servers))
	for _, s := range servers {
		s.Alias = maps.Clone(s.Alias)
		settings[s.ID] = &s
	}
	return settings
}

// Snapshot returns the current snapshot. It is a pointer read.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Subscribe has f called after each swap, one swap at a time and in order. f
// must not block and must not call a method of c that changes the catalogue.
// The function returned ends the subscription.
func (c *Catalog) Subscribe(f func(old, new *Snapshot)) (stop func()) {
	s := &subscriber{f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.subscribers = append(c.subscribers, s)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.subscribers = slices.DeleteFunc(c.subscribers, func(other *subscriber) bool { return other == s })
	}
}

// swap puts a new snapshot in place. c.mu is held.
func (c *Catalog) swap() {
	old := c.current.Load()
	generation := uint64(1)
	if old != nil {
		generation = old.generation + 1
	}
	next := newSnapshot(c, c.settings, generation)
	c.current.Store(next)
	if old == nil {
		return
	}
	for _, s := range c.subscribers {
		s.notify(old, next)
	}
}

// Servers returns what is kept of each server, in order of id.
func (c *Catalog) Servers() []StoredServer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.servers), func(a, b StoredServer) int { return strings.Compare(string(a.ID), string(b.ID)) })
}

func (c *Catalog) settingsOf(id gate.ServerID) (ServerSettings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.settings[id]
	if !ok {
		return ServerSettings{}, false
	}
	return *s, true
}

// serverRecord is what is kept of a server, or a fresh record. c.mu is held.
func (c *Catalog) serverRecord(id gate.ServerID) StoredServer {
	s := c.servers[id]
	s.ID = id
	return s
}
