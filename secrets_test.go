package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"gatehouse/federation/trace/tracetest"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/upstreamtest/leak"
)

// What opens something here, by name. Each is a text that occurs nowhere by
// chance, so that finding any of it anywhere is a leak.
var planted = map[string]string{
	"caller token":              "caller-" + leak.Mark + "-Zq4Wm1Xt8Rk2Vb7Yh3Nc",
	"bearer credential":         "bearer-" + leak.Mark + "-Pf6Hs9Ld0Gj3Kq5Tz8Wu",
	"header credential":         "header-" + leak.Mark + "-Mx2Bv7Cn4Aq9Sw1Ed6Rf",
	"client secret":             "client-" + leak.Mark + "-Ty5Gu8Hi1Jo4Kp7Lz0Xc",
	"secret in the vault":       "vaulted-" + leak.Mark + "-Vb3Nm6Qw9Er2Ty5Ui8Op",
	"access token, misspelt":    "at-secret-" + leak.Mark + "-9f2c7d41e8b05a36",
	"secret in the url":         "url-" + leak.Mark + "-As1Df4Gh7Jk0Lz3Xc6Vb",
	"token in the query":        "query-" + leak.Mark + "-Nm9Qw2Er5Ty8Ui1Op4As",
	"password in the arguments": "hunter2-" + leak.Mark + "-Df7Gh0Jk3Lz6Xc9Vb2",
	"wrong token":               "wrong-" + leak.Mark + "-Nm5Qw8Er1Ty4Ui7Op0As",
	"token in an error":         "echoed-" + leak.Mark + "-Gh3Jk6Lz9Xc2Vb5Nm8Qw",
	"header for the collector":  "collector-" + leak.Mark + "-Hw5Jx8Ku1Lv4Mz7Nb0Pc",
	"cookie":                    "cookie-" + leak.Mark + "-Er4Ty7Ui0Op3As6Df9Gh",
}

// forged imitates a line of our log in a text that a server chose.
const forged = "harmless\n2026-12-01T00:00:00Z level=INFO msg=approved tool=mcp_take_all"

// A scene is a running binary and everything that anybody can read of it
// afterwards, except what is meant for whoever asked.
type scene struct {
	t       *testing.T
	dir     string
	address string
	env     []string

	mu    sync.Mutex
	found map[string][]byte // what is searched, by where it was
	runs  int
}

func (s *scene) keep(where string, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found[where] = append(s.found[where], text...)
}

func (s *scene) command(args ...string) *exec.Cmd {
	c := exec.Command("gatehouse", args...)
	c.Dir, c.Env = s.dir, append(os.Environ(), s.env...)
	return c
}

// run runs a command to its end and keeps what it prints.
func (s *scene) run(stdin string, args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	var out, errs bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
	_ = c.Run() // some are meant to fail
	s.runs++
	s.keep(fmt.Sprintf("output of gatehouse %s (%d)", strings.Join(args, " "), s.runs), append(out.Bytes(), errs.Bytes()...))
	return out.String() + errs.String()
}

// request makes one request and keeps the reply, with its headers.
func (s *scene) request(method, path, token, body string, header map[string]string) (http.Header, []byte) {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Cookie", "session="+planted["cookie"])
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.runs++
	s.keep(fmt.Sprintf("reply %d to %s %s", s.runs, method, strings.SplitN(path, "?", 2)[0]), reply)
	return resp.Header, reply
}

