package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// Credentials opens the credential session of one operation. *credential.Broker
// is one.
type Credentials interface {
	Open(credential.Auth, credential.Purpose) (credential.Session, error)
}

// Options is what a Client works with.
type Options struct {
	Network     *wire.Network
	Version     string // ours, as clientInfo says it
	Credentials Credentials
	Store       Store
	Logger      *slog.Logger     // nil: silent
	Now         func() time.Time // nil: time.Now, whose readings are monotonic
}

// A Client speaks to the configured servers. It is safe for concurrent use.
type Client struct {
	options    Options
	log        *slog.Logger
	now        func() time.Time
	initialize []byte // params of initialize
	meta       []byte // what every 2026 request's _meta begins with
	tokens     tokens
	errands    *errands

	configuring sync.Mutex // one Configure at a time
	lanes       atomic.Pointer[lanes]
}

// New returns a Client without servers.
func New(o Options) (*Client, error) {
	if o.Network == nil || o.Credentials == nil || o.Store == nil {
		return nil, errors.New("upstream client: network, credentials and store are required")
	}
	c := &Client{options: o, log: o.Logger, now: o.Now, errands: newErrands(), tokens: newTokens(),
		initialize: initializeParams(o.Version), meta: modernMeta(o.Version)}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.lanes.Store(&lanes{})
	return c, nil
}

// Configure replaces the servers. A server that stayed as it was keeps its
// connections and sessions; the kept sessions of all others end. Operations
// under way finish as they began. Nothing changes when an error is returned. A
// server that can be declared but not used, such as one whose ca_file cannot be
// read, is no error here: operations on it say what is wrong.
func (c *Client) Configure(servers []Server) error {
	c.configuring.Lock()
	defer c.configuring.Unlock()
	if !c.errands.enter() {
		return errShutting
	}
	defer c.errands.leave()

	declared := make([]Server, 0, len(servers))
	seen := map[gate.ServerID]bool{}
	for _, s := range servers {
		s, err := s.withDefaults()
		if err != nil {
			return err
		}
		if seen[s.ID] {
			return fmt.Errorf("server %q: the id is taken by another server", s.ID)
		}
		seen[s.ID] = true
		declared = append(declared, s)
	}

	before, after := *c.lanes.Load(), make(lanes, len(declared))
	for _, s := range declared {
		old := before[s.ID]
		if old != nil && old.server.same(s) && old.unusable == nil {
			after[s.ID] = old
			continue
		}
		after[s.ID] = newLane(c, s)
		if old != nil && old.server.URL != s.URL {
			after[s.ID].remember(c, "") // another address, perhaps another era
		}
	}
	c.lanes.Store(&after)
	for id, old := range before {
		if after[id] != old {
			old.close()
		}
	}
	return nil
}

var errShutting = errors.New("upstream client: shutting down")

// A Fleet is the servers as they were configured at one moment. A call that was
// judged then is sent to a server of then, whatever Configure does meanwhile.
// The zero value has no servers.
type Fleet struct{ lanes lanes }

// Fleet returns the servers as they are configured now.
func (c *Client) Fleet() Fleet { return Fleet{*c.lanes.Load()} }

// enter counts an operation in and finds its server. Who entered leaves.
func (c *Client) enter(id gate.ServerID, fleet Fleet) (*lane, *CallError) {
	if !c.errands.enter() {
		return nil, refusal(id, ReasonClosed, "gatehouse is shutting down; nothing was sent")
	}
	if l := fleet.lanes[id]; l != nil {
		return l, nil
	}
	c.errands.leave()
	return nil, refusal(id, ReasonUnknownServer, "no such server is configured")
}

// EndHolder ends the sessions that are kept for a downstream session. What is
// kept for callers without one stays.
func (c *Client) EndHolder(holder string) {
	if holder == "" || !c.errands.enter() {
		return
	}
	defer c.errands.leave()
	for _, l := range *c.lanes.Load() {
		l.keeper.endHolder(holder)
	}
}

// closeGrace is what a request that was cut short by Close may take to notice.
const closeGrace = time.Second

// Close refuses new operations, ends the kept sessions and waits for everything
// under way, until ctx ends; after that closing requests are cut short.
func (c *Client) Close(ctx context.Context) error {
	c.configuring.Lock()
	defer c.configuring.Unlock()
	c.errands.stop()
	all := *c.lanes.Load()
	for _, l := range all {
		l.keeper.close()
	}
	err := c.errands.wait(ctx, closeGrace)
	for _, l := range all {
		l.close()
	}
	return err
}
