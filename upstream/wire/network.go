package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"
)

const (
	// dialTimeout bounds one connection with its handshake, also when the
	// operation that wanted it has no deadline.
	dialTimeout = 10 * time.Second
	// attemptTimeout bounds one address of several, so that a dead one does not
	// use up the budget.
	attemptTimeout = 3 * time.Second
	// vettedFor is how long a look-up made before a credential is asked for
	// counts. Every dial looks up anew and does not rely on it.
	vettedFor = 30 * time.Second
)

// NetworkOptions configure the host gate.
type NetworkOptions struct {
	// PrivateHosts are hosts, spelled as in the url, that may have loopback,
	// private or otherwise special addresses. Empty allows none.
	PrivateHosts []string
	// AllowedHosts narrows what else may be reached: exact hosts, or
	// "*.example.org" for every host below it. Empty narrows nothing.
	AllowedHosts []string
	// Proxy is the url of an HTTP, HTTPS or SOCKS5 proxy for every host that is
	// not in PrivateHosts. Empty means no proxy, whatever the environment says.
	// Behind a proxy an address is vetted when the name resolves here; a name
	// that only the proxy can resolve is the proxy's to judge.
	Proxy string
	// Resolver defaults to net.DefaultResolver.
	Resolver Resolver
}

// A Resolver looks host names up. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// A Network is the host gate and the dialer behind it. It is safe for
// concurrent use. Everything that this process connects to on somebody's
// configuration goes through one: upstreams, token endpoints, JWKS, discovery.
type Network struct {
	rules    *hostRules
	resolver Resolver
	proxy    *url.URL
	proxies  string // host:port of the proxy, as the transport dials it

	mu     sync.Mutex
	vetted map[string]time.Time // hosts whose addresses were all found allowed, guarded by mu
}

// NewNetwork makes a host gate. The zero options reach every public host and
// no private one.
func NewNetwork(o NetworkOptions) (*Network, error) {
	rules, err := newHostRules(o.PrivateHosts, o.AllowedHosts)
	if err != nil {
		return nil, err
	}
	n := &Network{rules: rules, resolver: o.Resolver, vetted: make(map[string]time.Time)}
	if n.resolver == nil {
		n.resolver = net.DefaultResolver
	}
	if o.Proxy != "" {
		if n.proxy, n.proxies, err = parseProxy(o.Proxy); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func parseProxy(raw string) (*url.URL, string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		// The url may carry a password, so it is not quoted.
		return nil, "", errors.New("proxy: not a valid url")
	}
	ports := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	port := ports[u.Scheme]
	if port == "" {
		return nil, "", fmt.Errorf("proxy: unknown scheme %q (want http, https or socks5)", u.Scheme)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	return u, net.JoinHostPort(u.Hostname(), port), nil
}

// CheckURL parses raw and applies every rule that needs no look-up: scheme, no
// userinfo, no fragment, an unambiguous host, the lists, a literal address.
// With httpsOnly plain http is left to loopback hosts in PrivateHosts. The url
// comes back in its normal form. A refusal is a *HostError.
func (n *Network) CheckURL(raw string, httpsOnly bool) (*url.URL, error) {
	return n.rules.checkURL(raw, httpsOnly)
}

// Private reports whether host, as CheckURL returns it, stands in PrivateHosts.
func (n *Network) Private(host string) bool { return n.rules.private[host] }

// vet applies the gate to a host before anything is spent on it, in particular
// before a credential is looked up. What it finds holds for a short while; the
// dial decides for itself.
func (n *Network) vet(ctx context.Context, host string) error {
	if err := n.rules.admit(host); err != nil {
		return err
	}
	if n.rules.private[host] {
		return nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	n.mu.Lock()
	since, ok := n.vetted[host]
	n.mu.Unlock()
	if ok && time.Since(since) < vettedFor {
		return nil
	}
	_, err := n.addresses(ctx, host)
	if refused := (*HostError)(nil); n.proxy != nil && err != nil && !errors.As(err, &refused) {
		return nil // only the proxy can resolve it
	}
	return err
}

// addresses resolves host and applies the gate to every answer: one bad answer
// refuses the name, because a name that means two things is how a check and the
// connection after it come to disagree.
func (n *Network) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, n.rules.address(host, a)
	}
	found, err := n.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("host %q has no address", host)
	}
	for i, a := range found {
		found[i] = a.Unmap() // resolvers hand out IPv4 in IPv6 form
		if err := n.rules.address(host, found[i]); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	n.vetted[host] = time.Now()
	n.mu.Unlock()
	return found, nil
}

// dial connects to a vetted address of addr, or to the configured proxy.
func (n *Network) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.proxy != nil && addr == n.proxies {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	host, err := normalHost(name)
	if err != nil {
		return nil, &HostError{Host: name, Reason: err.Error()}
	}
	if err := n.rules.admit(host); err != nil {
		return nil, err
	}
	found, err := n.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	for i, a := range found {
		conn, failed := dialOne(ctx, network, net.JoinHostPort(a.String(), port), i < len(found)-1)
		if failed == nil {
			return conn, nil
		}
		if err == nil {
			err = failed
		}
	}
	return nil, err
}

func dialOne(ctx context.Context, network, addr string, others bool) (net.Conn, error) {
	d := net.Dialer{}
	if others {
		d.Timeout = attemptTimeout
	}
	return d.DialContext(ctx, network, addr)
}

// direct reports whether host is reached without a proxy.
func (n *Network) direct(host string) bool { return n.proxy == nil || n.rules.private[host] }

// proxyFor tells the transport which proxy a request takes, where one is
// configured.
func (n *Network) proxyFor(req *http.Request) (*url.URL, error) {
	host, err := normalHost(req.URL.Hostname())
	if err != nil {
		return nil, &HostError{Host: req.URL.Hostname(), Reason: err.Error()}
	}
	if n.direct(host) {
		return nil, nil
	}
	return n.proxy, n.vet(req.Context(), host)
}

// requestContext is the context key under which a request's own context is
// found by the dial that it causes. The transport detaches a dial from its
// request; without this a dial into a black hole would outlive the operation.
type requestContext struct{}

// bounded gives a dial its limits: the request's end and dialTimeout.
func bounded(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	request, ok := ctx.Value(requestContext{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	stop := context.AfterFunc(request, cancel)
	return ctx, func() { stop(); cancel() }
}

func (n *Network) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, done := bounded(ctx)
	defer done()
	conn, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn}, nil
}

// dialTLS dials and shakes hands under one bound.
func (n *Network) dialTLS(ctx context.Context, network, addr string, config *tls.Config) (net.Conn, error) {
	ctx, done := bounded(ctx)
	defer done()
	conn, err := n.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config = config.Clone()
	config.ServerName, _, _ = net.SplitHostPort(addr) // dial has split it before
	if n.proxy != nil && addr == n.proxies {
		config.NextProtos = nil // a tunnel is asked for in HTTP/1.1
	}
	secure := tls.Client(&countedConn{Conn: conn}, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", addr, err)
	}
	return secure, nil
}
