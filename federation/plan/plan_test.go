package plan_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"gatehouse/federation/catalog"
	"gatehouse/federation/config"
	"gatehouse/federation/plan"
	"gatehouse/gate"
)

var update = flag.Bool("update", false, "write what is printed into the files")

// A shelf is a store that holds what it was made with.
type shelf []catalog.StoredTool

func (s shelf) Load() ([]catalog.StoredServer, []catalog.StoredTool, error) { return nil, s, nil }

func (shelf) Save(catalog.StoredServer, []catalog.StoredTool, []gate.RemoteName) error { return nil }

var then = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)

func settings(cfg *config.Config) (out []catalog.ServerSettings, e gate.Enforcement) {
	for _, s := range cfg.Servers {
		out = append(out, catalog.ServerSettings{ID: s.ID, Name: s.Name, URL: s.URL, AuthIdentity: s.Auth.Identity(), Enabled: s.Enabled,
			Class: s.Class, ApprovalWaived: s.ApprovalWaived, ApprovalMemory: s.ApprovalMemory, CallsPerMinute: s.CallsPerMinute, Alias: s.Alias})
	}
	if cfg.Gate.Observe {
		e = gate.Observe
	}
	return out, e
}

// sides makes both sides of one catalogue. Each line of tools is "server
// remote", with "off" behind when nobody enabled it; what is enabled was enabled
// at the server of the old file.
func sides(t *testing.T, before, after *config.Config, tools string) (from, to plan.Side) {
	t.Helper()
	var store shelf
	for line := range strings.Lines(tools) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		definition := []byte(fmt.Sprintf(`{"inputSchema":{"properties":{"n":{"type":"integer"}},"type":"object"},"name":%q}`, words[1]))
		tool := catalog.StoredTool{Server: gate.ServerID(words[0]), Remote: gate.RemoteName(words[1]), Definition: definition,
			Digest: gate.DigestOf(definition), FirstSeen: then, LastSeen: then}
		if len(words) == 2 {
			tool.Pin = &catalog.StoredPin{Digest: tool.Digest, Time: then}
			at := before.Server(tool.Server)
			if at == nil {
				at = after.Server(tool.Server)
			}
			tool.Pin.URL, tool.Pin.Identity = at.URL, gate.DigestOf([]byte(at.Auth.Identity()))
		}
		store = append(store, tool)
	}
	c, err := catalog.Open(catalog.Options{Store: store, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	servers, e := settings(before)
	c.Configure(servers, nil, e)
	servers, e = settings(after)
	return plan.Side{Config: before, Catalogue: c.Snapshot()}, plan.Side{Config: after, Catalogue: c.Preview(servers, e)}
}

func parse(t *testing.T, name string, data []byte) *config.Config {
	t.Helper()
	cfg, problems := config.Parse("/etc/gatehouse/"+name, data)
	if cfg == nil {
		t.Fatal(problems)
	}
	return cfg
}

// calls reads lines of "caller tool arguments"; "-" stands for arguments that
// are not on record.
func calls(text string) (out []plan.Call) {
	for line := range strings.Lines(text) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		call := plan.Call{Number: uint64(len(out) + 1), Time: then, Caller: gate.CallerName(words[0]), Tool: gate.LocalName(words[1])}
		if words[2] != "-" {
			call.Arguments = []byte(words[2])
		}
		out = append(out, call)
	}
	return out
}

// TestScreens holds every plan of testdata against its screen: what it says,
// how wide it is, which way it goes, and that it survives as JSON.
func TestScreens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := func(name string) []byte {
				for _, f := range archive.Files {
					if f.Name == name {
						return f.Data
					}
				}
				return nil
			}
			from, to := sides(t, parse(t, "old.toml", part("old.toml")), parse(t, "new.toml", part("new.toml")), string(part("tools")))
			p := plan.Compare(from, to)
			if recorded := part("calls"); recorded != nil {
				p.Replay = plan.Judge(from, to, calls(string(recorded)))
			}
			got := p.String() + "\n" + p.Summary() + "\n"
			for line := range strings.Lines(p.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%d characters: %s", n, line)
				}
			}
			if first, _, _ := strings.Cut(string(archive.Comment), ":"); first != p.Effect.String() {
				t.Errorf("the plan %s, the file says %q", p.Effect, first)
			}
			if want := string(part("want")); got != want {
				if *update {
					i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
					archive.Files[i].Data = []byte(got)
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			survives(t, p)
		})
	}
}

func survives(t *testing.T, p *plan.Plan) {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(":null")) {
		t.Errorf("a list is null: %s", raw)
	}
	var back plan.Plan
	if err := json.Unmarshal(raw, &back); err != nil || back.String() != p.String() || back.Effect != p.Effect {
		t.Errorf("it comes back as\n%s\n%v", back.String(), err)
	}
}

const base = `[listen]
address = "127.0.0.1:8620"
[network]
private_hosts = ["127.0.0.1"]
[[caller]]
name = "alice"
token = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
admin = true
trust_zone = "private_hosted"
groups = ["mcp_crm"]
max_calls_per_minute = 10
[[server]]
id = "crm"
url = "https://crm.example.org/mcp"
data_class = "source_code"
requires_approval = true
[server.auth]
mode = "bearer"
credential = "env:CRM"
`

