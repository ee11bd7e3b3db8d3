package wire

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A HostError says why the host gate refuses an url or an address. It never
// holds an url's userinfo or query.
type HostError struct {
	Host   string // as the gate understood it, empty when it understood none
	Reason string
	List   string // the list under [network] that would allow it, empty when none can
	Line   string // the line that the configuration would need
}

// Error names the rule and, when a list decides, the list and the line to add.
func (e *HostError) Error() string {
	subject := "url"
	if e.Host != "" {
		subject = fmt.Sprintf("host %q", Clip(e.Host))
	}
	text := subject + " " + e.Reason
	if e.List != "" {
		text += fmt.Sprintf("; to allow it, put %s under [network] (%s)", e.Line, e.List)
	}
	return text
}

// hostRules are the operator's two lists.
type hostRules struct {
	private  map[string]bool // hosts that may be loopback or private
	privates []string        // the same in the operator's order
	allowed  map[string]bool // exact hosts, nil when every public host is allowed
	suffixes []string        // ".example.org" for an entry "*.example.org"
	entries  []string        // the allowed entries in the operator's order
}

func newHostRules(private, allowed []string) (*hostRules, error) {
	r := &hostRules{private: make(map[string]bool, len(private)), privates: private, entries: allowed}
	for _, entry := range private {
		host, err := normalHost(entry)
		if err != nil {
			return nil, fmt.Errorf("private_hosts: %q is not a host: %w", entry, err)
		}
		r.private[host] = true
	}
	if len(allowed) > 0 {
		r.allowed = make(map[string]bool, len(allowed))
	}
	for _, entry := range allowed {
		host, err := normalHost(strings.TrimPrefix(entry, "*."))
		if err != nil {
			return nil, fmt.Errorf("allowed_hosts: %q is not a host: %w", entry, err)
		}
		if strings.HasPrefix(entry, "*.") {
			r.suffixes = append(r.suffixes, "."+host)
		} else {
			r.allowed[host] = true
		}
	}
	return r, nil
}

// admit applies what can be said of a host without looking it up. host is normal.
func (r *hostRules) admit(host string) error {
	if r.private[host] {
		return nil
	}
	if a, err := netip.ParseAddr(host); err == nil {
		if err := r.address(host, a); err != nil {
			return err
		}
	} else if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return r.refusePrivate(host, "is loopback")
	}
	if r.allowed == nil || r.allowed[host] {
		return nil
	}
	for _, s := range r.suffixes {
		if strings.HasSuffix(host, s) {
			return nil
		}
	}
	return &HostError{Host: host, Reason: "does not match allowed_hosts", List: "allowed_hosts",
		Line: line("allowed_hosts", r.entries, host)}
}

// address applies the rule on one address that host has or is.
func (r *hostRules) address(host string, a netip.Addr) error {
	what := special(a)
	if what == "" || r.private[host] {
		return nil
	}
	if a.String() == host {
		return r.refusePrivate(host, "is "+what)
	}
	return r.refusePrivate(host, fmt.Sprintf("has the address %s, which is %s", a, what))
}

func (r *hostRules) refusePrivate(host, reason string) error {
	return &HostError{Host: host, Reason: reason, List: "private_hosts",
		Line: line("private_hosts", r.privates, host)}
}

// line writes the list as the configuration would have it with host added.
func line(name string, entries []string, host string) string {
	quoted := make([]string, 0, len(entries)+1)
	for _, e := range append(slices.Clone(entries), host) {
		quoted = append(quoted, strconv.Quote(e))
	}
	return name + " = [" + strings.Join(quoted, ", ") + "]"
}

// checkURL parses raw and applies every rule that needs no look-up.
func (r *hostRules) checkURL(raw string, httpsOnly bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's text quotes parts of the url, which may be a secret.
		return nil, &HostError{Reason: "is not valid"}
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, &HostError{Reason: fmt.Sprintf("has the scheme %q; only http and https are spoken", Clip(u.Scheme))}
	}
	host, err := normalHost(u.Hostname())
	switch {
	case u.Hostname() == "": // an opaque url has none either
		return nil, &HostError{Reason: "names no host"}
	case u.User != nil:
		return nil, &HostError{Reason: "carries user information; use [server.auth] for credentials"}
	case strings.Contains(raw, "#"):
		return nil, &HostError{Reason: "has a fragment, which is never sent; leave it out"}
	case err != nil:
		return nil, &HostError{Host: u.Hostname(), Reason: err.Error()}
	case !validPort(u):
		return nil, &HostError{Host: host, Reason: "has a port that is not 1 to 65535"}
	case httpsOnly && u.Scheme != "https" && !(r.private[host] && loopback(host)):
		return nil, &HostError{Host: host, Reason: "must be reached over https; plain http is for a loopback host in private_hosts"}
	}
	if err := r.admit(host); err != nil {
		return nil, err
	}
	u.Host = joinHost(host, u.Port())
	return u, nil
}

func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && port > 0
}

func joinHost(host, port string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	return host + ":" + port
}

func loopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback() && !a.Is4In6()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// normalHost lower-cases a host, drops a trailing dot and the brackets of an
// IPv6 literal, and refuses what two readers could understand differently.
func normalHost(host string) (string, error) {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return "", fmt.Errorf("is not an IPv6 address")
		}
		return a.String(), nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" {
		return "", fmt.Errorf("is empty")
	}
	for _, c := range []byte(host) {
		if !(c == '-' || c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z') {
			return "", fmt.Errorf("has a character that is no part of a host name; write other scripts in their xn-- form")
		}
	}
	if strings.HasPrefix(host, ".") || strings.Contains(host, "..") || len(host) > 253 {
		return "", fmt.Errorf("is not a host name")
	}
	if numericLabel(host[strings.LastIndexByte(host, '.')+1:]) {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", fmt.Errorf("is a number; write an IPv4 address as four decimal parts")
		}
	}
	return host, nil
}

// numericLabel reports whether a host that ends in label is an IPv4 address to
// some resolvers (WHATWG URL, "ends in a number").
func numericLabel(label string) bool {
	if digits(label, "0123456789") {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && (hex == "" || digits(hex, "0123456789abcdef"))
}

func digits(s, set string) bool { return s != "" && strings.Trim(s, set) == "" }
