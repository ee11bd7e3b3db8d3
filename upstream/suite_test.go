package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/upstream"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/conformance"
	"gatehouse/upstream/wire"
)

func TestConformance(t *testing.T) {
	for _, p := range upstreamtest.Profiles() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			conformance.Run(t, p, strict{})
		})
	}
}

// strict puts the client of this module to the test.
type strict struct{}

func (strict) Open(t *testing.T, o conformance.Options) conformance.Client {
	s := upstream.Server{ID: gate.ServerID(o.Server), URL: o.URL, Timeout: o.Timeout, Protocol: o.Protocol}
	if o.Keep {
		s.Session = upstream.PerCaller
	}
	c := newClient(t, &store{contact: o.Contact}, o.Now, s)
	return &subject{t, c, s.ID}
}

// subject gives our client the shape of the suite's.
type subject struct {
	t *testing.T
	*upstream.Client
	id gate.ServerID
}

func (s *subject) Test(ctx context.Context) error {
	_, err := s.Client.Test(ctx, s.id)
	return err
}

func (s *subject) List(ctx context.Context) ([]json.RawMessage, error) {
	listing, err := s.Client.List(ctx, s.id)
	return listing.Tools, err
}

func (s *subject) Call(ctx context.Context, c conformance.Call) ([]byte, string, error) {
	tool := toolOf(s.id, c.Tool)
	for name, argument := range c.Headers {
		tool.ParamHeaders = append(tool.ParamHeaders, gate.ParamHeader{Name: name, Path: []string{argument}, Type: "string"})
	}
	permit := gatetest.Permit(s.t, tool, gatetest.Admin(gate.CallerName("caller-"+c.Caller)), c.Arguments)
	result, err := s.Client.Call(ctx, permit, upstream.CallOptions{Progress: c.Progress, TraceParent: c.Trace, Holder: c.Holder})
	var failed *upstream.CallError
	if errors.As(err, &failed) {
		return nil, string(failed.Verdict), err
	}
	return result.Raw, string(result.Verdict), err
}

func toolOf(id gate.ServerID, remote string) *gate.Tool {
	tool := gatetest.Tool("mcp_played_tool")
	tool.Server, tool.Remote = id, gate.RemoteName(remote)
	return tool
}

// newClient makes a client that may reach loopback, and closes it with t.
func newClient(t testing.TB, st *store, now func() time.Time, servers ...upstream.Server) *upstream.Client {
	t.Helper()
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := upstream.New(upstream.Options{Network: network, Version: "test", Store: st, Now: now,
		Credentials: credential.NewBroker(credential.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Configure(servers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// A store remembers in memory.
type store struct {
	contact func() // nil: nobody counts

	mu   sync.Mutex
	eras map[gate.ServerID]string
	last map[gate.ServerID]time.Duration
	fail error
}

func (s *store) Era(id gate.ServerID) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	era, ok := s.eras[id]
	return era, ok
}

func (s *store) SetEra(id gate.ServerID, era string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.eras == nil {
		s.eras = map[gate.ServerID]string{}
	}
	s.eras[id] = era
	return s.fail
}

func (s *store) Contact(id gate.ServerID, _ time.Time, latency time.Duration) error {
	if s.contact != nil {
		s.contact()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[gate.ServerID]time.Duration{}
	}
	s.last[id] = latency
	return s.fail
}
