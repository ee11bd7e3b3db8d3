package federation

import (
	"net/http"
	"testing"

	"gatehouse/federation/config"
)

// TestHostsAndOrigins is C52: a page that rebinds its name to our address is
// recognised by the headers it cannot forge.
func TestHostsAndOrigins(t *testing.T) {
	local := config.Listen{Address: "127.0.0.1:8620"}
	public := config.Listen{Address: "0.0.0.0:8620", PublicURL: "https://gate.example.org/", BehindProxy: true}
	for _, test := range []struct {
		name    string
		listen  config.Listen
		host    string
		origins []string
		want    bool
	}{
		{"plain client", local, "127.0.0.1:8620", nil, true},
		{"a: foreign origin", local, "127.0.0.1:8620", []string{"http://evil.example"}, false},
		{"b: foreign host", local, "evil.example:8620", nil, false},
		{"c: origin null", local, "127.0.0.1:8620", []string{"null"}, false},
		{"d: another local page", local, "127.0.0.1:8620", []string{"http://localhost:3000"}, false},
		{"our own page", local, "127.0.0.1:8620", []string{"http://127.0.0.1:8620"}, true},
		{"our own page, other loopback name", local, "127.0.0.1:8620", []string{"http://localhost:8620"}, false},
		{"e: look-alike", local, "127.0.0.1.evil.example", nil, false},
		{"e: IPv6", local, "[::1]:8080", nil, true},
		{"e: trailing dot", local, "localhost.", nil, true},
		{"e: capitals", local, "LOCALHOST:8080", nil, true},
		{"e: no port", local, "127.0.0.1", nil, true},
		{"h: two origins", local, "127.0.0.1:8620", []string{"http://127.0.0.1:8620", "http://127.0.0.1:8620"}, false},
		{"empty host", local, "", nil, false},
		{"origin with a path", local, "127.0.0.1:8620", []string{"http://127.0.0.1:8620/x"}, false},
		{"origin with a user", local, "127.0.0.1:8620", []string{"http://a@127.0.0.1:8620"}, false},
		{"public name", public, "gate.example.org", nil, true},
		{"public name and page", public, "Gate.Example.org:443", []string{"https://gate.example.org"}, true},
		{"public, by address", public, "192.0.2.7:8620", nil, true},
		{"public, foreign name", public, "evil.example", nil, false},
		{"public, foreign page", public, "gate.example.org", []string{"https://evil.example"}, false},
	} {
		r := &http.Request{Host: test.host, Header: http.Header{"Origin": test.origins, "X-Forwarded-Host": {"evil.example"}}}
		if got := newHostCheck(test.listen).allows(r); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
