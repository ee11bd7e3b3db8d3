package credential

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gatehouse/upstream/wire"
)

// newNamedSetup is a broker whose host gate lets 127.0.0.1 and localhost be
// private, which are two hosts to it.
func newNamedSetup(t *testing.T) (*setup, *authServer, *box) {
	t.Helper()
	s, p, keep := newLoginSetup(t)
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{"127.0.0.1", "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := network.HTTPClient(wire.TLSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	s.broker.options.Client, s.broker.options.CheckURL, s.broker.options.Private = client, network.CheckURL, network.Private
	return s, p, keep
}

// inner is a service at a private host that nobody configured for this server.
func inner(t *testing.T) (url string, visits *atomic.Int32) {
	t.Helper()
	visits = new(atomic.Int32)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	site := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visits.Add(1)
		http.NotFound(w, r)
	})}}
	site.Start()
	t.Cleanup(site.Close)
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "http://localhost:" + port, visits
}

// private_hosts is about the hosts of the file. A server that names one of them
// sends us nowhere.
func TestPrivateHostsAreNotForServersToName(t *testing.T) {
	for name, server := range map[string]func(t *testing.T, p *authServer, inner string) string{
		"the place of its metadata": func(t *testing.T, _ *authServer, inner string) string {
			challenging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+inner+`/admin/restart"`)
				w.WriteHeader(http.StatusUnauthorized)
			}))
			t.Cleanup(challenging.Close)
			return challenging.URL
		},
		"an authorization server": func(t *testing.T, p *authServer, inner string) string {
			return p.hosted(t, func(m map[string]any) { m["authorization_servers"] = []string{inner} }).URL
		},
		"a token endpoint": func(t *testing.T, p *authServer, inner string) string {
			p.describe(func(m map[string]any) { m["token_endpoint"] = inner + "/token" })
			return p.hosted(t, nil).URL
		},
		"a place to register": func(t *testing.T, p *authServer, inner string) string {
			p.describe(func(m map[string]any) { m["registration_endpoint"] = inner + "/register" })
			return p.hosted(t, nil).URL
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, keep := newNamedSetup(t)
			there, visits := inner(t)
			a := Auth{Mode: OAuth, ServerURL: server(t, p, there) + "/mcp"}
			_, err := s.broker.BeginLogin(t.Context(), a, LoginOptions{Redirect: "http://127.0.0.1:1/callback"})
			wantError(t, err, ReasonHostRefused)
			if visits.Load() != 0 || len(keep.values) != 0 || !strings.Contains(err.Error(), "issuer") {
				t.Errorf("%d visits, %d things kept: %v", visits.Load(), len(keep.values), err)
			}
		})
	}
}

// The host of an issuer that the file names is the operator's word.
func TestPrivateHostOfTheIssuer(t *testing.T) {
	s, p, _ := newNamedSetup(t)
	server := p.hosted(t, nil)
	a := Auth{Mode: OAuth, ServerURL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/mcp"}
	if _, err := s.broker.checkNamed(a, p.Issuer()); err == nil {
		t.Error("an issuer at another private host was taken from the server")
	}
	a.Issuer = p.Issuer()
	if _, err := s.broker.checkNamed(a, p.TokenEndpoint()); err != nil {
		t.Errorf("with the issuer in the file: %v", err)
	}
	a.Issuer, a.ServerURL = "", server.URL+"/mcp"
	if err := logIn(t, s.broker, a, LoginOptions{}); err != nil {
		t.Errorf("at the server's own host: %v", err)
	}
}
