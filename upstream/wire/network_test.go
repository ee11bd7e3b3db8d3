package wire

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAddressWithZone(t *testing.T) {
	if got := special(netip.MustParseAddr("fe80::1%eth0")); got != "link-local" {
		t.Errorf("got %q", got)
	}
}

func TestNetworkDefaults(t *testing.T) {
	if n := network(t, NetworkOptions{}); n.resolver != net.DefaultResolver {
		t.Errorf("the resolver is %v", n.resolver)
	}
	for raw, want := range map[string]string{
		"http://proxy.example": "proxy.example:80", "https://proxy.example": "proxy.example:443", "socks5://proxy.example": "proxy.example:1080", "socks5h://proxy.example": "proxy.example:1080",
		"http://proxy.example:3128": "proxy.example:3128", "http://[2001:db8::1]": "[2001:db8::1]:80",
	} {
		if n := network(t, NetworkOptions{Proxy: raw}); n.proxies != want {
			t.Errorf("%s is dialed as %s, want %s", raw, n.proxies, want)
		}
	}
	for _, raw := range []string{"http://user:secret@[::1", "http://", "ftp://proxy.example", "proxy.example:80"} {
		if _, err := NewNetwork(NetworkOptions{Proxy: raw}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

// failing resolves nothing and says how often it was asked.
type failing struct{ asked int }

func (f *failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	f.asked++
	return nil, errors.New("no such host")
}

// nowhere knows every name and no address of it.
type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }

func TestVet(t *testing.T) {
	refuses := func(err error, list string) bool {
		var refused *HostError
		return errors.As(err, &refused) && refused.List == list
	}
	r := &failing{}
	n := network(t, NetworkOptions{Resolver: r, PrivateHosts: []string{"inside.example"}, AllowedHosts: []string{"*.example", "93.184.216.34"}})
	if err := n.vet(t.Context(), "10.0.0.1"); !refuses(err, "private_hosts") {
		t.Errorf("a private address: got %v", err)
	}
	if err := n.vet(t.Context(), "public.test"); !refuses(err, "allowed_hosts") {
		t.Errorf("a host that is not allowed: got %v", err)
	}
	for _, host := range []string{"inside.example", "93.184.216.34"} {
		if err := n.vet(t.Context(), host); err != nil {
			t.Errorf("%s: got %v", host, err)
		}
	}
	if r.asked != 0 {
		t.Errorf("%d look-ups for hosts that need none", r.asked)
	}
	if err := n.vet(t.Context(), "public.example"); err == nil || err.Error() != "no such host" {
		t.Errorf("a name that does not resolve: got %v", err)
	}
	proxied := network(t, NetworkOptions{Resolver: r, Proxy: "http://proxy.example"})
	if err := proxied.vet(t.Context(), "only-the-proxy-knows.example"); err != nil {
		t.Errorf("behind a proxy: got %v", err)
	}
	empty := network(t, NetworkOptions{Resolver: nowhere{}})
	if err := empty.vet(t.Context(), "public.example"); err == nil || !strings.Contains(err.Error(), `"public.example" has no address`) {
		t.Errorf("a name without addresses: got %v", err)
	}
}

// TestRefusalsTellNamesFromAddresses: who wrote a name learns what it means.
func TestRefusalsTellNamesFromAddresses(t *testing.T) {
	n := network(t, NetworkOptions{Resolver: resolverFunc(func(string) []string { return []string{"10.0.0.1"} })})
	for host, want := range map[string]string{
		"10.0.0.1":       `host "10.0.0.1" is private; to allow it, put private_hosts = ["10.0.0.1"] under [network] (private_hosts)`,
		"inside.example": `host "inside.example" has the address 10.0.0.1, which is private; to allow it, put private_hosts = ["inside.example"] under [network] (private_hosts)`,
	} {
		if err := n.vet(t.Context(), host); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// TestDialVetsByItself dials as the transport does, without the check before.
func TestDialVetsByItself(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	n := network(t, NetworkOptions{AllowedHosts: []string{"allowed.example"}, Proxy: "http://127.0.0.1:1",
		Resolver: resolverFunc(func(string) []string { return []string{"127.0.0.1"} })})
	for _, addr := range []string{"127.0.0.1:" + port, "1.2:" + port, "other.example:" + port, "allowed.example:" + port} {
		var refused *HostError
		if conn, err := n.dial(t.Context(), "tcp", addr); !errors.As(err, &refused) {
			t.Errorf("%s: got %v, %v", addr, conn, err)
		}
	}
	if conn, err := n.dial(t.Context(), "tcp", "no port"); err == nil || conn != nil {
		t.Errorf("no port: got %v, %v", conn, err)
	}
	// The proxy is the operator's to place anywhere, and nothing but the proxy.
	proxied := network(t, NetworkOptions{Proxy: "http://" + l.Addr().String()})
	conn, err := proxied.dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("the proxy: %v", err)
	}
	conn.Close()
	direct := network(t, NetworkOptions{})
	if _, err := direct.dial(t.Context(), "tcp", l.Addr().String()); err == nil {
		t.Error("the same address without a proxy was dialed")
	}
}

// TestFirstAddressIsBlamed: of several that fail, the first says what is wrong.
func TestFirstAddressIsBlamed(t *testing.T) {
	n := network(t, NetworkOptions{PrivateHosts: []string{"two.example"},
		Resolver: resolverFunc(func(string) []string { return []string{"127.0.0.2", "127.0.0.3"} })})
	_, err := n.dial(t.Context(), "tcp", "two.example:1")
	if err == nil || !strings.Contains(err.Error(), "127.0.0.2") {
		t.Errorf("got %v", err)
	}
}

func TestProxyIsForVettedHosts(t *testing.T) {
	n := network(t, NetworkOptions{Proxy: "http://proxy.example", PrivateHosts: []string{"127.0.0.1"}})
	for raw, want := range map[string]string{"http://93.184.216.34/": "proxy.example", "http://127.0.0.1/": "", "http://10.0.0.1/": "refused", "http://1.2/": "refused"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		through, err := n.proxyFor((&http.Request{URL: u}).WithContext(t.Context()))
		got := ""
		if through != nil {
			got = through.Host
		}
		if err != nil {
			got = "refused"
		}
		if got != want {
			t.Errorf("%s: through %q, want %q (%v)", raw, got, want, err)
		}
	}
}

// TestTunnelThroughTLSProxy asks a proxy that would rather speak HTTP/2 for a
// tunnel, which is asked for in HTTP/1.1, and speaks TLS with the server within.
func TestTunnelThroughTLSProxy(t *testing.T) {
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, response(idPattern.FindStringSubmatch(string(body))[1], `{"host":"`+r.TLS.ServerName+`"}`))
	}))
	defer target.Close()
	proxy := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tunnel(w, target.Listener.Addr().String()) }))
	proxy.EnableHTTP2 = true
	proxy.Config.ErrorLog = quiet
	proxy.StartTLS()
	defer proxy.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: target.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	n := network(t, NetworkOptions{Proxy: proxy.URL, Resolver: resolverFunc(func(string) []string { return []string{"93.184.216.34"} })})
	e := endpoint(t, EndpointOptions{URL: "https://example.com/mcp", Network: n, TLS: TLSOptions{CAFile: ca}})
	reply, failure := do(t, e, Request{Method: "initialize"})
	if failure != nil || string(reply.Result) != `{"host":"example.com"}` {
		t.Errorf("got %v, %v", reply, failure)
	}
	e.CloseIdle()
}

