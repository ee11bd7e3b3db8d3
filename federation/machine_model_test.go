package federation_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest/leak"
)

// This file is what the machine believes: who may call what, by the tables of the
// documentation and the machine's own books. Nothing in it asks the gateway.

// A person is a [[caller]] of the file.
type person struct {
	name     string
	token    string
	admin    bool
	zone     string   // "": the file does not say
	groups   []string // nil: not narrowed
	granted  bool     // has a grant to be represented at the server "mine"
	sessions []*session
}

// A session is one of the 2025 era, as its caller knows it.
type session struct {
	id      string
	elicits bool
	calls   int
}

// A place is a [[server]] of the file and what the catalogue must hold of it.
type place struct {
	id      string
	path    string // of its url
	class   string // "": the file does not say
	enabled bool
	waived  bool // requires_approval = false
	timeout string
	keys    string // that never change
	played  *played
	known   map[string]*known // by remote name
}

// A known tool was imported at some time.
type known struct {
	version  int // of the definition that was imported last
	vanished bool
	pin      int    // the version that a person enabled; 0: none
	pinnedAt string // the path it was enabled at
}

var (
	classes  = []string{"public_content", "editor_content", "source_code", "internal_configuration", "system_diagnostics", "secret_adjacent"}
	ceilings = map[string]string{"external_global": "editor_content", "external_eu": "internal_configuration",
		"private_hosted": "system_diagnostics", "local": "secret_adjacent"}
	zones    = []string{"", "external_global", "external_eu", "private_hosted", "local", "local", "local"}
	remotes  = []string{"alpha", "beta", "gamma", "delta"}
	channels = []string{"client", "client", "client", "client_then_console", "console"}
)

// reason is why a person is not offered a tool, "" when they are: checks 1 to 5.
func reason(p *person, at *place, remote string) string {
	k := at.known[remote]
	switch {
	case k == nil:
		return "not_registered"
	case !at.enabled, at.class == "", k.vanished, k.pin == 0, k.pin != k.version, k.pinnedAt != at.path:
		return "tool_disabled"
	case !p.admin:
		return "requires_admin"
	case p.groups != nil && !slices.Contains(p.groups, "mcp_"+at.id):
		return "configuration_group"
	case slices.Index(classes, at.class) > slices.Index(classes, ceilings[p.inZone()]):
		return "trust_zone"
	}
	return ""
}

// state is what operators are told of a tool.
func (at *place) state(k *known) string {
	switch {
	case !at.enabled:
		return "server_disabled"
	case at.class == "":
		return "unsupplied"
	case k.vanished:
		return "vanished"
	case k.pin == 0:
		return "disabled"
	case k.pin != k.version || k.pinnedAt != at.path:
		return "changed"
	}
	return "enabled"
}

func toolName(at *place, remote string) string { return "mcp_" + at.id + "_" + remote }

