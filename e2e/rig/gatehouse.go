package rig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest/leak"
)

// A Caller is one [[caller]] of a configuration.
type Caller struct {
	Name  string
	Admin bool
	Zone  string // trust_zone; left out when empty
	Extra string // further lines
}

// An Upstream is one [[server]] of a configuration.
type Upstream struct {
	ID, URL string
	Class   string // public_content when empty, Unclassified for none
	Free    bool   // requires_approval = false
	Extra   string // further lines
}

// Unclassified leaves a server without a data class.
const Unclassified = "-"

// Settings are what a test's configuration says.
type Settings struct {
	ApprovalTimeout string // 5m when empty
	Callers         []Caller
	Servers         []Upstream
	Extra           string // further tables
}

// A Gatehouse is the binary under test with a folder, a configuration and
// callers of its own.
type Gatehouse struct {
	Dir, Config, Base, URL string

	binary string
	port   int
	tokens map[string]string
	daemon *Process
}

// New writes a configuration; nothing runs yet.
func New(t *testing.T, s Settings) *Gatehouse {
	t.Helper()
	g := &Gatehouse{Dir: t.TempDir(), binary: Binary(t), port: FreePort(t), tokens: map[string]string{}}
	leak.Keep(t, g.Dir, identity)
	g.Config = filepath.Join(g.Dir, "gatehouse.toml")
	g.Base = fmt.Sprintf("http://127.0.0.1:%d", g.port)
	g.URL = g.Base + "/mcp"
	g.Configure(t, s)
	return g
}

