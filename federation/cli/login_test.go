package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/upstreamtest/leak"
)

// A hosted is a daemon before one hosted server that wants people to log in.
type hosted struct {
	t       *testing.T
	dir     string
	address string
	auth    *authserver.Server
	server  *authserver.Resource
}

const publicHost = "gate.example.org"

// newHosted starts all three. authKeys is added to the server's [server.auth].
func newHosted(t *testing.T, listenKeys, authKeys string) *hosted {
	t.Helper()
	h := &hosted{t: t, dir: t.TempDir(), auth: authserver.New(t)}
	h.server = authserver.NewResource(t, h.auth, "", upstreamtest.New(upstreamtest.Profile{Modern: true}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.address = l.Addr().String()
	l.Close()
	leak.Keep(t, h.dir, "vault.age", "next.age")
	h.identity("vault.age")
	h.write("gatehouse.toml", fmt.Sprintf(`
[listen]
address = %q
%s
[network]
private_hosts = ["127.0.0.1"]
[vault]
identity = "file:%s"
[[caller]]
name = "me"
token = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
admin = true
trust_zone = "local"
[[server]]
id = "hosted"
url = %q
data_class = "public_content"
requires_approval = false
[server.auth]
mode = "oauth"
%s
`, h.address, listenKeys, filepath.Join(h.dir, "vault.age"), h.server.Endpoint(), authKeys))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan string, 1)
	go func() {
		var out bytes.Buffer
		code := Run(ctx, "test", []string{"--config", h.path("gatehouse.toml"), "serve", "--debug"}, strings.NewReader(""), io.Discard, &out, h.getenv)
		leak.Write(t, "serve.out", out.String())
		done <- fmt.Sprintf("%d %s", code, out.String())
	}()
	t.Cleanup(func() {
		stop()
		if end := <-done; !strings.HasPrefix(end, "0 ") {
			t.Errorf("the daemon ended with %s", end)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(h.path("gatehouse.db.sock")); err == nil {
			return h
		}
		if time.Now().After(deadline) {
			t.Fatal("no daemon")
		}
	}
}

func (h *hosted) path(name string) string { return filepath.Join(h.dir, name) }

func (h *hosted) getenv(string) string { return "" }

func (h *hosted) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(h.path(name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// identity makes an identity for the vault.
func (h *hosted) identity(name string) {
	h.t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(name, id.String()+"\n")
}

// run runs one command to its end.
func (h *hosted) run(stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Run(h.t.Context(), "test", append([]string{"--config", h.path("gatehouse.toml")}, args...), stdin, &out, &errs, h.getenv)
	leak.Write(h.t, "commands.out", out.String()+errs.String())
	return code, out.String(), errs.String()
}

// state is the server's credential_state.
func (h *hosted) state() string {
	h.t.Helper()
	code, out, errs := h.run(nil, "servers", "list", "--json")
	var servers []struct {
		State string `json:"credential_state"`
	}
	if err := json.Unmarshal([]byte(out), &servers); err != nil || code != 0 || len(servers) != 1 {
		h.t.Fatalf("%d %s %s", code, out, errs)
	}
	return servers[0].State
}

var loginURL = regexp.MustCompile(`(?m)^https?://\S+/authorize\?\S+$`)

// A browsing is what a command prints, while it still runs. The first url on it is
// opened, as a person would.
type browsing struct {
	mu     sync.Mutex
	text   bytes.Buffer
	opened bool
	open   func(url string)
	work   sync.WaitGroup
}

func (s *browsing) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if found := loginURL.Find(s.text.Bytes()); found != nil && !s.opened && bytes.HasSuffix(s.text.Bytes(), []byte("\n")) {
		s.opened = true
		u := string(found)
		s.work.Go(func() { s.open(u) })
	}
	return len(p), nil
}

// login runs `gatehouse login` with a browser that agrees to everything.
func (h *hosted) login() (code int, stdout, stderr string) {
	var errs bytes.Buffer
	s := &browsing{open: func(u string) {
		resp, err := http.Get(u)
		if err != nil {
			h.t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			h.t.Errorf("the browser ended on HTTP %d", resp.StatusCode)
		}
	}}
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	code = Run(ctx, "test", []string{"--config", h.path("gatehouse.toml"), "login", "hosted"}, strings.NewReader(""), s, &errs, h.getenv)
	s.work.Wait()
	leak.Write(h.t, "commands.out", s.text.String()+errs.String())
	return code, s.text.String(), errs.String()
}

// loginEntries are the details of what is on record about logins.
func (h *hosted) loginEntries() (out []string) {
	h.t.Helper()
	if err := ledger.Read(h.path("gatehouse.ledger"), 0, func(_ []byte, e gate.Entry) error {
		if e.Kind == gate.KindLogin {
			out = append(out, fmt.Sprintf("%s %s %s", e.Verdict, e.Server, e.Detail))
		}
		return nil
	}); err != nil {
		h.t.Fatal(err)
	}
	return out
}

func TestLoginRegistersImportsAndLogsOut(t *testing.T) {
	h := newHosted(t, "", "")
	if got := h.state(); got != "login needed" {
		t.Errorf("state %q before the login", got)
	}
	if code, out, errs := h.run(nil, "import", "hosted"); code != 1 || !strings.Contains(out+errs, "gatehouse login") {
		t.Errorf("import without a login: %d %s", code, errs)
	}
	if _, out, _ := h.run(nil, "servers"); !strings.Contains(out, "login needed") {
		t.Errorf("the table does not say so:\n%s", out)
	}
	code, out, errs := h.login()
	if code != 0 || !strings.Contains(out, "logged in at hosted") {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	if got := h.state(); got != "ok" {
		t.Errorf("state %q after the login", got)
	}
	if about := h.auth.Registered(); len(about) != 1 || about[0]["application_type"] != "native" {
		t.Errorf("registered as %v", about)
	}
	exchange := h.auth.TokenRequests()[0]
	if exchange.Get("code_verifier") == "" || exchange.Get("resource") != h.server.Endpoint() {
		t.Error("the code was redeemed without PKCE or resource")
	}
	if code, _, errs := h.run(nil, "import", "hosted"); code != 0 || len(h.server.Visits()) == 0 {
		t.Errorf("import: %d %s", code, errs)
	}
	last := h.server.Visits()[0].Token
	code, _, errs = h.run(nil, "logout", "hosted")
	if code != 0 || h.auth.Revocations() == 0 || h.state() != "login needed" {
		t.Errorf("logout: %d %s, %d revocations, state %q", code, errs, h.auth.Revocations(), h.state())
	}
	if code, _, _ := h.run(nil, "logout", "hosted"); code != 1 {
		t.Error("logged out twice")
	}
	if _, out, _ := h.run(nil, "secret", "list"); strings.Contains(out, "oauth-") {
		t.Error("a login is left in the vault")
	}
	want := []string{"ok hosted login at issuer " + h.auth.Issuer(), "ok hosted logout", "refused hosted logout: nobody has logged in at this server; log in with: gatehouse login <id>"}
	if got := h.loginEntries(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("on record:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(out+errs, last[:20]) {
		t.Error("a token is on the screen")
	}
}

// Our metadata document is our client id where such documents are understood; a
// configured client comes before it.
func TestLoginByDocumentAndConfiguredClient(t *testing.T) {
	document := func(h *hosted) func(string) ([]byte, error) {
		return func(id string) ([]byte, error) {
			u, err := url.Parse(id)
			if err != nil || u.Host != publicHost {
				return nil, fmt.Errorf("%s is not at the public url", id)
			}
			req, err := http.NewRequest(http.MethodGet, "http://"+h.address+u.Path, nil)
			if err != nil {
				return nil, err
			}
			req.Host = publicHost
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return nil, err
			}
			defer resp.Body.Close()
			return io.ReadAll(resp.Body)
		}
	}
	const public = `public_url = "https://` + publicHost + `"`
	t.Run("document", func(t *testing.T) {
		h := newHosted(t, public, "")
		h.auth.Configure(func(s *authserver.Settings) { s.Document = document(h) })
		if code, out, errs := h.login(); code != 0 {
			t.Fatalf("%d\n%s%s", code, out, errs)
		}
		if id := h.auth.TokenRequests()[0].Get("client_id"); id != "https://"+publicHost+"/client-metadata.json" || len(h.auth.Registered()) != 0 {
			t.Errorf("known as %q, registered %d times", id, len(h.auth.Registered()))
		}
	})
	t.Run("configured", func(t *testing.T) {
		value := leak.Secret("client")
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHosted(t, public, "client_id = \"known\"\nclient_secret = \"file:"+secret+"\"")
		h.auth.Configure(func(s *authserver.Settings) { s.Document = document(h) })
		h.auth.AddClient("known", value)
		if code, out, errs := h.login(); code != 0 || h.auth.BasicRequests() != 1 || len(h.auth.Registered()) != 0 {
			t.Fatalf("%d, %d with basic\n%s%s", code, h.auth.BasicRequests(), out, errs)
		}
	})
}

// An answer of another issuer, a person who says no: nothing is kept, and it is
// on record.
func TestLoginRefused(t *testing.T) {
	h := newHosted(t, "", "")
	for _, change := range []func(url.Values){
		func(q url.Values) { q.Set("iss", "https://evil.example.org") },
		func(q url.Values) { q.Del("iss") },
		func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") },
	} {
		h.auth.Configure(func(s *authserver.Settings) { s.Answer = change })
		if code, _, errs := h.login(); code != 1 || !strings.Contains(errs, `login at "hosted"`) {
			t.Errorf("%d %s", code, errs)
		}
	}
	if got := h.state(); got != "login needed" || len(h.auth.TokenRequests()) != 0 {
		t.Errorf("state %q, %d token requests", got, len(h.auth.TokenRequests()))
	}
	if got := h.loginEntries(); len(got) != 3 || !strings.HasPrefix(got[0], "refused hosted login: ") {
		t.Errorf("on record: %q", got)
	}
	for _, args := range [][]string{{"login", "nobody"}, {"logout", "nobody"}} {
		if code, _, errs := h.run(nil, args...); code != 1 || !strings.Contains(errs, "nobody") {
			t.Errorf("%v: %d %s", args, code, errs)
		}
	}
}

// Without a browser here, the address that it ended on elsewhere is pasted.
func TestLoginByPaste(t *testing.T) {
	h := newHosted(t, "", "")
	keyboard, hands := io.Pipe()
	s := &browsing{open: func(u string) {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Get(u)
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		fmt.Fprintln(hands, resp.Header.Get("Location"))
	}}
	var errs bytes.Buffer
	code := Run(t.Context(), "test", []string{"--config", h.path("gatehouse.toml"), "login", "hosted", "--paste"}, keyboard, s, &errs, h.getenv)
	s.work.Wait()
	if code != 0 || h.state() != "ok" {
		t.Fatalf("%d, state %q\n%s%s", code, h.state(), s.text.String(), errs.String())
	}
	for _, pasted := range []string{"", "https://example.org/\n", "http://127.0.0.1:8621/callback?state=forged&code=x\n"} {
		if code, _, _ := h.run(strings.NewReader(pasted), "login", "hosted", "--paste"); code != 1 {
			t.Errorf("%q was taken for an answer", pasted)
		}
	}
}

func TestSecretRekey(t *testing.T) {
	h, value := newHosted(t, "", ""), leak.Secret("value")
	if code, _, errs := h.run(strings.NewReader(value+"\n"), "secret", "set", "one"); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := h.login(); code != 0 {
		t.Fatal(errs)
	}
	h.identity("next.age")
	next := "file:" + h.path("next.age")
	for _, bad := range []string{"literal", "vault:one", "file:" + h.path("missing.age")} {
		if code, _, _ := h.run(nil, "secret", "rekey", bad); code != 1 {
			t.Errorf("rekeyed to %q", bad)
		}
	}
	code, out, errs := h.run(nil, "secret", "rekey", next)
	if code != 0 || !strings.Contains(out, "2 secrets sealed") || !strings.Contains(out, next) {
		t.Fatalf("%d\n%s%s", code, out, errs)
	}
	// The old identity opens nothing any more; the daemon goes on with the new one.
	if err := os.Remove(h.path("vault.age")); err != nil {
		t.Fatal(err)
	}
	if got := h.state(); got != "ok" {
		t.Errorf("state %q after the rekey", got)
	}
	if _, problems := config.Load(h.path("gatehouse.toml")); problems.Error() != "" && strings.Contains(problems.Error(), value) {
		t.Error("the secret is in a problem")
	}
}
