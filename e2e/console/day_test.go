// Package console walks an operator's day in a real browser: the binary, its
// pages, a client that waits, and a server that would like to be markup. What the
// pages looked like is kept under .e2e/console.
package console

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	chromium "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// Olga looks after the gateway; alice's and bob's agents use it.
var people = []rig.Caller{
	{Name: "olga", Admin: true, Zone: "local"},
	{Name: "alice", Admin: true, Zone: "external_global"},
	{Name: "bob", Zone: "local"},
}

// configure writes the configuration so that questions come to the pages.
func configure(t *testing.T, g *rig.Gatehouse, s rig.Settings) {
	t.Helper()
	g.Configure(t, s)
	text, err := os.ReadFile(g.Config)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "[approval]\n", "[approval]\nchannel = \"client_then_console\"\n", 1))
	if err := os.WriteFile(g.Config, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b *browser) signIn(t *testing.T, token string) {
	t.Helper()
	b.do(t, chromedp.SetValue("#token", token))
	b.click(t, "form button")
}

func TestOperatorsDay(t *testing.T) {
	desk := rig.Orders(t)
	g := rig.New(t, rig.Settings{Callers: people})
	configure(t, g, rig.Settings{Callers: people})
	g.Serve(t)
	b := open(t, g.Base)

	// She gets in with her own token, and with nothing less.
	b.goTo(t, "/console/tools")
	b.look(t, "01-sign-in")
	b.signIn(t, "not a token")
	b.says(t, ".notice", "not the token of an administrator")
	b.signIn(t, g.Token(t, "bob"))
	b.says(t, ".notice", "not the token of an administrator")
	b.signIn(t, g.Token(t, "olga"))
	b.says(t, "h1", "Tools") // where she wanted to go
	b.cookie(t)

	// An empty installation says what it lacks.
	b.goTo(t, "/console/")
	b.says(t, "main", "No server is declared yet", "Nothing waits")
	b.do(t, chromedp.KeyEvent("\t"))
	if at := evaluate[string](t, b, `document.activeElement.textContent`); at != "Skip to the content" {
		t.Errorf("the first stop of the keyboard is %q", at)
	}
	b.look(t, "02-empty")
	servers := []rig.Upstream{{ID: "orders", URL: desk.URL}, {ID: "vault", URL: desk.URL, Class: "secret_adjacent"},
		{ID: "odd", URL: hostile(t)}, {ID: "bare", URL: desk.URL, Class: rig.Unclassified}}
	configure(t, g, rig.Settings{Callers: people, Servers: servers})
	g.Do(t, "reload", "--yes")
	b.until(t, `document.body.textContent.includes("nothing imported")`) // by itself
	b.says(t, "main", "never imported", "nothing is supplied")
	b.look(t, "03-servers-wait")

	// She tests, imports, and reads why a tool was left out.
	b.goTo(t, "/console/servers")
	b.click(t, "#server-orders button:not([name])")
	b.says(t, "#server-orders .report", "It answers: order-desk", "The catalogue is as it was", "server/discover")
	b.says(t, "#server-orders .facts", "0 of 0 enabled")
	b.look(t, "04-tested")
	b.click(t, "#server-orders button.main")
	b.says(t, "#server-orders .report", "6 imported (6 new", "page 1")
	b.click(t, "#server-odd button.main")
	b.says(t, "#server-odd .report", "skipped", "no_schema")
	b.click(t, "#server-bare button.main")
	b.says(t, "#server-bare .report", "data class")
	b.click(t, "#server-vault button.main")
	b.look(t, "05-imported")
	b.goTo(t, "/console/")
	b.says(t, "main", "0 enabled")

	// She enables one tool, then those of a whole group.
	b.goTo(t, "/console/tools?server=orders")
	b.look(t, "06-tools")
	b.do(t, chromedp.Click("#c-mcp_orders_ship"))
	b.click(t, ".dock .main")
	b.says(t, ".notice", "1 tool enabled")
	b.goTo(t, "/console/tools?server=orders&q=byte")
	b.says(t, "main", "mcp_orders_echo")
	b.click(t, `button[value="enable:mcp_orders"]`)
	b.says(t, ".notice", "5 tools enabled")
	b.goTo(t, "/console/tools/mcp_orders_ship")
	b.says(t, "main", "Ships an order.", `"required"`, "bob", "requires admin")
	b.look(t, "07-tool")

	// A question arrives while a client waits, on the page that is open.
	b.goTo(t, "/console/questions")
	b.says(t, "#questions", "No question is open")
	b.look(t, "08-no-question")
	alice := client.TypeScript(t, client.Options{URL: g.URL, Token: g.Token(t, "alice"), Answer: client.None, Timeout: time.Minute})
	replies := make(chan client.Reply, 1)
	go func() { replies <- alice.Call(t, "mcp_orders_ship", `{"order":"<b>9007199254740993</b>"}`) }() // the client's own limit ends it
	b.until(t, `!!document.querySelector(".question")`)
	var asked struct{ Message string }
	open := rig.JSON[struct{ Number int }](t, g, "approvals", "list")
	if len(open) != 1 {
		t.Fatalf("%d approvals are open", len(open))
	}
	if err := json.Unmarshal([]byte(g.Do(t, "approvals", "list", "--json")), &[]any{&asked}); err != nil {
		t.Fatal(err)
	}
	if got := b.text(t, ".asked"); asked.Message == "" || got != asked.Message {
		t.Errorf("the page shows %q, the question is %q", got, asked.Message)
	}
	b.says(t, "title", "(1)")
	b.look(t, "09-question")
	b.goTo(t, "/console/")
	b.says(t, "#now", "alice asks to call mcp_orders_ship")
	b.goTo(t, "/console/questions")
	b.click(t, ".approve")
	b.says(t, ".notice", "is approved", "decided by olga")
	select {
	case r := <-replies:
		if !r.OK() || !strings.Contains(r.Text(), "9007199254740993") {
			t.Errorf("alice got %s", r)
		}
	case <-time.After(patience):
		t.Fatal("alice still waits")
	}

	// The story of that call, from question to outcome.
	outcome := g.Since(t, 0, "outcome")
	b.goTo(t, "/console/ledger")
	b.says(t, ".entries", "question", "outcome", "olga")
	b.look(t, "10-ledger")
	b.goTo(t, "/console/ledger?kind=outcome&caller=alice")
	b.click(t, ".entries a")
	b.says(t, "main", "alice asked to call mcp_orders_ship", "approved by olga", "tools/call", "Together")
	b.look(t, "11-story")
	if len(outcome) == 0 {
		t.Error("no outcome is on record")
	}

	// Why somebody does not see a tool.
	b.goTo(t, "/console/callers")
	b.look(t, "12-callers")
	b.goTo(t, "/console/callers/bob")
	b.says(t, "main", "requires admin", "mcp_orders_ship")
	b.look(t, "13-caller")
	b.goTo(t, "/console/whatif?caller=alice&tool=mcp_orders_ship")
	b.do(t, chromedp.SetValue("#arguments", `{"order":7}`))
	b.click(t, ".form button")
	b.says(t, "main", "It would be refused: invalid arguments", "/order")
	b.look(t, "14-what-if")
	if ran := desk.Ran(t, "ship"); ran != 1 {
		t.Errorf("ship ran %d times; judging a call must send nothing", ran)
	}

	// A definition changes: off until somebody has looked.
	desk.Revise(t)
	b.goTo(t, "/console/servers")
	b.click(t, "#server-orders button.main")
	b.says(t, "#server-orders .report", "1 changed")
	b.goTo(t, "/console/")
	b.says(t, "main", "1 changed definition")
	b.look(t, "15-changed")
	b.click(t, `a[href="/console/tools?state=changed&server=orders"]`)
	b.click(t, "a.button")
	b.says(t, "#difference", "description", "and tells the customer's bank")
	b.look(t, "16-difference")
	b.click(t, `#difference button.main`)
	b.says(t, ".notice", "1 tool enabled")
	b.says(t, ".title", "enabled")
	accepted := g.Since(t, 0, "accept_change")
	if len(accepted) == 0 {
		t.Error("no acceptance is on record")
	}

	// The flow, after some refusals.
	for range 3 {
		g.Run(t, "call", "mcp_orders_echo", "--caller", "bob")
		g.Run(t, "call", "mcp_vault_echo", "--caller", "alice")
	}
	b.goTo(t, "/console/flow")
	b.says(t, "main", "ok", "requires admin")
	b.look(t, "17-flow")
	b.goTo(t, "/console/flow?span=day")

	// The record: whole, and taken along.
	b.goTo(t, "/console/ledger")
	b.click(t, `form[action="/console/ledger/verify"] button`)
	b.says(t, "main", "The chain is whole")
	b.look(t, "18-verified")
	b.goTo(t, "/console/ledger")
	lines := b.export(t)
	kinds := map[string]int{}
	for _, line := range lines {
		var e struct{ Kind, Hash string }
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Hash == "" {
			t.Fatalf("line %q: %v", line, err)
		}
		kinds[e.Kind]++
	}
	for _, kind := range []string{"login", "auth_failure", "test", "import", "enable", "question", "answer", "intent", "outcome", "accept_change", "verify", "export"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s is among what was exported: %v", kind, kinds)
		}
	}
	b.click(t, ".who button")
	b.goTo(t, "/console/ledger")
	b.says(t, "h1", "Sign in")
	b.quiet(t)
}

