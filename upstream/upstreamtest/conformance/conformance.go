// Package conformance holds one suite that any strict MCP client can be put
// through. It plays the servers of upstreamtest, one profile at a time, and
// looks at what the client sent as much as at what it made of the answers.
//
// To put another client through it, write a test with an [Implementation] whose
// Open makes one client for the server it is told about, and call [Run] for
// every profile:
//
//	type mine struct{}
//
//	func (mine) Open(t *testing.T, o conformance.Options) conformance.Client {
//		c := mymcp.NewClient(o.URL, mymcp.Options{Name: o.Server, Budget: o.Timeout, Clock: o.Now})
//		t.Cleanup(func() { c.Close(context.Background()) })
//		return &adapter{c}
//	}
//
//	func TestConformance(t *testing.T) {
//		for _, p := range upstreamtest.Profiles() {
//			t.Run(p.Name, func(t *testing.T) { conformance.Run(t, p, mine{}) })
//		}
//	}
//
// The adapter gives the client the five methods of [Client]; its own Close has
// to wait for a closing DELETE, because the suite looks at what was sent once it
// returns. A client that is given plain http urls on 127.0.0.1 has to be allowed
// them. One that knows no kept sessions fails the checks of sessions, and one
// check alone runs with, for example, -run 'TestConformance/2026/progress'.
//
// For a client in another language, gatehouse demo-upstream --hostile KIND plays
// the same hostile servers one at a time; what a strict client does with each is
// said by the names here.
package conformance

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest"
)

// An Implementation makes clients.
type Implementation interface {
	// Open makes a client of the one server that o describes. It registers what
	// has to be cleaned up with t.
	Open(t *testing.T, o Options) Client
}

// Options describe the server that a client is opened for.
type Options struct {
	Server   string // the name that errors have to call the server by
	URL      string
	Protocol string        // "auto", or the version that is pinned
	Timeout  time.Duration // the budget of each operation
	Now      func() time.Time
	Contact  func() // to be called once for each completed operation
	Keep     bool   // keep sessions per caller and holder
}

// A Client is what is put to the test. Its errors are sentences for operators.
type Client interface {
	Test(ctx context.Context) error
	List(ctx context.Context) ([]json.RawMessage, error)
	// Call sends tools/call once. The verdict is one of ok, tool_error, not_sent,
	// upstream_error, outcome_unknown and cancelled; err is nil for the first two.
	Call(ctx context.Context, c Call) (result []byte, verdict string, err error)
	// EndHolder ends the sessions that are kept for a holder.
	EndHolder(holder string)
	// Close waits for everything that the client has under way.
	Close(ctx context.Context) error
}

// A Call is one tools/call.
type Call struct {
	Tool      string            // the server's own name for it
	Arguments string            // raw JSON, to be sent as it is
	Headers   map[string]string // x-mcp-header name to argument; all are strings
	Progress  func(params []byte)
	Trace     string // traceparent
	Caller    string
	Holder    string
}

// The name that every check gives the played server.
const serverName = "played-upstream"

// budget is long enough for a slow machine and ends what would never end.
const budget = 10 * time.Second

// A bench is one check's server, client and clock.
type bench struct {
	*testing.T
	profile  upstreamtest.Profile
	server   *upstreamtest.Server
	client   Client
	contacts atomic.Int64
	options  Options
	closed   sync.Once
}

// A Clock stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows the present.
func NewClock() *Clock { return &Clock{now: time.Now()} }

// Now gives what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// open plays server s and opens a client for it.
func open(t *testing.T, impl Implementation, s *upstreamtest.Server, change func(*Options)) *bench {
	t.Helper()
	b := &bench{T: t, profile: s.Profile, server: s}
	site := httptest.NewServer(s)
	site.Config.ErrorLog = discard
	t.Cleanup(site.Close)
	b.options = Options{Server: serverName, URL: site.URL + "/mcp", Timeout: budget, Now: time.Now,
		Contact: func() { b.contacts.Add(1) }, Protocol: "auto"}
	if change != nil {
		change(&b.options)
	}
	b.client = impl.Open(t, b.options)
	t.Cleanup(b.close)
	return b
}

// close waits until the client has nothing under way, so that what it sent is
// complete.
func (b *bench) close() {
	b.closed.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), budget)
		defer cancel()
		if err := b.client.Close(ctx); err != nil {
			b.Errorf("close: %v", err)
		}
	})
}

func (b *bench) ctx() context.Context { return b.Context() }

// call makes a call that has to succeed.
func (b *bench) call(c Call) []byte {
	b.Helper()
	result, verdict, err := b.client.Call(b.ctx(), c)
	if err != nil || verdict != "ok" {
		b.Fatalf("call %s: verdict %s, error %v", c.Tool, verdict, err)
	}
	return result
}

// pinned pins the era, so that the probe does not stand among the legs.
func pinned(p upstreamtest.Profile) func(*Options) {
	return func(o *Options) {
		o.Protocol = upstreamtest.LegacyVersion
		if p.Modern {
			o.Protocol = upstreamtest.ModernVersion
		}
	}
}

var _ http.Handler = (*upstreamtest.Server)(nil)
