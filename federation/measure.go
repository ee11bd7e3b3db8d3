package federation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"gatehouse/federation/config"
	"gatehouse/federation/metrics"
	"gatehouse/gate"
)

// metricsTimeout bounds what a scrape may take until it begins, and what a
// listener of its own may take to end.
const metricsTimeout = 10 * time.Second

// serveMetrics answers a scrape at the address that callers use, where it wants
// the token of an administrator. Whoever can reach that address is not thereby
// somebody who should know which servers there are, what they are asked and how
// often somebody is refused; a scraper can be given a token like any caller.
// Where that is in the way, [metrics] address opens a listener that asks for
// none, and the network decides who reaches it.
func (g *Gateway) serveMetrics(w http.ResponseWriter, r *http.Request) {
	who := g.authenticate(w, r)
	if who == nil {
		return
	}
	if !who.Admin {
		http.Error(w, "metrics are for administrators; give the scraper the token of one, or set [metrics] address", http.StatusForbidden)
		return
	}
	g.metrics.Handler().ServeHTTP(w, r)
}

// listenMetrics opens the listener of [metrics] address, if there is one. The
// result ends it and waits.
func (g *Gateway) listenMetrics() (end func(), err error) {
	address := g.Config().Metrics.Address
	if address == "" {
		return func() {}, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("[metrics] address %q: %w", address, err)
	}
	hosts := newHostCheck(config.Listen{Address: address})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", g.metrics.Handler())
	server := &http.Server{ReadHeaderTimeout: metricsTimeout, WriteTimeout: 2 * metricsTimeout, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(g.Logger.Handler(), slog.LevelDebug),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !hosts.allows(r) {
				http.Error(w, "host or origin not allowed; scrape by IP address", http.StatusForbidden)
				return
			}
			mux.ServeHTTP(w, r)
		})}
	done := make(chan struct{})
	go func() { // ended by end, which waits
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			g.Logger.Error("metrics are no longer served", "address", address, "error", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), metricsTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-done
	}, nil
}

// groupOf is the tool group of a call, "" when there is no such tool: a name
// that a caller made up is no label.
func (g *Gateway) groupOf(name gate.LocalName) string {
	tool := g.Catalog.Snapshot().Tool(name)
	switch {
	case tool == nil:
		return ""
	case tool.Own:
		return "gatehouse"
	}
	return tool.Group
}

// scrape is what a gateway is like at this moment.
func (g *Gateway) scrape() metrics.State {
	cfg := g.Config()
	s := metrics.State{Ready: len(g.Ready()) == 0, Ledger: g.Ledger.Health() == nil, Current: g.Waiting() == nil,
		Sessions: g.sessions.count(), Listeners: g.listeners.count(), Questions: len(g.Gate.Questions())}
	tools := map[gate.ServerID]map[string]int{}
	for _, e := range g.Catalog.Tools("") {
		if e.Own {
			continue
		}
		if tools[e.Server] == nil {
			tools[e.Server] = map[string]int{}
		}
		tools[e.Server][e.Availability.String()]++
	}
	imported := map[gate.ServerID]time.Time{}
	for _, kept := range g.Catalog.Servers() {
		imported[kept.ID] = kept.LastImport
	}
	for i := range cfg.Servers {
		c := &cfg.Servers[i]
		contact, _ := g.State.Upstream().LastContact(c.ID)
		s.Servers = append(s.Servers, metrics.Server{ID: string(c.ID), Credential: g.CredentialState(g.ctx, c),
			Tools: tools[c.ID], LastContact: contact.At, LastImport: imported[c.ID]})
	}
	return s
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

func (l *listeners) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}