// definition is what a server says about a tool, in canonical form.
func definition(remote string, version int, elsewhere string) string {
	return fmt.Sprintf(`{"description":"Looks up %s.","icons":[{"src":"%s/icon.png"}],"inputSchema":{"properties":{"nonce":{"type":"string"}},"required":["nonce"],"type":"object"},"name":"%s","title":"version %d"}`,
		remote, elsewhere, remote, version)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// An attempt is one call that somebody tries.
type attempt struct {
	who       *person
	at        *place
	remote    string
	session   *session // nil in the 2026 era
	elicits   bool
	nonce     string
	arguments string
	cutOff    bool // its upstream closes a connection behind an answer before the work
}

// inZone is where p's results travel; what is not said is the least trusted zone.
func (p *person) inZone() string { return cmp.Or(p.zone, "external_global") }

func (a *attempt) tool() string { return toolName(a.at, a.remote) }

func (a *attempt) holder() string {
	if a.session == nil {
		return a.who.name
	}
	return a.who.name + " in " + a.session.id
}

// An asking is an attempt that waits for a person, with what was so when they were asked.
type asking struct {
	*attempt
	console bool
	state   string  // 2026
	flight  *flight // 2025: the call's own stream
	id      string  // 2025: of the question on it
	number  uint64  // at the console
	version int
	class   string
	zone    string
	until   time.Time
	said    string // "yes" or "no"; "" while nobody answered
	used    bool   // the call was sent, or refused for good
}

// stands reports whether a yes to q lets the call go now, if it is the first answer.
func (m *machine) stands(q *asking) bool {
	return reason(q.who, q.at, q.remote) == "" && q.at.known[q.remote].version == q.version && q.at.class == q.class &&
		q.who.inZone() == q.zone && m.now().Before(q.until) && !q.used
}

// channel is where an attempt's question goes, "" when nobody can be asked.
func (m *machine) channelOf(a *attempt) string {
	switch {
	case m.channel == "console":
		return "console"
	case a.elicits:
		return "client"
	case m.channel == "client_then_console":
		return "console"
	}
	return ""
}

// newWorld makes up the people, and the servers that are played for them.
func (m *machine) newWorld() {
	m.channel = "client"
	m.elsewhere = newElsewhere(m)
	issuer := newIssuer(m)
	for _, p := range []person{
		{name: "alice", admin: true, zone: "local", granted: true},
		{name: "carol", admin: true, zone: "local", granted: true},
		{name: "erin", admin: true, zone: "external_eu", groups: []string{"mcp_new", "mcp_mine"}},
		{name: "dave", admin: true},
		{name: "bob", zone: "local"},
	} {
		p.token = leak.Token()
		m.people = append(m.people, &p)
		if p.granted {
			issuer.subjects[m.secret("subject-"+p.name)] = p.name
		}
	}
	m.delegation = fmt.Sprintf("[delegation.company]\ntoken_endpoint = %q\nclient_id = \"gatehouse\"\nallowed_audiences = [\"mine\"]\n", issuer.url)
	for _, p := range m.people {
		if p.granted {
			m.delegation += fmt.Sprintf("[delegation.company.grants.%s]\nenabled = true\nsubject = \"file:%s\"\nallowed_audiences = [\"mine\"]\n", p.name, m.secretFile("subject-"+p.name))
		}
	}
	auth := func(mode, key, name string) string {
		return fmt.Sprintf("[server.auth]\nmode = %q\n%s = \"file:%s\"\n", mode, key, m.secretFile(name))
	}
	for _, s := range []struct {
		place
		*played
	}{
		{place{id: "old", class: "public_content", waived: true, keys: auth("bearer", "credential", "old")},
			&played{header: "Authorization", secret: "Bearer " + m.secret("old")}},
		{place{id: "new", class: "source_code", keys: auth("header", "credential", "new") + "header = \"X-Api-Key\"\n"},
			&played{modern: true, stream: true, header: "X-Api-Key", secret: m.secret("new")}},
		{place{id: "mine", class: "editor_content", waived: true, keys: auth("delegated", "discovery_credential", "mine") + "profile = \"company\"\naudience = \"mine\"\n"},
			&played{stream: true, header: "Authorization", secret: "Bearer " + m.secret("mine"), issuer: issuer}},
		{place{id: "bare"}, &played{modern: true}},
	} {
		at := s.place
		at.enabled, at.timeout, at.path, at.known, at.played = true, "20s", "/mcp", map[string]*known{}, s.played
		at.played.start(m, at.id)
		m.places = append(m.places, &at)
	}
}

// secretFile is where the operator keeps a secret; secret puts a new one there.
func (m *machine) secretFile(name string) string { return filepath.Join(m.secrets, name) }

func (m *machine) secret(name string) string {
	s := leak.Secret(name)
	if err := os.WriteFile(m.secretFile(name), []byte(s), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return s
}

// file is the configuration in the operator's mind.
func (m *machine) file() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[listen]\naddress = \"127.0.0.1:8620\"\n[network]\nprivate_hosts = [\"127.0.0.1\"]\n[approval]\nchannel = %q\n[audit]\narguments = \"full\"\n%s", m.channel, m.delegation)
	for _, p := range m.people {
		fmt.Fprintf(&b, "[[caller]]\nname = %q\ntoken = \"sha256:%s\"\nmax_calls_per_minute = 0\nmax_concurrent_calls = 0\n", p.name, gate.DigestOf([]byte(p.token)))
		if p.admin {
			b.WriteString("admin = true\n")
		}
		if p.zone != "" {
			fmt.Fprintf(&b, "trust_zone = %q\n", p.zone)
		}
		if p.groups != nil {
			fmt.Fprintf(&b, "groups = [%s]\n", quoted(p.groups))
		}
	}
	for _, at := range m.places {
		fmt.Fprintf(&b, "[[server]]\nid = %q\nurl = %q\ntimeout = %q\n", at.id, at.played.site.URL+at.path, at.timeout)
		if at.class != "" {
			fmt.Fprintf(&b, "data_class = %q\n", at.class)
		}
		if !at.enabled {
			b.WriteString("enabled = false\n")
		}
		if at.waived {
			b.WriteString("requires_approval = false\n")
		}
		if at.played.issuer != nil {
			b.WriteString("session = \"caller\"\nprotocol = \"2025-11-25\"\n")
		}
		b.WriteString(at.keys)
	}
	return b.String()
}

func quoted(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, fmt.Sprintf("%q", w))
	}
	return strings.Join(out, ", ")
}

// look holds the operator's view of the catalogue to the machine's books.
func (m *machine) look() {
	tools, err := m.api.Tools(m.t.Context(), "")
	if err != nil {
		m.t.Fatal(err)
	}
	there := map[string]control.Tool{}
	for _, tool := range tools {
		if !tool.Own {
			there[tool.Name] = tool
		}
	}
	for _, at := range m.places {
		for _, remote := range remotes {
			k, tool := at.known[remote], there[toolName(at, remote)]
			delete(there, toolName(at, remote))
			switch {
			case k == nil && tool.Name != "":
				m.broke(7, "%s is in the catalogue, and nobody imported it", tool.Name)
			case k == nil:
			case tool.Name == "":
				m.broke(7, "%s was imported and is gone", toolName(at, remote))
			case tool.Definition != digest(definition(remote, k.version, m.elsewhere.site.URL)):
				m.broke(7, "%s is not in the catalogue as it was imported, in version %d", tool.Name, k.version)
			case tool.State != at.state(k):
				m.broke(7, "%s is %s, want %s", tool.Name, tool.State, at.state(k))
			}
		}
	}
	for name := range there {
		m.broke(7, "%s is in the catalogue, and no server ever listed it", name)
	}
}
