package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"gatehouse/upstream/upstreamtest"
)

// Address is where the demo upstream listens unless told otherwise, and what
// the file that `gatehouse init` writes points to.
const Address = "127.0.0.1:8621"

// Path is the endpoint's path.
const Path = "/mcp"

// maxBody is more than any of the demo's tools can use.
const maxBody = 1 << 20

// faulty stands a kind of misbehaviour before next; "" is none.
func faulty(next http.Handler, hostile string, on []string) (http.Handler, error) {
	if hostile == "" {
		return next, nil
	}
	h := upstreamtest.Misbehave(hostile, next, on...)
	if h == nil {
		return nil, fmt.Errorf("unknown kind %q of misbehaviour (want %s)", hostile, strings.Join(upstreamtest.HostileKinds(), ", "))
	}
	return h, nil
}

// newHandler serves the demo upstream at Path. The endpoint behind it has to be
// shut down.
func newHandler(version, hostile string, on []string) (http.Handler, *server.StreamableHTTPServer, error) {
	mcpServer := server.NewMCPServer("Gatehouse demo", version,
		server.WithToolCapabilities(false),
		server.WithRecovery(),
		server.WithInstructions("A demonstration server. Its notes live in memory and are gone when it stops."))
	mcpServer.AddTools(tools(newNotebook())...)

	// Loopback only, so the library's own check of the Host header is in force.
	endpoint := server.NewStreamableHTTPServer(mcpServer,
		server.WithEndpointPath(Path),
		server.WithDisableStreaming(true),
		server.WithStateful(true), // a session that was ended is gone
		server.WithSessionIdleTTL(10*time.Minute),
		server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler)))
	mux := http.NewServeMux()
	mux.Handle(Path, endpoint)
	handler, err := faulty(mux, hostile, on)
	if err != nil {
		return nil, nil, errors.Join(err, endpoint.Shutdown(context.Background()))
	}
	return http.MaxBytesHandler(noPages(handler), maxBody), endpoint, nil
}

// noPages turns web pages away, which the library leaves to its user: only they
// send an Origin, and none of them has business here.
func noPages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			http.Error(w, "no web page may call this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// A Server is a running demo upstream.
type Server struct {
	URL      string
	endpoint *server.StreamableHTTPServer
	http     *http.Server
	done     chan error
}

// Start listens on address, which must be loopback: the demo asks nobody who
// they are. Hostile is one of upstreamtest.HostileKinds, "" behaves; on are the
// only methods in whose answer it misbehaves, none of them means wherever the
// kind can show. Close ends it.
func Start(address, version, hostile string, on ...string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want host:port, for example %q", address, Address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen address %q: the demo upstream asks for no credentials and listens on loopback only", address)
	}
	handler, endpoint, err := newHandler(version, hostile, on)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, errors.Join(err, endpoint.Shutdown(context.Background()))
	}
	s := &Server{
		URL:      "http://" + listener.Addr().String() + Path,
		endpoint: endpoint,
		http:     &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)},
		done:     make(chan error, 1),
	}
	go func() { s.done <- s.http.Serve(listener) }() // ended by Close, which waits
	return s, nil
}

// Close ends the server. Requests that are not done by the end of ctx are cut.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	err = errors.Join(err, s.endpoint.Shutdown(ctx))
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