// Configure writes the configuration anew, with the same address, and the same
// tokens for callers that stay.
func (g *Gatehouse) Configure(t *testing.T, s Settings) {
	t.Helper()
	var b strings.Builder
	if s.ApprovalTimeout == "" {
		s.ApprovalTimeout = "5m"
	}
	fmt.Fprintf(&b, "[listen]\naddress = \"127.0.0.1:%d\"\n\n[network]\nprivate_hosts = [\"127.0.0.1\", \"localhost\"]\n\n", g.port)
	fmt.Fprintf(&b, "[approval]\ntimeout = %q\n\n", s.ApprovalTimeout)
	for _, c := range s.Callers {
		digest := sha256.Sum256([]byte(g.token(c.Name)))
		fmt.Fprintf(&b, "[[caller]]\nname = %q\ntoken = \"sha256:%s\"\nadmin = %v\n", c.Name, hex.EncodeToString(digest[:]), c.Admin)
		if c.Zone != "" {
			fmt.Fprintf(&b, "trust_zone = %q\n", c.Zone)
		}
		fmt.Fprintf(&b, "max_calls_per_minute = 0\n%s\n", lines(c.Extra))
	}
	for _, u := range s.Servers {
		class := u.Class
		if class == "" {
			class = "public_content"
		}
		fmt.Fprintf(&b, "[[server]]\nid = %q\nname = %q\nurl = %q\nrequires_approval = %v\n", u.ID, "The "+u.ID+" server", u.URL, !u.Free)
		if class != Unclassified {
			fmt.Fprintf(&b, "data_class = %q\n", class)
		}
		fmt.Fprintf(&b, "%s\n", lines(u.Extra))
	}
	b.WriteString(lines(s.Extra))
	if err := os.WriteFile(g.Config, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lines(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

func (g *Gatehouse) token(caller string) string {
	if g.tokens[caller] == "" {
		g.tokens[caller] = leak.Token()
	}
	return g.tokens[caller]
}

// identity is the file that opens the vault, the only one of the folder with a
// secret in it.
const identity = "vault.age"

// Vault makes an identity for the vault and returns the table that names it.
func (g *Gatehouse) Vault(t *testing.T) string {
	t.Helper()
	path := filepath.Join(g.Dir, identity)
	if err := os.WriteFile(path, []byte(vaultKey), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("[vault]\nidentity = \"file:%s\"\n", path)
}

// vaultKey opens the vaults of the tests, which live for seconds.
const vaultKey = "AGE-SECRET-KEY-16N8A6AKNPSM995A0TR32K9JEKXJU49WQDTLST4MPTD86XHKH2EHSQJNPTS\n"

// Token returns the token of a caller of the configuration.
func (g *Gatehouse) Token(t *testing.T, caller string) string {
	t.Helper()
	if g.tokens[caller] == "" {
		t.Fatalf("no caller %q", caller)
	}
	return g.tokens[caller]
}

// Serve starts the daemon and returns when it is ready.
func (g *Gatehouse) Serve(t *testing.T) *Process {
	t.Helper()
	g.daemon = Start(t, "gatehouse serve", g.port, nil, g.binary, "serve", "--debug", "--config", g.Config)
	var last string
	for limit := time.Now().Add(20 * time.Second); time.Now().Before(limit); time.Sleep(30 * time.Millisecond) {
		response, err := http.Get(g.Base + "/readyz")
		if err != nil {
			last = err.Error()
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return g.daemon
		}
		last = response.Status
	}
	t.Fatalf("gatehouse does not become ready: %s\n%s", last, g.daemon.Output())
	return nil
}

// Daemon is the running daemon.
func (g *Gatehouse) Daemon() *Process { return g.daemon }

// Command is the command line of a gatehouse command for this configuration.
func (g *Gatehouse) Command(args ...string) []string {
	return append([]string{g.binary, "--config", g.Config}, args...)
}

// Run runs a command, whatever its exit code.
func (g *Gatehouse) Run(t *testing.T, args ...string) Result {
	t.Helper()
	return Run(t, "", g.Command(args...)...)
}

// Do runs a command that must succeed and returns what it printed.
func (g *Gatehouse) Do(t *testing.T, args ...string) string {
	t.Helper()
	r := g.Run(t, args...)
	if r.Code != 0 {
		t.Fatalf("gatehouse %s: exit code %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// JSON runs a command with --json that must succeed and decodes what it printed:
// one value, or one a line when into is a pointer to a slice.
func JSON[T any](t *testing.T, g *Gatehouse, args ...string) []T {
	t.Helper()
	out := g.Do(t, append(args, "--json")...)
	var all []T
	if json.Unmarshal([]byte(out), &all) == nil {
		return all
	}
	decoder := json.NewDecoder(strings.NewReader(out))
	for decoder.More() {
		var one T
		if err := decoder.Decode(&one); err != nil {
			t.Fatalf("gatehouse %s --json printed %q: %v", strings.Join(args, " "), out, err)
		}
		all = append(all, one)
	}
	return all
}

// Open imports every server and enables all of its tools.
func (g *Gatehouse) Open(t *testing.T) {
	t.Helper()
	g.Do(t, "import", "--all")
	g.Do(t, "tools", "enable", "mcp_*")
}

// An Entry is what the tests read of a ledger entry.
type Entry struct {
	Number     uint64 `json:"number"`
	Kind       string `json:"kind"`
	Caller     string `json:"caller"`
	Tool       string `json:"tool"`
	Server     string `json:"server"`
	RemoteName string `json:"remote_name"`
	Verdict    string `json:"verdict"`
	Reason     string `json:"reason"`
	Detail     string `json:"detail"`
	Approval   uint64 `json:"approval"`
	Intent     uint64 `json:"intent"`
}

// Ledger returns the entries so far, oldest first.
func (g *Gatehouse) Ledger(t *testing.T) []Entry {
	t.Helper()
	return JSON[Entry](t, g, "audit", "export")
}

// Since returns the entries after one, and waits a moment for one of kind, since
// outcomes may lag behind.
func (g *Gatehouse) Since(t *testing.T, after uint64, kind string) []Entry {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var found []Entry
		has := false
		for _, e := range g.Ledger(t) {
			if e.Number > after {
				found = append(found, e)
				has = has || e.Kind == kind
			}
		}
		if has || time.Now().After(limit) {
			return found
		}
	}
}

// Last returns the number of the newest entry, once nothing is added: a caller has
// his refusal or result before the entry about it must be there.
func (g *Gatehouse) Last(t *testing.T) uint64 {
	t.Helper()
	newest := func() uint64 {
		entries := g.Ledger(t)
		if len(entries) == 0 {
			return 0
		}
		return entries[len(entries)-1].Number
	}
	last := newest()
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); {
		time.Sleep(250 * time.Millisecond)
		now := newest()
		if now == last {
			break
		}
		last = now
	}
	return last
}