// TestEffects is the table of what may be applied without anybody looking.
func TestEffects(t *testing.T) {
	w, n, z := plan.Widens, plan.Narrows, plan.Neutral
	for _, test := range []struct {
		name, old, new string
		want           plan.Effect
		restart        bool
	}{
		{"nothing", "", "", z, false},
		{"a comment", "[listen]", "# hello\n[listen]", z, false},
		{"administrator", "admin = true", "admin = false", n, false},
		{"zone down", "private_hosted", "external_global", n, false},
		{"zone up", "private_hosted", "local", w, false},
		{"no groups", `groups = ["mcp_crm"]`, "groups = []", n, false},
		{"every group", "groups = [\"mcp_crm\"]\n", "", w, false},
		{"another group", `["mcp_crm"]`, `["mcp_other"]`, w, false},
		{"limit up", "minute = 10", "minute = 11", w, false},
		{"limit gone", "minute = 10", "minute = 0", w, false},
		{"limit down", "minute = 10", "minute = 9", n, false},
		{"token", "9f86", "9f87", w, false},
		{"caller renamed", `name = "alice"`, `name = "bob"`, w, false},
		{"portable", `admin = true`, "admin = true\nschema_dialect = \"portable\"", z, false},
		{"class up", "source_code", "secret_adjacent", n, false},
		{"class down", "source_code", "public_content", w, false},
		{"class gone", "data_class = \"source_code\"\n", "", n, false},
		{"approval waived", "approval = true", "approval = false", w, false},
		{"approval remembered", "requires_approval = true", "approval_memory = \"10m\"", w, false},
		{"switched off", "requires_approval = true", "enabled = false", n, false},
		{"url", "crm.example.org", "crm.example.com", w, false},
		{"path of the url", "/mcp\"", "/other\"", w, false},
		{"credential", "env:CRM", "env:CRM2", w, false},
		{"timeout", "requires_approval = true", "timeout = \"3s\"", z, false},
		{"budget", "[network]", "[operation]\ntimeout = \"3s\"\n[network]", z, false},
		{"protocol", "requires_approval = true", "protocol = \"2026-07-28\"", z, false},
		{"authority", "requires_approval = true", "ca_file = \"ca.pem\"", w, false},
		{"no private host", `["127.0.0.1"]`, `[]`, n, false},
		{"private host", `["127.0.0.1"]`, `["127.0.0.1", "10.0.0.1"]`, w, false},
		{"allowed hosts", "[network]", "[network]\nallowed_hosts = [\"crm.example.org\"]", n, false},
		{"observe", "[network]", "[gate]\ndata_class_enforcement = \"observe\"\n[network]", w, false},
		{"console", "[network]", "[approval]\nchannel = \"console\"\n[network]", n, false},
		{"client or console", "[network]", "[approval]\nchannel = \"client_then_console\"\n[network]", w, false},
		{"full record", "[network]", "[audit]\narguments = \"full\"\n[network]", w, false},
		{"issuer", "[network]", "[oidc]\nissuer = \"https://id.example.org\"\naudience = \"us\"\n[network]", w, false},
		{"address", "127.0.0.1:8620", "127.0.0.1:8621", z, true},
		{"state", "[network]", "[state]\npath = \"other.db\"\n[network]", z, true},
		{"vault", "[network]", "[vault]\nidentity = \"env:VAULT\"\n[network]", z, true},
		{"retention", "[network]", "[audit]\nretention = \"90d\"\n[network]", z, true},
		{"server added", "[[server]]", "[[server]]\nid = \"new\"\nurl = \"https://new.example.org/mcp\"\ndata_class = \"public_content\"\n[[server]]", z, false},
		{"server gone", base[strings.Index(base, "[[server]]"):], "", n, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := strings.Replace(base, test.old, test.new, 1)
			from, to := sides(t, parse(t, "old.toml", []byte(base)), parse(t, "new.toml", []byte(next)), "crm find\ncrm get\ncrm drop off\n")
			p := plan.Compare(from, to)
			if p.Effect != test.want || p.Safe() != (test.want != w) || (len(p.Restart()) > 0) != test.restart {
				t.Errorf("it %s, want %s:\n%s", p.Effect, test.want, p)
			}
			if changes := test.old != test.new && test.name != "a comment"; p.Empty() == changes {
				t.Errorf("empty is %v:\n%s", p.Empty(), p)
			}
		})
	}
}

// TestThereAndBack: what one direction opens the other closes.
func TestThereAndBack(t *testing.T) {
	before := parse(t, "old.toml", []byte(base))
	after := parse(t, "new.toml", []byte(strings.Replace(base, "admin = true", "admin = false", 1)))
	from, to := sides(t, before, after, "crm find\ncrm get\n")
	there, back := plan.Compare(from, to), plan.Compare(to, from)
	if len(there.Access) != 2 || len(back.Access) != 2 {
		t.Fatalf("%d there, %d back", len(there.Access), len(back.Access))
	}
	for i, a := range there.Access {
		b := back.Access[i]
		if a.Gains || !b.Gains || a.Reason != gate.RequiresAdmin || b.Reason != a.Reason || a.Tool != b.Tool {
			t.Errorf("%+v there, %+v back", a, b)
		}
	}
}
