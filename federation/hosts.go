package federation

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"gatehouse/federation/config"
)

// A hostCheck says which Host and Origin headers are ours. A web page can make
// a browser send requests to any address, and with DNS rebinding it can even
// read the answers; what it cannot do is forge these two headers.
type hostCheck struct {
	loopback bool            // we listen on loopback: its names are ours, with any port
	names    map[string]bool // host names that are ours, without port
	anyIP    bool            // we listen on every address: an IP literal needs no DNS, so it cannot be rebound
	origins  map[string]bool // origins that may call beside our own
}

func newHostCheck(l config.Listen) hostCheck {
	c := hostCheck{names: map[string]bool{}, origins: map[string]bool{}}
	host, _, _ := net.SplitHostPort(l.Address)
	host = canonicalHost(host)
	switch ip, err := netip.ParseAddr(host); {
	case host == "" || err == nil && ip.IsUnspecified():
		c.anyIP = true
	case host == "localhost" || err == nil && ip.IsLoopback():
		c.loopback = true
	default:
		c.names[host] = true
	}
	if u, err := url.Parse(l.PublicURL); err == nil && u.Host != "" {
		c.names[canonicalHost(u.Hostname())] = true
		c.origins[strings.ToLower(u.Scheme+"://"+u.Host)] = true
	}
	return c
}

// allows reports whether r names us as its target and comes from no foreign page.
func (c hostCheck) allows(r *http.Request) bool {
	if !c.ours(r.Host) {
		return false
	}
	origins := r.Header["Origin"]
	switch len(origins) {
	case 0:
		return true // no browser: browsers send Origin with every POST
	case 1:
		return c.origins[strings.ToLower(origins[0])] || sameOrigin(origins[0], r.Host)
	}
	return false
}

func (c hostCheck) ours(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = canonicalHost(host)
	if c.names[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if c.loopback || c.anyIP {
		if host == "localhost" || err == nil && ip.IsLoopback() {
			return true
		}
	}
	return c.anyIP && err == nil
}

// sameOrigin reports whether origin is a page that we ourselves serve at host,
// which has passed ours already.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" &&
		strings.EqualFold(u.Host, host)
}

// canonicalHost is host in lower case, without brackets and trailing dot.
func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// publicURL is how clients reach us, without a path.
func publicURL(l config.Listen) string {
	if l.PublicURL != "" {
		// Some write it with the endpoint's own path, which we add.
		return strings.TrimSuffix(strings.TrimSuffix(l.PublicURL, "/"), "/mcp")
	}
	if l.TLS() {
		return "https://" + l.Address
	}
	return "http://" + l.Address
}