// tunnel answers CONNECT and carries bytes until either side has closed.
func tunnel(w http.ResponseWriter, to string) {
	out, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusHTTPVersionNotSupported)
		return
	}
	defer in.Close()
	io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	done := make(chan struct{})
	go func() { // ends when the client or the tunnel closes
		io.Copy(out, in)
		out.Close()
		close(done)
	}()
	io.Copy(in, out)
	in.Close()
	<-done
}

// TestFailedHandshakeLeavesNothing: who speaks no TLS is named and hung up on.
func TestFailedHandshakeLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan bool, 1)
	go func() { // ends with the connection
		conn, err := l.Accept()
		if err != nil {
			closed <- false
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		_, err = io.Copy(io.Discard, conn)
		closed <- !errors.Is(err, os.ErrDeadlineExceeded)
	}()
	e := endpoint(t, EndpointOptions{URL: "https://" + l.Addr().String() + "/mcp"})
	_, failure := do(t, e, Request{Method: "initialize"})
	wantKind(t, failure, Transport)
	if !strings.Contains(failure.Error(), "TLS handshake with "+l.Addr().String()) || failure.Wrote {
		t.Errorf("got %v, may have arrived: %t", failure, failure.Wrote)
	}
	if !<-closed {
		t.Error("the connection stays open")
	}
}

// TestTap sees every response before it is judged.
func TestTap(t *testing.T) {
	var seen []int
	s := serveBytes(t, func(w net.Conn, n int, r sent) bool {
		respond(w, []string{"200 OK", "404 Not Found"}[n], "", response(r.id, "{}"))
		return true
	})
	e := endpoint(t, EndpointOptions{URL: s.url, Tap: func(res *http.Response) { seen = append(seen, res.StatusCode) }})
	if _, failure := do(t, e, Request{Method: "initialize"}); failure != nil {
		t.Fatal(failure)
	}
	if status, err := e.Delete(t.Context(), nil, nil); err != nil || status != 404 {
		t.Errorf("got %d, %v", status, err)
	}
	if len(seen) != 2 || seen[0] != 200 || seen[1] != 404 {
		t.Errorf("saw %v", seen)
	}
}

func TestNotificationHasNoID(t *testing.T) {
	_, failure := once(t, Request{Method: "notifications/cancelled", Notification: true}, EndpointOptions{}, func(w net.Conn, _ sent) bool {
		respond(w, "500 Internal Server Error", "", "")
		return true
	})
	if wantKind(t, failure, HTTPStatus); failure.ID != "" {
		t.Errorf("the failure names the id %q", failure.ID)
	}
}
