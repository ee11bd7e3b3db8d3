package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, problems := Parse("/etc/gatehouse/gatehouse.toml", []byte(text))
	if c == nil {
		t.Fatalf("does not load:\n%s", problems.Error())
	}
	return c
}

// What a key means when it is left out is part of the product.
func TestDefaults(t *testing.T) {
	c := mustParse(t, `
[[caller]]
name = "agent"
token = "env:AGENT_TOKEN"
[[server]]
id = "docs"
url = "https://docs.example.org/mcp"
`)
	if got := c.Listen.Address; got != "127.0.0.1:8620" {
		t.Errorf("address %q", got)
	}
	if got := c.StatePath(); got != "/etc/gatehouse/gatehouse.db" {
		t.Errorf("state path %q", got)
	}
	if got := c.LedgerDir(); got != "/etc/gatehouse/gatehouse.ledger" {
		t.Errorf("ledger directory %q", got)
	}
	if got := c.SocketPath(); got != "/etc/gatehouse/gatehouse.db.sock" {
		t.Errorf("socket path %q", got)
	}
	if got := c.Operation.Timeout; got != 20*time.Second {
		t.Errorf("timeout %s", got)
	}
	if a := c.Approval; a.Channel != ChannelClient || a.Timeout != 5*time.Minute || a.SecondPerson {
		t.Errorf("approval %+v", a)
	}
	if a := c.Audit; a.Arguments != ArgumentsDigest || a.Retention != 0 {
		t.Errorf("audit %+v", a)
	}
	if len(c.Network.PrivateHosts) != 0 || c.Network.AllowedHosts != nil || c.Gate.Observe || c.OIDC.Enabled() {
		t.Errorf("something is open by default: %+v %+v", c.Network, c.Gate)
	}
	a := c.Caller("agent")
	if a.Admin || a.Zone != gate.ExternalGlobal || !a.Groups.Every() || a.CallsPerMinute != 60 || a.ConcurrentCalls != 16 ||
		a.Dialect != gate.Full || a.Surface != gate.Everything || a.NameBudget != 0 || a.AuthenticatedBy != "token" {
		t.Errorf("caller %+v", a.Caller)
	}
	s := c.Server("docs")
	if !s.Enabled || s.Class != gate.Unclassified || s.ApprovalWaived || s.ApprovalMemory != 0 || s.Name != "docs" ||
		s.Timeout != 20*time.Second || s.Protocol != "auto" || s.Session != "operation" || s.MaxResponse != 2<<20 ||
		s.ResultLimit != 0 || s.Auth.Mode != credential.None || s.Supplies() {
		t.Errorf("server %+v", s)
	}
	if c.Caller("nobody") != nil || c.Server("none") != nil {
		t.Error("an unknown name was found")
	}
}

func TestSpellings(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testdata, "good", "spellings.toml"))
	if err != nil {
		t.Fatal(err)
	}
	c := mustParse(t, string(data))
	if c.Operation.Timeout != 45*time.Second {
		t.Errorf("timeout %s", c.Operation.Timeout)
	}
	if got, want := c.Network.PrivateHosts, []string{"localhost", "::1", "db.internal"}; !slices.Equal(got, want) {
		t.Errorf("private hosts %q, want %q", got, want)
	}
	if got, want := c.Network.AllowedHosts, []string{"*.example.org"}; !slices.Equal(got, want) {
		t.Errorf("allowed hosts %q, want %q", got, want)
	}
	if c.Listen.CertFile != "/etc/gatehouse/tls/crt.pem" || c.Listen.KeyFile != "/etc/key.pem" || !c.Listen.TLS() {
		t.Errorf("listen %+v", c.Listen)
	}
	a, b := c.Caller("a"), c.Caller("b")
	if a.Zone != gate.ExternalEU {
		t.Errorf("zone %s: a list counts as its least trusted", a.Zone)
	}
	if a.Groups.Every() || a.Groups.Include("mcp_long") {
		t.Error("an empty list of groups must include nothing")
	}
	if b.CallsPerMinute != 0 || b.ConcurrentCalls != 2 || b.Surface != gate.Find || b.Dialect != gate.Portable {
		t.Errorf("caller %+v", b.Caller)
	}
	s := c.Server("long")
	if s.Name != "A server, by name" || !s.ApprovalWaived || s.MaxResponse != 4<<20 || s.Alias["issues.search"] != "search" ||
		s.Timeout != 45*time.Second || s.Class != gate.SecretAdjacent {
		t.Errorf("server %+v", s)
	}
}

// All mistakes of a file are named at once, in its order, each with its line.
func TestEveryProblemAtOnce(t *testing.T) {
	_, problems := Parse("gatehouse.toml", []byte(`[[server]]
id = "docs"
url = "https://docs.example/mcp "
data_clas = "internal"
require_approval = "false"
[server.auth]
token = "${DOCS_TOKEN}"
[servers.docs]
timeout = "20"
[[server]]
id = "docs"
data_class = "Public "
requires_approval = 0
[operation]
timeout = "1h"
[listen]
address = "127.0.0.1:99999"
`))
	var lines []int
	for _, p := range problems.Errors() {
		lines = append(lines, p.Line)
		if p.File != "gatehouse.toml" || p.Key == "" || p.Text == "" {
			t.Errorf("incomplete problem %+v", p)
		}
	}
	if want := []int{3, 4, 5, 6, 7, 8, 11, 12, 13, 15, 17}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v:\n%s", lines, want, problems.Error())
	}
	for _, want := range []string{
		`server "docs": no such key "data_clas"; did you mean "data_class"?`,
		`server "docs": no such key "require_approval"; did you mean "requires_approval"?`,
		`server "docs": auth: no such key "token"; did you mean "credential"?`,
	} {
		if !strings.Contains(problems.Error(), want) {
			t.Errorf("missing %s in\n%s", want, problems.Error())
		}
	}
}

