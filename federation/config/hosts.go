package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// checkURL reports what is wrong with a url that we are to talk to. Where the
// url may carry a secret (user information, query) the answer does not quote it.
func checkURL(raw string) (u *url.URL, wrong string) {
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xa0 || r == 0x200b || r == 0xfeff }) {
		return nil, "holds a space or a control character"
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, "is not a url (want for example https://host.example/mcp)"
	case u.User != nil:
		return nil, "holds a user name or password; a credential belongs under auth, as a reference"
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, "has scheme " + strconv.Quote(clip(u.Scheme)) + " (want https or http)"
	case u.Opaque != "" || u.Hostname() == "":
		return nil, "names no host (want for example https://host.example/mcp)"
	case u.Fragment != "" || strings.Contains(raw, "#"):
		return nil, "has a fragment (#…), which is never sent; leave it out"
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, "has port " + strconv.Quote(clip(port)) + " (want 1 to 65535)"
		}
	}
	if wrong := checkHostname(u.Hostname()); wrong != "" {
		return nil, "has host " + strconv.Quote(clip(u.Hostname())) + ": " + wrong
	}
	return u, ""
}

var (
	label   = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
	numeric = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

// checkHostname wants a DNS name or an address. A last label that is a number
// makes the whole an IPv4 address in some parsers, so it must be one in all.
func checkHostname(host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	name := strings.TrimSuffix(host, ".")
	labels := strings.Split(name, ".")
	if numeric.MatchString(labels[len(labels)-1]) {
		return "an IPv4 address is written as four decimal numbers"
	}
	for _, l := range labels {
		if !label.MatchString(l) {
			return "this is no host name (international names are written in their xn-- form)"
		}
	}
	if len(name) > 253 {
		return "this is longer than a host name can be"
	}
	return ""
}

// checkHost is for the lists of [network]: a host and nothing around it.
func checkHost(h string, wildcard bool) string {
	switch {
	case h == "":
		return "an empty entry names no host"
	case strings.Contains(h, "://") || strings.ContainsAny(h, "/@?# \t"):
		return "want the host alone, as in the url, without scheme, port and path"
	case strings.Contains(h, "*") && !wildcard:
		return "want each host in full; a pattern would open private addresses to names nobody thought of"
	}
	if rest, ok := strings.CutPrefix(h, "*."); ok {
		h = rest
	}
	if strings.Contains(h, "*") {
		return `"*" may only stand for subdomains, as in "*.example.org"`
	}
	if _, err := netip.ParseAddr(strings.Trim(h, "[]")); err == nil {
		return ""
	}
	if strings.Contains(h, ":") {
		return "want the host alone, without a port"
	}
	return checkHostname(h)
}

// plainHost is the spelling in which hosts are compared.
func plainHost(h string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(h, "[]"), "."))
}

// secretQuery reports whether a query has a parameter that sounds like a secret.
var secretQuery = regexp.MustCompile(`(?i)(^|&)[^=&]*(token|secret|passw|api_?-?key|apikey|access_?key|auth|signature|credential|^key|&key)[^=&]*=`)