// call makes one call of 2026-07-28.
func (s *scene) call(token, tool, arguments string) []byte {
	s.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`, tool, arguments)
	_, reply := s.request(http.MethodPost, "/mcp?token="+planted["token in the query"], token, body,
		map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool})
	return reply
}

// forms are the ways in which a secret could be written down.
func forms(secret string) map[string]string {
	out := map[string]string{"as it is": secret, "in hex": hex.EncodeToString([]byte(secret)), "in upper-case hex": strings.ToUpper(hex.EncodeToString([]byte(secret)))}
	for shift := range 3 {
		// Base64 depends on where in the encoded text the secret begins. What its
		// neighbours change is at most a group at either end.
		for name, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64url": base64.URLEncoding} {
			text := encoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
			out[fmt.Sprintf("in %s (%d)", name, shift)] = text[4 : len(text)-4]
		}
	}
	if i := strings.LastIndexByte(secret, '.'); i > 0 && strings.Count(secret, ".") == 2 {
		out["its signature"] = secret[i+1:]
		out["its claims"] = strings.Split(secret, ".")[1]
	} else if len(secret) >= 20 {
		out["its beginning"] = secret[:14]
		out["its end"] = secret[len(secret)-12:]
	}
	return out
}

// search looks for every form of every secret in everything that was kept.
func (s *scene) search(secrets map[string]string) {
	s.t.Helper()
	for name, secret := range secrets {
		for how, text := range forms(secret) {
			for where, content := range s.found {
				if i := bytes.Index(content, []byte(text)); i >= 0 {
					s.t.Errorf("%s is in %s, %s: …%s…", name, where, how, content[max(0, i-120):min(len(content), i+len(text)+40)])
				}
			}
		}
	}
}

// take is a tool that gives nothing back of what it got.
func take(name, description string) upstreamtest.Tool {
	definition, _ := json.Marshal(map[string]any{"name": name, "description": description, "inputSchema": map[string]any{"type": "object"}})
	return upstreamtest.Tool{Name: name, Definition: string(definition), Run: func(*upstreamtest.Exchange) string { return upstreamtest.Text("taken") }}
}

// TestC50NoSecretIsFoundAnywhere plants secrets wherever one can be, lets
// everything happen to them that can, and then looks for them in all that is
// left: screens, logs, ledger, state, metrics, replies.
func TestC50NoSecretIsFoundAnywhere(t *testing.T) {
	s := &scene{t: t, dir: t.TempDir(), found: map[string][]byte{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	l.Close()

	auth := authserver.New(t)
	auth.AddClient("gatehouse", planted["client secret"])
	spans := tracetest.Start(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	subject := auth.UserToken("alice", "sign-in", nil)
	s.env = []string{"CALLER_TOKEN=" + planted["caller token"], "BEARER=" + planted["bearer credential"], "HEADER=" + planted["header credential"],
		"CLIENT_SECRET=" + planted["client secret"], "SUBJECT=" + subject, "DISCOVERY=" + auth.UserToken("importer", "mcp-api", nil),
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + spans.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=" + planted["header for the collector"], "OTEL_BSP_SCHEDULE_DELAY=50"}
	if err := os.WriteFile(filepath.Join(s.dir, "vault.age"), []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	// A server that quotes the credential it got, as some do.
	rude := upstreamtest.New(upstreamtest.Profile{Modern: true})
	rude.Tools = []upstreamtest.Tool{take("all", forged), take("quote", "quotes")}
	rude.On("tools/call", func(x *upstreamtest.Exchange) {
		if x.Text("name") == "quote" {
			x.Error(http.StatusOK, -32000, forged)
			return
		}
		x.Result(`{"resultType":"complete","content":[{"type":"text","text":"taken"}]}`)
	})
	plain := upstreamtest.New(upstreamtest.Profile{Sessions: true})
	plain.Tools = []upstreamtest.Tool{take("all", "")}
	locked := upstreamtest.New(upstreamtest.Profile{Modern: true})
	locked.On("server/discover", func(x *upstreamtest.Exchange) { x.Raw(http.StatusUnauthorized, "text/plain", x.Header.Get("X-Key")) })
	behind := upstreamtest.New(upstreamtest.Profile{Modern: true})
	behind.Tools = []upstreamtest.Tool{take("all", "")}
	records := authserver.NewResource(t, auth, "mcp-api", behind)
	hosted := authserver.NewResource(t, auth, "", behind)
	service := authserver.NewResource(t, auth, "service", behind)
	misspelt := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}))
		t.Cleanup(server.Close)
		return server.URL + "/token"
	}
	play := func(h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL + "/mcp"
	}
	var file strings.Builder
	fmt.Fprintf(&file, `
[listen]
address = %q
[network]
private_hosts = ["127.0.0.1"]
[approval]
timeout = "2s"
[vault]
identity = "file:%s"
[oidc]
issuer = %q
audience = "https://gate.example.org/mcp"
[[oidc.rule]]
claim = "sub"
value = "anna"
admin = true
trust_zone = "local"
[[caller]]
name = "alice"
token = "env:CALLER_TOKEN"
admin = true
trust_zone = "local"
[delegation.company]
token_endpoint = %q
client_id = "gatehouse"
client_secret = "env:CLIENT_SECRET"
allowed_audiences = ["mcp-api"]
[delegation.company.grants.alice]
enabled = true
subject = "env:SUBJECT"
allowed_audiences = ["mcp-api"]
`, s.address, filepath.Join(s.dir, "vault.age"), auth.Issuer(), auth.TokenEndpoint())
	server := func(id, url, class, keys string) {
		fmt.Fprintf(&file, "[[server]]\nid = %q\nurl = %q\ndata_class = \"source_code\"\n%s\n[server.auth]\n%s\n", id, url, class, keys)
	}
	const free = "requires_approval = false"
	server("rude", play(rude), free, "mode = \"bearer\"\ncredential = \"env:BEARER\"")
	server("asks", play(rude), "", "mode = \"bearer\"\ncredential = \"vault:kept\"")
	server("plain", play(plain), free, "mode = \"header\"\nheader = \"X-Key\"\ncredential = \"env:HEADER\"")
	server("locked", play(locked), free, "mode = \"header\"\nheader = \"X-Key\"\ncredential = \"env:HEADER\"")
	server("nowhere", "http://127.0.0.1:1/mcp?q="+planted["secret in the url"], free, "mode = \"bearer\"\ncredential = \"env:BEARER\"")
	server("records", records.Endpoint(), free, "mode = \"delegated\"\nprofile = \"company\"\naudience = \"mcp-api\"\ndiscovery_credential = \"env:DISCOVERY\"")
	server("hosted", hosted.Endpoint(), free, "mode = \"oauth\"")
	client := func(endpoint string) string {
		return fmt.Sprintf("mode = \"client_credentials\"\ntoken_endpoint = %q\nclient_id = \"gatehouse\"\nclient_secret = \"env:CLIENT_SECRET\"\naudience = \"service\"", endpoint)
	}
	server("service", service.Endpoint(), free, client(auth.TokenEndpoint()))
	server("misspelt", service.Endpoint(), free, client(misspelt(200, `{"acess_token":"`+planted["access token, misspelt"]+`"}`)))
	server("invalid", service.Endpoint(), free, client(misspelt(400, `{"error":"invalid_grant","error_description":"token `+planted["access token, misspelt"]+` expired"}`)))
	if err := os.WriteFile(filepath.Join(s.dir, "gatehouse.toml"), []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	daemon := s.command("serve", "--debug")
	var out, errs bytes.Buffer
	daemon.Stdout, daemon.Stderr = &out, &errs
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	defer func() {
		if !stopped {
			daemon.Process.Kill()
			daemon.Wait()
		}
	}()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get("http://" + s.address + "/healthz"); err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no daemon: %s", errs.String())
		}
	}

	s.run(planted["secret in the vault"]+"\n", "secret", "set", "kept")
	s.run(planted["wrong token"]+"\n", "secret", "set", "no/name")
	s.logIn()
	s.run("", "check")
	s.run("", "import", "--all")
	s.run("", "import", "locked") // a second refusal
	s.run("", "servers", "test", "invalid")
	s.run("", "tools", "enable", "mcp_*")
	if listed := s.run("", "tools", "list"); strings.Count(listed, "enabled") < 6 {
		t.Fatalf("not enough tools to call:\n%s", listed)
	}

	arguments := `{"password":"` + planted["password in the arguments"] + `"}`
	anna := auth.UserToken("anna", "https://gate.example.org/mcp", nil)
	secrets := map[string]string{"age identity": identity.String()}
	for _, tool := range []string{"mcp_rude_all", "mcp_rude_quote", "mcp_plain_all", "mcp_records_all", "mcp_hosted_all", "mcp_service_all"} {
		if reply := s.call(planted["caller token"], tool, arguments); tool != "mcp_rude_quote" && !bytes.Contains(reply, []byte("taken")) {
			t.Errorf("%s: %s", tool, reply)
		}
		s.call(anna, tool, arguments)
	}
	// A question, whose state goes to the caller and nowhere else.
	question := s.call(planted["caller token"], "mcp_asks_all", `{"a":1}`)
	state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindSubmatch(question)
	if state == nil {
		t.Fatalf("no question: %s", question)
	}
	secrets["request state"] = string(state[1])
	s.forget("requestState")
	s.call(planted["caller token"], "mcp_unknown", arguments)

	// Callers who are not let in, and requests that are none.
	for _, token := range []string{planted["wrong token"], auth.UserToken("eve", "https://gate.example.org/mcp", nil), auth.UserToken("anna", "https://other.example.org", nil)} {
		s.request(http.MethodPost, "/mcp?access_token="+planted["token in the query"], token, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil)
	}
	s.request(http.MethodPost, "/mcp?token="+planted["caller token"], "", `{"password":"`+planted["password in the arguments"]+`"}`, nil)
	s.request(http.MethodPost, "/mcp", planted["caller token"], `{"password":"`+planted["password in the arguments"]+`",}`, nil)
	s.request(http.MethodPost, "/mcp", planted["caller token"], `{"jsonrpc":"2.0","id":1,"method":"`+planted["password in the arguments"]+`"}`, nil)

	// The era with sessions, whose ids open something too.
	header, _ := s.request(http.MethodPost, "/mcp", planted["caller token"], `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, nil)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	secrets["session id"] = header.Get("Mcp-Session-Id")
	s.request(http.MethodPost, "/mcp", planted["caller token"], `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp_plain_all","arguments":`+arguments+`}}`, session)
	s.request(http.MethodDelete, "/mcp", planted["caller token"], "", session)
	s.request(http.MethodPost, "/mcp", planted["caller token"], `{"jsonrpc":"2.0","id":3,"method":"ping"}`, session)

	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/console/", "/.well-known/oauth-protected-resource"} {
		s.request(http.MethodGet, path, "", "", nil)
	}
	for _, args := range [][]string{{"servers"}, {"servers", "--json"}, {"tools", "list", "--json"}, {"tools", "show", "mcp_rude_all"}, {"explain", "mcp_records_all", "--caller", "alice"},
		{"audit", "tail", "-n", "200"}, {"audit", "export"}, {"audit", "verify"}, {"secret", "list"}, {"approvals"}, {"reload", "--yes"}, {"doctor"},
		{"call", "mcp_rude_quote", "--args", arguments}, {"logout", "hosted"}} {
		s.run("", args...)
	}
	// The spans of every call above, which a moment is enough for.
	for deadline := time.Now().Add(5 * time.Second); !bytes.Contains(spans.Bodies(), []byte("mcp_rude_quote")) && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	s.keep("spans", spans.Bodies())
	// A dump of everything that runs, and the end.
	if err := daemon.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	daemon.Wait()
	stopped = true
	if !strings.Contains(errs.String(), "goroutine ") {
		t.Error("there is no dump to search")
	}
	s.keep("standard output of the daemon", out.Bytes())
	s.keep("log of the daemon", errs.Bytes())
	s.keepFiles()

	for name, secret := range planted {
		secrets[name] = secret
	}
	for i, given := range auth.Given() {
		secrets[fmt.Sprintf("token %d of the authorization server", i)] = given
	}
	for i, form := range auth.TokenRequests() {
		if verifier := form.Get("code_verifier"); verifier != "" {
			secrets[fmt.Sprintf("code verifier %d", i)] = verifier
		}
	}
	if len(auth.Given()) < 10 {
		t.Errorf("only %d tokens were given out; something did not happen", len(auth.Given()))
	}
	// What is no secret is found where it should be, so the search does search.
	for _, where := range []string{"spans", "log of the daemon", "file /gatehouse.db", "file /gatehouse.ledger/00000000000000000001.jsonl"} {
		if !bytes.Contains(s.found[where], []byte("rude")) {
			t.Errorf("%s is not what it should be: %d bytes", where, len(s.found[where]))
		}
	}
	for where, content := range s.found {
		leak.Write(t, strings.Fields(where)[0], "== "+strings.SplitN(where, " --args", 2)[0]+"\n"+string(content)+"\n")
	}
	s.search(secrets)
	for where, content := range s.found {
		if regexp.MustCompile(`(?m)^2026-12-01T00:00:00Z level=INFO`).Match(content) {
			t.Errorf("a server wrote a line of its own into %s", where)
		}
	}
}

