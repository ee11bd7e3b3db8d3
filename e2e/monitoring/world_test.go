package monitoring

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/e2e/rig"
)

// A world is a gateway with servers that do well and servers that do not, and a
// Prometheus that scrapes it every two seconds.
type world struct {
	*rig.Gatehouse
	gone       *rig.OrderDesk // was there at the import, and is not any more
	prometheus string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	prometheus := tool(t, "prometheus")
	desk, gone := rig.Orders(t), rig.Orders(t)
	w := &world{gone: gone, Gatehouse: rig.New(t, rig.Settings{
		ApprovalTimeout: "2s",
		Callers:         []rig.Caller{{Name: "alice", Admin: true, Zone: "local"}},
		Servers: []rig.Upstream{
			{ID: "asks", URL: desk.URL},
			{ID: "free", URL: desk.URL, Free: true},
			{ID: "gone", URL: gone.URL, Free: true},
			{ID: "never", URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", rig.FreePort(t)), Free: true},
			{ID: "locked", URL: desk.URL, Free: true, Extra: "[server.auth]\nmode = \"bearer\"\ncredential = \"env:GATEHOUSE_TEST_IS_NOT_SET\""},
		},
	})}
	w.Serve(t)
	w.Run(t, "import", "--all") // two of them fail
	w.Do(t, "tools", "enable", "mcp_*")
	gone.Kill()

	dir, port := t.TempDir(), rig.FreePort(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}
rule_files: [%q]
scrape_configs:
  - job_name: gatehouse
    authorization: {credentials_file: %q}
    static_configs: [{targets: [%q]}]
`, file("alerts.yaml"), write("token", w.Token(t, "alice")), strings.TrimPrefix(w.Base, "http://")))
	w.prometheus = fmt.Sprintf("http://127.0.0.1:%d", port)
	rig.Start(t, "prometheus", port, nil, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		fmt.Sprintf("--web.listen-address=127.0.0.1:%d", port), "--log.level=warn")
	return w
}

// post sends one message and returns the reply's header and body.
func (w *world) post(token, session, method, params string) (http.Header, []byte, error) {
	modern := session == "" && method != "initialize"
	if modern {
		inner := strings.TrimSuffix(params, "}")
		if inner != "{" {
			inner += ","
		}
		params = inner + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	r, err := http.NewRequest(http.MethodPost, w.URL, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	if modern {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", method)
		var p struct{ Name string }
		if json.Unmarshal([]byte(params), &p) == nil && p.Name != "" {
			r.Header.Set("Mcp-Name", p.Name)
		}
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	return response.Header, reply, err
}

var state = regexp.MustCompile(`"requestState":"([^"]+)"`)

// round has everything happen once that the dashboard shows. What nobody's token
// comes with is refused, seldom enough for no alert.
func (w *world) round(number int, alice string) error {
	nobody := alice
	if number%10 == 0 {
		nobody = "nobody's token"
	}
	for _, m := range []struct{ token, method, params string }{
		{alice, "tools/list", `{}`},
		{alice, "tools/call", `{"name":"mcp_free_echo","arguments":{}}`},
		{alice, "tools/call", `{"name":"mcp_free_fail","arguments":{}}`},
		{alice, "tools/call", `{"name":"mcp_gone_echo","arguments":{}}`},
		{alice, "tools/call", `{"name":"mcp_made_up","arguments":{}}`},
		{alice, "tools/call", `{"name":"mcp_asks_echo","arguments":{"answer":"none"}}`},
		{nobody, "tools/list", `{}`},
	} {
		if _, _, err := w.post(m.token, "", m.method, m.params); err != nil {
			return err
		}
	}
	for _, decision := range []string{"approve", "deny"} {
		call := fmt.Sprintf(`{"name":"mcp_asks_echo","arguments":{"answer":%q}`, decision)
		_, question, err := w.post(alice, "", "tools/call", call+"}")
		if err != nil {
			return err
		}
		found := state.FindSubmatch(question)
		if found == nil {
			return fmt.Errorf("no question: %s", question)
		}
		if _, _, err := w.post(alice, "", "tools/call", fmt.Sprintf(`%s,"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"decision":%q}}}}`,
			call, found[1], decision)); err != nil {
			return err
		}
	}
	header, _, err := w.post(alice, "", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	if err != nil {
		return err
	}
	end, err := http.NewRequest(http.MethodDelete, w.URL, nil)
	if err != nil {
		return err
	}
	end.Header.Set("Authorization", "Bearer "+alice)
	end.Header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	response, err := http.DefaultClient.Do(end)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// load has rounds go on until the result is called.
func (w *world) load(t *testing.T) (end func()) {
	t.Helper()
	alice := w.Token(t, "alice")
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { // ended by end, which waits
		for number := 0; ctx.Err() == nil; number++ {
			if err := w.round(number, alice); err != nil {
				t.Errorf("load: %v", err)
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	return func() { cancel(); work.Wait() }
}

// get asks Prometheus.
func (w *world) get(t *testing.T, path string, into any) {
	t.Helper()
	response, err := http.Get(w.prometheus + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, response.StatusCode, body)
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, body)
	}
}
