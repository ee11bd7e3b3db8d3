package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func network(t testing.TB, o NetworkOptions) *Network {
	t.Helper()
	n, err := NewNetwork(o)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestC51_CheckURL(t *testing.T) {
	private := []string{"127.0.0.1", "[::1]", "Intranet.example.", "localhost", "0:0:0:0:0:0:0:2", "10.9.9.9", "::ffff:127.0.0.3", "a.localhost"}
	tests := []struct {
		url   string
		https bool
		want  string // the normal form, empty for a refusal
	}{
		{"https://tickets.example.org/mcp", false, "https://tickets.example.org/mcp"},
		{"HTTPS://Tickets.Example.ORG./mcp?tenant=1", true, "https://tickets.example.org/mcp?tenant=1"},
		{"http://tickets.example.org:8080", false, "http://tickets.example.org:8080"},
		{"http://tickets.example.org/", true, ""},
		{"http://127.0.0.1:9/", true, "http://127.0.0.1:9/"},
		{"http://localhost/", true, "http://localhost/"},
		{"http://intranet.example/", false, "http://intranet.example/"},
		{"http://intranet.example/", true, ""},
		{"http://10.9.9.9/", false, "http://10.9.9.9/"},
		{"http://10.9.9.9/", true, ""},
		{"http://[::ffff:127.0.0.3]/", false, "http://[::ffff:127.0.0.3]/"},
		{"http://[::ffff:127.0.0.3]/", true, ""},
		{"http://[::1]/", false, "http://[::1]/"},
		{"http://[0:0::1]:80/", false, "http://[::1]:80/"},
		{"http://[::2]/", false, "http://[::2]/"},
		{"http://93.184.216.34/", false, "http://93.184.216.34/"},
		{"http://[2606:2800:220:1::1]/", false, "http://[2606:2800:220:1::1]/"},
		{"http://xn--bcher-kva.example/", false, "http://xn--bcher-kva.example/"},

		{"http://a.localhost/", true, "http://a.localhost/"},
		{"http://az-09_.example/", false, "http://az-09_.example/"},
		{"http://example.cafe/", false, "http://example.cafe/"},
		{"http://example.0xzz/", false, "http://example.0xzz/"},
		{"http://example.0x1x/", false, "http://example.0x1x/"},
		{"http://example.1x/", false, "http://example.1x/"},
		{"http://" + strings.Repeat("abcdefgh.", 28) + "a/", false, "http://" + strings.Repeat("abcdefgh.", 28) + "a/"},
		{"http://" + strings.Repeat("abcdefgh.", 28) + "ab/", false, ""},

		{"file:///etc/passwd", false, ""},
		{"ftp://example.org/", false, ""},
		{"example.org/mcp", false, ""},
		{"//example.org/mcp", false, ""},
		{"http:example.org", false, ""},
		{"http:///mcp", false, ""},
		{"http://:80/", false, ""},
		{"", false, ""},
		{"https://host@evil.example/", false, ""},
		{"https://u:pw@example.org/", false, ""},
		{"https://@example.org/", false, ""},
		{"https://example.org/#f", false, ""},
		{"https://example.org/#", false, ""},
		{"https://example.org:0/", false, ""},
		{"https://example.org:65536/", false, ""},
		{"https://example.org:/", false, ""},
		{"https://ex ample.org/", false, ""},
		{"https://a..b/", false, ""},
		{"https://.example.org/", false, ""},
		{"https://bücher.example/", false, ""},
		{"http://１２７.0.0.1/", false, ""},
		{"http://127。0。0。1/", false, ""},

		{"http://127.0.0.2/", false, ""},
		{"http://0x7f.1/", false, ""},
		{"http://0x7f000001/", false, ""},
		{"http://0x/", false, ""},
		{"http://2130706433/", false, ""},
		{"http://017700000001/", false, ""},
		{"http://127.1/", false, ""},
		{"http://127.0.0.01/", false, ""},
		{"http://0127.0.0.1/", false, ""},
		{"http://1.2.3.4.5/", false, ""},
		{"http://93.184.216.34./", false, "http://93.184.216.34/"},
		{"http://example.0x1f/", false, ""},
		{"http://example.1/", false, ""},
		{"http://10.1.2.3/", false, ""},
		{"http://169.254.169.254/latest", false, ""},
		{"http://[::ffff:169.254.169.254]/", false, ""},
		{"http://[::ffff:127.0.0.1]/", false, ""},
		{"http://[::ffff:8.8.8.8]/", false, ""},
		{"http://[::127.0.0.1]/", false, ""},
		{"http://[fe80::1%25eth0]/", false, ""},
		{"http://localhost.localdomain.localhost/", false, ""},
	}
	n := network(t, NetworkOptions{PrivateHosts: private})
	for _, test := range tests {
		u, err := n.CheckURL(test.url, test.https)
		if test.want == "" {
			if refused := (*HostError)(nil); !errors.As(err, &refused) {
				t.Errorf("CheckURL(%q, %t) = %v, %v; want a refusal", test.url, test.https, u, err)
			}
			continue
		}
		if err != nil || u.String() != test.want {
			t.Errorf("CheckURL(%q, %t) = %v, %v; want %s", test.url, test.https, u, err, test.want)
		}
	}
}

func TestC51_SpecialAddresses(t *testing.T) {
	special4 := "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 169.254.0.1 " +
		"172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.1 " +
		"203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255"
	special6 := ":: ::1 ::7f00:1 ::ffff:8.8.8.8 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 " +
		"2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fdff::1 fe80::1 fec0::1 ff02::1 4000::1"
	for _, text := range strings.Fields(special4 + " " + special6) {
		if special(netip.MustParseAddr(text)) == "" {
			t.Errorf("%s passes for the address of a public server", text)
		}
	}
	for _, text := range strings.Fields("1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 " +
		"192.0.1.1 192.167.1.1 198.17.255.255 198.20.0.1 223.255.255.255 2606:4700::1 2a00:1450::1 2001:4860::1 2003::1") {
		if what := special(netip.MustParseAddr(text)); what != "" {
			t.Errorf("%s is refused as %s", text, what)
		}
	}
	if special(netip.Addr{}) == "" {
		t.Error("no address at all passes for the address of a public server")
	}
}

// TestC51_AddressRanges looks at both ends of every range, and at what lies
// directly before and after it.
func TestC51_AddressRanges(t *testing.T) {
	const inside = "an IPv4 address inside IPv6"
	ranges := []struct{ first, last, what string }{
		{"0.0.0.0", "0.255.255.255", "reserved"},
		{"10.0.0.0", "10.255.255.255", "private"},
		{"100.64.0.0", "100.127.255.255", "a carrier-grade NAT address"},
		{"127.0.0.0", "127.255.255.255", "loopback"},
		{"169.254.0.0", "169.254.255.255", "link-local"},
		{"172.16.0.0", "172.31.255.255", "private"},
		{"192.0.0.0", "192.0.0.255", "reserved"},
		{"192.0.2.0", "192.0.2.255", "a documentation address"},
		{"192.88.99.0", "192.88.99.255", "reserved"},
		{"192.168.0.0", "192.168.255.255", "private"},
		{"198.18.0.0", "198.19.255.255", "a benchmark address"},
		{"198.51.100.0", "198.51.100.255", "a documentation address"},
		{"203.0.113.0", "203.0.113.255", "a documentation address"},
		{"224.0.0.0", "239.255.255.255", "multicast"},
		{"240.0.0.0", "255.255.255.255", "reserved"},

		// A narrower range comes before the one that it lies in.
		{"::1", "::1", "loopback"},
		{"::ffff:0.0.0.0", "::ffff:255.255.255.255", inside},
		{"64:ff9b::", "64:ff9b::ffff:ffff", inside},
		{"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", inside},
		{"::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
		{"2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", inside},
		{"2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", "a benchmark address"},
		{"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
		{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "a documentation address"},
		{"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", inside},
		{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "a documentation address"},
		{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "unique-local"},
		{"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "link-local"},
		{"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "private"},
		{"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"},
		{"4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"},
	}
	want := func(a netip.Addr) string {
		for _, r := range ranges {
			first, last := netip.MustParseAddr(r.first), netip.MustParseAddr(r.last)
			if a.BitLen() == first.BitLen() && a.Compare(first) >= 0 && a.Compare(last) <= 0 {
				return r.what
			}
		}
		return ""
	}
	for _, r := range ranges {
		first, last := netip.MustParseAddr(r.first), netip.MustParseAddr(r.last)
		for _, a := range []netip.Addr{first.Prev(), first, last, last.Next()} {
			if got := special(a); a.IsValid() && got != want(a) {
				t.Errorf("%s is %q, want %q", a, got, want(a))
			}
		}
	}
}

func TestC51_EndpointRefusesAtOnce(t *testing.T) {
	for _, o := range []EndpointOptions{
		{URL: "http://tickets.example.org/", HTTPSOnly: true}, {URL: "http://localhost/"}, {URL: "http://a.localhost/"}, {URL: "http://10.0.0.1/"}, {URL: "file:///etc/passwd"},
	} {
		o.Network = loopbackNetwork(t)
		if _, err := NewEndpoint(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestAllowedHosts(t *testing.T) {
	n := network(t, NetworkOptions{PrivateHosts: []string{"10.0.0.1"}, AllowedHosts: []string{"api.example.org", "*.Example.NET"}})
	for host, want := range map[string]bool{
		"api.example.org": true, "API.example.org.": true, "x.example.net": true, "y.x.example.net": true, "10.0.0.1": true,
		"example.net": false, "example.org": false, "xapi.example.org": false, "badexample.net": false, "10.0.0.2": false, "8.8.8.8": false,
	} {
		if _, err := n.CheckURL("https://"+host+"/", false); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %t", host, err, want)
		}
	}
}

func TestHostErrorNamesTheLine(t *testing.T) {
	n := network(t, NetworkOptions{PrivateHosts: []string{"127.0.0.1"}, AllowedHosts: []string{"*.example.org"}})
	tests := map[string]string{
		"http://10.0.0.5/mcp?key=SECRET": `host "10.0.0.5" is private; to allow it, put private_hosts = ["127.0.0.1", "10.0.0.5"] under [network] (private_hosts)`,
		"http://other.example/":          `host "other.example" does not match allowed_hosts; to allow it, put allowed_hosts = ["*.example.org", "other.example"] under [network] (allowed_hosts)`,
		"http://2130706433/":             `host "2130706433" is a number; write an IPv4 address as four decimal parts`,
		"http:example.org":               `url names no host`,
		"http:///mcp":                    `url names no host`,
		"https://example.org/#SECRET":    `url has a fragment, which is never sent; leave it out`,
		"https://u:SECRET@example.org/":  `url carries user information; use [server.auth] for credentials`,
		"https://example.org:99999/":     `host "example.org" has a port that is not 1 to 65535`,
		"http://bücher.example/":         `host "bücher.example" has a character that is no part of a host name; write other scripts in their xn-- form`,
		"http://localhost/":              `host "localhost" is loopback; to allow it, put private_hosts = ["127.0.0.1", "localhost"] under [network] (private_hosts)`,
		"gopher://x/":                    `url has the scheme "gopher"; only http and https are spoken`,
	}
	for raw, want := range tests {
		_, err := n.CheckURL(raw, false)
		if err == nil || err.Error() != want {
			t.Errorf("CheckURL(%q):\n%v\nwant\n%s", raw, err, want)
		}
	}
	_, err := n.CheckURL("http://tickets.example.org/", true)
	if want := `host "tickets.example.org" must be reached over https; plain http is for a loopback host in private_hosts`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestC50_RefusedURLsAreNotQuoted(t *testing.T) {
	n := network(t, NetworkOptions{})
	for _, raw := range []string{
		"https://u:pw-SECRET@host/mcp?key=SECRET", "https://u:pw-SECRET", "https://host/%zz?key=SECRET", "https://[SECRET",
		"http://10.0.0.1/SECRET?key=SECRET", "http://host:SECRET/", "https://host/\x7fSECRET", "https://host/#SECRET",
	} {
		if _, err := n.CheckURL(raw, false); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("CheckURL(%q) = %v, want an error without the secret", raw, err)
		}
	}
}

func TestBadLists(t *testing.T) {
	for _, o := range []NetworkOptions{
		{PrivateHosts: []string{"http://127.0.0.1"}}, {PrivateHosts: []string{"127.1"}}, {PrivateHosts: []string{""}}, {PrivateHosts: []string{"*.example.org"}},
		{AllowedHosts: []string{"*"}}, {AllowedHosts: []string{"a.*.org"}}, {AllowedHosts: []string{"exa mple"}},
		{PrivateHosts: []string{"a/b"}}, {PrivateHosts: []string{"a`b"}}, {PrivateHosts: []string{"a{b"}},
		{Proxy: "ftp://proxy:21"}, {Proxy: "proxy:3128"}, {Proxy: "http://"},
	} {
		if _, err := NewNetwork(o); err == nil {
			t.Errorf("NewNetwork(%+v) accepts it", o)
		}
	}
}

// A resolverFunc is a resolver with answers of the test's choosing.
type resolverFunc func(host string) []string

func (f resolverFunc) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	var found []netip.Addr
	for _, text := range f(host) {
		found = append(found, netip.MustParseAddr(text))
	}
	if found == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return found, nil
}

func TestC51_EveryResolvedAddressIsVetted(t *testing.T) {
	tests := []struct {
		name    string
		answers []string
		refused string
	}{
		{"loopback.example", []string{"127.0.0.1"}, "loopback"},
		{"mixed.example", []string{"93.184.216.34", "127.0.0.1"}, "loopback"},
		{"mapped.example", []string{"::ffff:169.254.169.254"}, "link-local"},
		{"metadata.example", []string{"169.254.169.254"}, "link-local"},
		{"unique.example", []string{"2606:4700::1", "fd00::1"}, "unique-local"},
	}
	for _, test := range tests {
		n := network(t, NetworkOptions{Resolver: resolverFunc(func(string) []string { return test.answers })})
		asked := false
		e := endpoint(t, EndpointOptions{URL: "http://" + test.name + ":1/", Network: n})
		_, failure := do(t, e, Request{Method: "initialize", Credential: func(context.Context) (string, string, error) {
			asked = true
			return "X-Api-Key", "K", nil
		}})
		wantKind(t, failure, HostRefused)
		if !strings.Contains(failure.Error(), test.refused) || failure.Wrote || asked {
			t.Errorf("%s: %v, wrote %t, credential asked for %t", test.name, failure, failure.Wrote, asked)
		}
		refused := (*HostError)(nil)
		if !errors.As(failure, &refused) || refused.List != "private_hosts" {
			t.Errorf("%s: no *HostError with its list in %v", test.name, failure)
		}
	}
}

// A name that is harmless when it is checked and private when it is dialed is
// refused by the dial.
func TestC51_RebindingIsFoundAtTheDial(t *testing.T) {
	s := serveBytes(t, func(net.Conn, int, sent) bool { return false })
	var lookups atomic.Int32
	n := network(t, NetworkOptions{Resolver: resolverFunc(func(string) []string {
		if lookups.Add(1) == 1 {
			return []string{"93.184.216.34"}
		}
		return []string{"127.0.0.1"}
	})})
	port := s.url[strings.LastIndexByte(s.url, ':')+1:]
	e := endpoint(t, EndpointOptions{URL: "http://rebind.example:" + port, Network: n})
	_, failure := do(t, e, Request{Method: "initialize"})
	wantKind(t, failure, HostRefused)
	if failure.Wrote || lookups.Load() != 2 || len(s.requests()) != 0 {
		t.Errorf("wrote %t after %d look-ups, the server got %d requests", failure.Wrote, lookups.Load(), len(s.requests()))
	}
}

// The client for token endpoints and the like stands behind the same dial.
func TestC51_HTTPClientVetsEveryDial(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, _ sent) bool { respond(w, "200 OK", "", "{}"); return true })
	n := network(t, NetworkOptions{AllowedHosts: []string{"127.0.0.1"}})
	client, err := n.HTTPClient(TLSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Get(s.url)
	if err == nil {
		res.Body.Close()
		t.Fatal("a loopback address was reached without standing in private_hosts")
	}
	if refused := (*HostError)(nil); !errors.As(err, &refused) {
		t.Errorf("got %v, want a *HostError", err)
	}
}

// The connection goes to an address that was vetted, after others that do not
// answer.
func TestDialTriesEveryVettedAddress(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	n := network(t, NetworkOptions{PrivateHosts: []string{"twice.example"},
		Resolver: resolverFunc(func(string) []string { return []string{"127.0.0.9", "127.0.0.1"} })})
	port := s.url[strings.LastIndexByte(s.url, ':')+1:]
	e := endpoint(t, EndpointOptions{URL: "http://twice.example:" + port, Network: n})
	if _, failure := do(t, e, Request{Method: "initialize"}); failure != nil {
		t.Fatal(failure)
	}
	if got := s.requests(); len(got) != 1 || !strings.HasPrefix(got[0].host, "twice.example:") {
		t.Errorf("the server got %+v", got)
	}
}

func TestUnresolvedNameIsATransportError(t *testing.T) {
	n := network(t, NetworkOptions{Resolver: resolverFunc(func(string) []string { return nil })})
	e := endpoint(t, EndpointOptions{URL: "http://gone.example/mcp?key=SECRET", Network: n})
	_, failure := do(t, e, Request{Method: "initialize", Once: true})
	wantKind(t, failure, Transport)
	if failure.Wrote || strings.Contains(failure.Error(), "SECRET") || !strings.Contains(failure.Error(), "gone.example") {
		t.Errorf("got %v, wrote %t", failure, failure.Wrote)
	}
}

func TestC51_NoProxyFromTheEnvironment(t *testing.T) {
	proxy := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "502 Bad Gateway", "", ""); return true })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.url)
	}
	transport, err := network(t, NetworkOptions{}).Transport(TLSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if transport.Proxy != nil {
		t.Error("the transport asks somebody for a proxy though none is configured")
	}
}

// A configured proxy gets the requests for public hosts, and a name that
// resolves here to a private address does not get past the gate by it.
func TestC51_ConfiguredProxy(t *testing.T) {
	proxy := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	direct := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	n := network(t, NetworkOptions{Proxy: strings.TrimSuffix(proxy.url, "/mcp"), PrivateHosts: []string{"127.0.0.1"},
		Resolver: resolverFunc(func(host string) []string {
			return map[string][]string{"public.example": {"93.184.216.34"}, "inside.example": {"10.0.0.1"}}[host]
		})})
	for url, want := range map[string]Kind{
		"http://public.example/mcp": 0, "http://elsewhere.example/mcp": 0, "http://inside.example/mcp": HostRefused, direct.url: 0,
	} {
		_, failure := do(t, endpoint(t, EndpointOptions{URL: url, Network: n}), Request{Method: "initialize"})
		if want == 0 && failure != nil || want != 0 && (failure == nil || failure.Kind != want) {
			t.Errorf("%s: got %v, want %s", url, failure, want)
		}
	}
	if got := len(proxy.requests()); got != 2 {
		t.Errorf("the proxy got %d requests, want 2", got)
	}
	if got := len(direct.requests()); got != 1 {
		t.Errorf("the private host got %d requests, want 1", got)
	}
	client, err := n.HTTPClient(TLSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if res, err := client.Get("http://inside.example/"); err == nil {
		res.Body.Close()
		t.Error("the client reached a private address through the proxy")
	}
}

// The look-up before the credential holds for a while, so that the usual call
// costs none.
func TestVettingIsRemembered(t *testing.T) {
	var lookups atomic.Int32
	n := network(t, NetworkOptions{Resolver: resolverFunc(func(string) []string { lookups.Add(1); return []string{"93.184.216.34"} })})
	for range 3 {
		if err := n.vet(context.Background(), "public.example"); err != nil {
			t.Fatal(err)
		}
	}
	if lookups.Load() != 1 {
		t.Errorf("%d look-ups, want 1", lookups.Load())
	}
	n.vetted["public.example"] = time.Now().Add(-vettedFor)
	if err := n.vet(context.Background(), "public.example"); err != nil || lookups.Load() != 2 {
		t.Errorf("%v after %d look-ups, want another look-up when the first is old", err, lookups.Load())
	}
}

func TestHTTPClientFollowsNoRedirect(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, _ sent) bool {
		respond(w, "307 Temporary Redirect", "Location: /elsewhere", "")
		return true
	})
	client, err := loopbackNetwork(t).HTTPClient(TLSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if client.Timeout <= 0 {
		t.Error("an exchange without a deadline may take for ever")
	}
	res, err := client.Post(s.url, "application/x-www-form-urlencoded", strings.NewReader("grant_type=x"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTemporaryRedirect || len(s.requests()) != 1 {
		t.Errorf("status %d after %d requests, want the redirect itself after one", res.StatusCode, len(s.requests()))
	}
	if got := s.requests()[0].header.Values("Accept-Encoding"); len(got) != 0 {
		t.Errorf("it asks for the encoding %q, and what is compressed has no size that could be bounded", got)
	}
}

// FuzzCheckURL holds the gate to what must be true of any url that passes: a
// second reading says the same, and the host is neither private nor ambiguous.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.org/mcp", "http://[::ffff:127.0.0.1]/", "http://0x7f.1/", "http://127.0.0.1/", "https://u@h/", "http://[fe80::1%25e]/",
		"http://EXAMPLE.org.:80/?q", "http://1.2.3.4./", "http://a_b/", "http://xn--a/", "http://[::1]:80", "http:\\\\x", "http://010.1.1.1/",
	} {
		f.Add(seed)
	}
	n := network(f, NetworkOptions{PrivateHosts: []string{"127.0.0.1"}})
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := n.CheckURL(raw, false)
		if err != nil {
			return
		}
		again, err := n.CheckURL(u.String(), false)
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q passes as %q, which then gives %v, %v", raw, u, again, err)
		}
		host := u.Hostname()
		if u.User != nil || u.Fragment != "" || host == "" || host != strings.ToLower(host) || strings.HasSuffix(host, ".") {
			t.Fatalf("%q passes as %q", raw, u)
		}
		a, err := netip.ParseAddr(host)
		if err == nil && host != "127.0.0.1" && special(a) != "" {
			t.Fatalf("%q passes with the address %s", raw, a)
		}
		// What the C library would take for an address must be one to us.
		if last := host[strings.LastIndexByte(host, '.')+1:]; err != nil && (strings.HasPrefix(last, "0x") || strings.Trim(last, "0123456789") == "") {
			if strings.Trim(strings.TrimPrefix(last, "0x"), "0123456789abcdef") == "" {
				t.Fatalf("%q passes with the numeric host %q", raw, host)
			}
		}
	})
}