func TestHostileCatalogue(t *testing.T) {
	g := rig.New(t, rig.Settings{})
	servers := []rig.Upstream{{ID: "odd", URL: hostile(t), Free: true}}
	configure(t, g, rig.Settings{Callers: people, Servers: servers})
	g.Serve(t)
	b := open(t, g.Base)
	b.goTo(t, "/console/")
	b.signIn(t, g.Token(t, "olga"))
	b.goTo(t, "/console/servers")
	b.click(t, "#server-odd button:not([name])")
	b.inert(t, "20-hostile-tested")
	b.click(t, "#server-odd button.main")
	b.says(t, "#server-odd .report", "1 imported", "4 skipped")
	b.inert(t, "21-hostile-imported")
	b.goTo(t, "/console/tools")
	b.click(t, `button[value="enable:mcp_odd"]`)
	b.inert(t, "22-hostile-tools")
	b.goTo(t, "/console/tools/mcp_odd_lookup")
	b.says(t, "main", `<script>window.pwned=1</script>`, `\u001b[2J`, `\u202e`, "{{.Who}}")
	b.inert(t, "23-hostile-tool")
	g.Run(t, "call", "mcp_odd_lookup", "--caller", "olga", "--args", `{"q":"</pre><script>window.pwned=1</script>"}`)
	g.Run(t, "call", `mcp_odd_<img src=x onerror="window.pwned=1">`, "--caller", "olga")
	g.Since(t, 0, "outcome")
	for _, path := range []string{"/console/ledger", "/console/flow", "/console/", "/console/callers/olga", "/console/callers/bob",
		"/console/whatif?tool=%3Cscript%3Ewindow.pwned=1%3C/script%3E&caller=%22%3E%3Cscript%3E",
		"/console/ledger?tool=%3Cscript%3Ewindow.pwned=1%3C/script%3E", "/console/tools?q=%22%3E%3Cscript%3Ewindow.pwned=1%3C/script%3E",
		"/console/callers/%3Cscript%3Ewindow.pwned=1%3C%2Fscript%3E"} {
		b.goTo(t, path)
		b.inert(t, "")
	}
	b.goTo(t, "/console/ledger?kind=outcome")
	b.click(t, ".entries a")
	b.inert(t, "24-hostile-story")
	b.quiet(t)
}

