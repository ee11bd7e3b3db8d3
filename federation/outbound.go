package federation

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"sync/atomic"

	"gatehouse/federation/caller"
	"gatehouse/federation/config"
	"gatehouse/upstream/wire"
)

// A route is one way out: the host gate that [network] describes, and the
// client behind it for what is no upstream, such as token endpoints and issuers.
type route struct {
	config  config.Network
	network *wire.Network
	client  *http.Client
}

// An outbound is the route in force. Whoever holds its client uses, request by
// request, the route of that moment.
type outbound struct{ current atomic.Pointer[route] }

// to returns the route for n: the one in force when n is what it was made of,
// so that its connections live on.
func (o *outbound) to(n config.Network) (*route, error) {
	if old := o.current.Load(); old != nil && reflect.DeepEqual(old.config, n) {
		return old, nil
	}
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: n.PrivateHosts, AllowedHosts: n.AllowedHosts, Proxy: n.Proxy})
	if err != nil {
		return nil, err
	}
	client, err := network.HTTPClient(wire.TLSOptions{})
	if err != nil {
		return nil, err
	}
	return &route{n, network, client}, nil
}

// AskIssuer asks the issuer of a configuration, which need not be in force,
// whether callers and people can come by it.
func AskIssuer(ctx context.Context, cfg *config.Config) error {
	way, err := new(outbound).to(cfg.Network)
	if err != nil {
		return err
	}
	defer way.client.CloseIdleConnections()
	directory, err := caller.New(nil, nil, caller.Options{OIDC: cfg.OIDC, Audience: caller.Resource(publicURL(cfg.Listen)), Client: way.client})
	if err != nil {
		return err
	}
	return directory.AskIssuer(ctx)
}

// use puts a route into force. Connections of the one before are not kept: the
// new host gate may not allow them.
func (o *outbound) use(r *route) {
	if old := o.current.Swap(r); old != nil && old != r {
		old.client.CloseIdleConnections()
	}
}

// CheckURL is the host gate's check of a url.
func (o *outbound) CheckURL(raw string, httpsOnly bool) (*url.URL, error) {
	return o.current.Load().network.CheckURL(raw, httpsOnly)
}

// Private reports whether the host gate lets a host have private addresses.
func (o *outbound) Private(host string) bool { return o.current.Load().network.Private(host) }

// RoundTrip implements http.RoundTripper.
func (o *outbound) RoundTrip(r *http.Request) (*http.Response, error) {
	return o.current.Load().client.Transport.RoundTrip(r)
}

// client follows no redirects and dials through the host gate in force.
func (o *outbound) client() *http.Client {
	c := *o.current.Load().client
	c.Transport = o
	return &c
}