// logIn runs `gatehouse login`, with a browser that agrees.
func (s *scene) logIn() {
	s.t.Helper()
	login := s.command("login", "hosted")
	out, err := login.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := login.Start(); err != nil {
		s.t.Fatal(err)
	}
	var shown bytes.Buffer
	buffer := make([]byte, 4096)
	open := regexp.MustCompile(`http://\S+/authorize\?\S+\n`)
	for opened := false; ; {
		n, err := out.Read(buffer)
		shown.Write(buffer[:n])
		if u := open.FindString(shown.String()); u != "" && !opened {
			opened = true
			resp, err := http.Get(strings.TrimSpace(u))
			if err != nil {
				s.t.Fatal(err)
			}
			resp.Body.Close()
		}
		if err != nil {
			break
		}
	}
	if err := login.Wait(); err != nil {
		s.t.Fatalf("login: %v\n%s", err, shown.String())
	}
	s.keep("output of gatehouse login", shown.Bytes())
}

// forget drops the replies that hold what is meant for the caller alone.
func (s *scene) forget(word string) {
	for where, content := range s.found {
		if strings.HasPrefix(where, "reply ") && bytes.Contains(content, []byte(word)) {
			delete(s.found, where)
		}
	}
}

// keepFiles keeps every file that is left, except those that the operator wrote:
// the configuration with the url in it, and the identity.
func (s *scene) keepFiles() {
	s.t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "gatehouse.toml" || d.Name() == "vault.age" {
			return err
		}
		content, err := os.ReadFile(path)
		s.keep("file "+strings.TrimPrefix(path, s.dir), content)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestFormsAreFound plants one secret in every form and finds each.
func TestFormsAreFound(t *testing.T) {
	const secret = "planted-Qw3Er6Ty9Ui2Op5As8Df"
	for name, leak := range map[string]string{
		"plain":     "token " + secret + " expired",
		"hex":       hex.EncodeToString([]byte("xyz" + secret + "z")),
		"dump":      strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64":    base64.StdEncoding.EncodeToString([]byte("user:" + secret)),
		"base64 1":  base64.RawURLEncoding.EncodeToString([]byte("u" + secret + "!")),
		"base64 2":  base64.StdEncoding.EncodeToString([]byte("us" + secret)),
		"beginning": "token " + secret[:16] + "…",
		"end":       "…" + secret[len(secret)-14:],
	} {
		found := false
		for _, form := range forms(secret) {
			found = found || strings.Contains(leak, form)
		}
		if !found {
			t.Errorf("%s is not found", name)
		}
	}
}