func TestEncodings(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"utf-16 little endian", "\xff\xfe[\x00s\x00", "gatehouse.toml:1: the file is UTF-16; save it as UTF-8 without a byte order mark"},
		{"utf-16 big endian", "\xfe\xff\x00[", "gatehouse.toml:1: the file is UTF-16; save it as UTF-8 without a byte order mark"},
		{"utf-16 without a mark", "[\x00s\x00", "gatehouse.toml:1: the file holds a NUL byte (UTF-16?); save it as UTF-8"},
		{"byte order mark", "\xef\xbb\xbf[state]\n", "gatehouse.toml:1: the file begins with a byte order mark; save it as UTF-8 without one"},
		{"latin-1", "# one\n# caf\xe9\n", "gatehouse.toml:2: byte 0xe9 is not UTF-8; save the file as UTF-8"},
		{"unquoted secret", "[state]\npath = hunter2", `gatehouse.toml:2: not valid TOML: expected value but found "…" instead`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, problems := Parse("gatehouse.toml", []byte(test.text))
			if c != nil || problems.Error() != test.want {
				t.Errorf("got %s, want %s", problems.Error(), test.want)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if c, problems := Load(filepath.Join(dir, "gatehouse.toml")); c != nil || problems.Error() != "gatehouse.toml: no such file; gatehouse init writes one" {
		t.Errorf("missing file: %v", problems)
	}
	if c, problems := Load(dir); c != nil || len(problems.Errors()) != 1 {
		t.Errorf("directory: %v", problems)
	}
	big := filepath.Join(dir, "big.toml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, problems := Load(big); c != nil || problems.Error() != "big.toml: is larger than 4 MiB and no configuration" {
		t.Errorf("large file: %v", problems)
	}
}

// What init writes loads, and says what its author asked for.
func TestTemplate(t *testing.T) {
	digest := gate.DigestOf([]byte("gh_token"))
	text := Template("me", "sha256:"+digest.String(), "http://127.0.0.1:8621/mcp")
	c, problems := Parse("gatehouse.toml", []byte(text))
	if c == nil || len(problems) > 0 {
		t.Fatalf("the template has problems:\n%s", problems.Error())
	}
	me, demo := c.Caller("me"), c.Server("demo")
	if me == nil || !me.Admin || me.Token.Digest != digest || me.Zone != gate.ExternalGlobal {
		t.Errorf("caller %+v", me)
	}
	if demo == nil || !demo.Supplies() || demo.ApprovalWaived || !demo.Class.Fits(me.Zone.Ceiling()) {
		t.Errorf("server %+v", demo)
	}
	if !slices.Contains(c.Network.PrivateHosts, "127.0.0.1") {
		t.Error("the demo server's host is not among the private hosts")
	}
}

func TestNameWarnings(t *testing.T) {
	c := mustParse(t, `
[[caller]]
name = "tight"
token = "env:A"
name_budget = 60
name_prefix = 16
[[caller]]
name = "open"
token = "env:B"
`)
	names := []gate.LocalName{"mcp_a_" + gate.LocalName(strings.Repeat("x", 38)), "mcp_a_" + gate.LocalName(strings.Repeat("y", 39)), "mcp_a_" + gate.LocalName(strings.Repeat("z", 41))}
	got := c.NameWarnings(names)
	if len(got) != 3 || !strings.HasPrefix(got[0], string(names[1])+": 61 characters with the prefix of caller \"tight\"") ||
		!strings.HasPrefix(got[1], string(names[2])) || !strings.HasPrefix(got[2], string(names[2])+": 47 characters; ") {
		t.Errorf("warnings:\n%s", strings.Join(got, "\n"))
	}
}

func TestNameBudgetOfServers(t *testing.T) {
	_, problems := Parse("gatehouse.toml", []byte(`
[[caller]]
name = "cursor"
token = "env:A"
name_budget = 60
name_prefix = 20
[[server]]
id = "network-function-inventory"
url = "https://n.example.org/mcp"
data_class = "public_content"
[server.alias]
"a" = "short"
"b" = "much-longer-than-that"
`))
	if len(problems.Errors()) != 0 || len(problems.Warnings()) != 1 || !strings.Contains(problems.Error(), `alias of "b"`) {
		t.Errorf("problems:\n%s", problems.Error())
	}
}

func TestSpans(t *testing.T) {
	for in, want := range map[string]time.Duration{"20s": 20 * time.Second, "1h30m": 90 * time.Minute, "90d": 90 * 24 * time.Hour, "-1s": -time.Second} {
		if got, ok := parseSpan(in); !ok || got != want {
			t.Errorf("%q: got %s, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "20", "0", "+5", "1 s", "d", "99999999999999d", "1.5d", "s", "1e3s"} {
		if got, ok := parseSpan(in); ok {
			t.Errorf("%q: read as %s", in, got)
		}
	}
}