// inert fails if anything of the page came from the server as markup, ran, or
// hides or reorders text. With a name it also looks at the page.
func (b *browser) inert(t *testing.T, name string) {
	t.Helper()
	found := evaluate[[]string](t, b, `[
		window.pwned ? "a script ran" : "",
		...[...document.querySelectorAll("main script, main style, main img, main b, main h1 ~ h1, main a[href^='javascript:'], main [onerror], main [onload]")].map(e => e.outerHTML.slice(0, 200)),
		...(document.body.textContent.match(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g) || []).map(c => "character " + c.charCodeAt(0).toString(16)),
	].filter(Boolean)`)
	for _, f := range found {
		t.Errorf("%s: %s", name, f)
	}
	if name != "" {
		b.look(t, name)
	}
}

// cookie holds the session's cookie to what keeps it to this browser.
func (b *browser) cookie(t *testing.T) {
	t.Helper()
	found, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	if c := found.Cookies; len(c) != 1 || !c[0].HTTPOnly || c[0].SameSite != network.CookieSameSiteStrict || !c[0].Session {
		t.Errorf("the cookies are %+v", c)
	}
}

// export downloads the ledger and returns its lines.
func (b *browser) export(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	done := make(chan string, 1)
	err := chromedp.ListenBrowser(b.ctx, func(event any) {
		if e, ok := event.(*chromium.EventDownloadProgress); ok && e.State == chromium.DownloadProgressStateCompleted {
			done <- e.GUID
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	if _, err := chromedp.CallBrowser(b.ctx, chromium.SetDownloadBehavior, chromium.SetDownloadBehaviorParams{
		Behavior: chromium.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir, EventsEnabled: &yes}); err != nil {
		t.Fatal(err)
	}
	b.do(t, chromedp.Click(`form[action="/console/ledger/export"] button`))
	select {
	case name := <-done:
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	case <-time.After(patience):
		t.Fatal("nothing was downloaded")
		return nil
	}
}
