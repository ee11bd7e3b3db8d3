package federation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/config"
	"gatehouse/federation/trace"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/leak"
)

// A rig is a whole gateway before played upstreams, spoken to over HTTP.
type rig struct {
	t        testing.TB
	g        *Gateway
	front    *httptest.Server
	upstream *upstreamtest.Server
	tokens   map[string]string
	dir      string
	nextID   int
	logger   *slog.Logger     // nil: what leak keeps
	now      func() time.Time // nil: time.Now
	tracer   *trace.Tracer    // nil: calls are not traced
	disk     func() error     // why the ledger's disk takes nothing; nil: it does
}

// newRig starts a gateway with callers alice (administrator, local), bob (no
// administrator) and eve (administrator, far away), and a server "up" of the
// given profile whose tools are all enabled. more is added to the file.
func newRig(t testing.TB, profile upstreamtest.Profile, serverKeys, more string, with ...func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, upstream: upstreamtest.New(profile), tokens: map[string]string{}, dir: t.TempDir()}
	for _, f := range with {
		f(r)
	}
	up := httptest.NewServer(r.upstream)
	t.Cleanup(up.Close)
	var file strings.Builder
	fmt.Fprintf(&file, "[listen]\naddress = \"127.0.0.1:8620\"\n[network]\nprivate_hosts = [\"127.0.0.1\"]\n")
	for _, c := range []struct{ name, keys string }{
		{"alice", "admin = true\ntrust_zone = \"local\""},
		{"bob", "trust_zone = \"local\""},
		{"eve", "admin = true\ntrust_zone = \"external_global\""},
	} {
		token := leak.Token()
		r.tokens[c.name] = token
		fmt.Fprintf(&file, "[[caller]]\nname = %q\ntoken = \"sha256:%s\"\nmax_calls_per_minute = 0\n%s\n", c.name, gate.DigestOf([]byte(token)), c.keys)
	}
	fmt.Fprintf(&file, "[[server]]\nid = \"up\"\nname = \"Played server\"\nurl = %q\ndata_class = \"source_code\"\n%s\n%s\n", up.URL+"/mcp", serverKeys, more)
	r.open(file.String())
	if _, err := r.g.Import(context.Background(), "up", false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.g.Enable(context.Background(), "test", "mcp_up"); err != nil {
		t.Fatal(err)
	}
	r.upstream.Forget()
	return r
}

func (r *rig) open(file string) {
	r.t.Helper()
	cfg, problems := config.Parse(filepath.Join(r.dir, "gatehouse.toml"), []byte(file))
	if cfg == nil {
		r.t.Fatal(problems.Error())
	}
	leak.Keep(r.t, r.dir)
	if r.logger == nil {
		r.logger = leak.Logger(r.t)
	}
	g, err := Open(context.Background(), cfg, Options{Version: "test", Logger: r.logger, Now: r.now, Tracer: r.tracer, sync: func(*os.File) error {
		if r.disk == nil {
			return nil
		}
		return r.disk()
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.g = g
	r.front = httptest.NewServer(g.Handler())
	r.t.Cleanup(func() {
		g.listeners.closeAll()
		r.front.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			r.t.Errorf("closing: %v", err)
		}
		if report, err := ledger.Verify(cfg.LedgerDir()); err != nil || report.Bad != nil || len(report.Unsettled) > 0 {
			r.t.Errorf("the ledger does not verify: %+v, %v", report, err)
		}
	})
}

// entries are those of a kind, oldest first, once there are at least n of them.
func (r *rig) entries(kind gate.Kind, n int) []gate.Entry {
	r.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var found []gate.Entry
		if err := ledger.Read(r.g.Config().LedgerDir(), 0, func(_ []byte, e gate.Entry) error {
			if e.Kind == kind {
				found = append(found, e)
			}
			return nil
		}); err != nil {
			r.t.Fatal(err)
		}
		if len(found) >= n || time.Since(began) > 5*time.Second {
			if len(found) < n {
				r.t.Errorf("%d entries of kind %s, want %d", len(found), kind, n)
			}
			return found
		}
	}
}

// A told is one response: status, headers and the messages of its body.
type told struct {
	status   int
	header   http.Header
	messages []map[string]json.RawMessage
	raw      string
}

func (x told) last() map[string]json.RawMessage {
	if len(x.messages) == 0 {
		return map[string]json.RawMessage{}
	}
	return x.messages[len(x.messages)-1]
}

// code is the JSON-RPC error code, 0 when there is none.
func (x told) code() (code int) {
	var e struct{ Code int }
	_ = json.Unmarshal(x.last()["error"], &e)
	return e.Code
}

func (x told) result() (members map[string]json.RawMessage) {
	_ = json.Unmarshal(x.last()["result"], &members)
	return members
}

// verdict is _meta["gatehouse/outcome"].
func (x told) verdict() string {
	var meta map[string]any
	_ = json.Unmarshal(x.result()["_meta"], &meta)
	verdict, _ := meta[metaOutcome].(string)
	return verdict
}

func (r *rig) request(ctx context.Context, who, method, body string, header map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.front.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if who != "" {
		req.Header.Set("Authorization", "Bearer "+r.tokens[who])
	}
	for k, v := range header {
		if v == "" {
			req.Header.Del(k)
		} else {
			req.Header.Set(k, v)
		}
	}
	return http.DefaultClient.Do(req)
}

func (r *rig) post(who, body string, header map[string]string) told {
	r.t.Helper()
	res, err := r.request(context.Background(), who, http.MethodPost, body, header)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	x := told{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		for line := range strings.Lines(x.raw) {
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				x.messages = append(x.messages, decode(r.t, data))
			}
		}
	} else if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		x.messages = append(x.messages, decode(r.t, x.raw))
	}
	return x
}

func decode(t testing.TB, text string) (m map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return m
}

// modern sends one request of 2026-07-28. params has no _meta; capabilities are
// those declared.
func (r *rig) modern(who, method, params, capabilities string) told {
	r.t.Helper()
	r.nextID++
	inner := strings.TrimSuffix(strings.TrimPrefix(params, "{"), "}")
	if inner != "" {
		inner += ","
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"m%d","method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`,
		r.nextID, method, inner, capabilities)
	header := map[string]string{headerVersion: modernVersion, headerMethod: method}
	if method == "tools/call" {
		var p struct{ Name string }
		_ = json.Unmarshal([]byte(params), &p)
		header[headerName] = p.Name
	}
	return r.post(who, body, header)
}

const form = `{"elicitation":{"form":{}}}`

// approve is a modern call that is asked and answers with action and decision.
func (r *rig) answered(who, params, action, decision string) (question, end told) {
	r.t.Helper()
	question = r.modern(who, "tools/call", params, form)
	var state string
	_ = json.Unmarshal(question.result()["requestState"], &state)
	if state == "" {
		r.t.Fatalf("no question: %s", question.raw)
	}
	return question, r.modern(who, "tools/call", withAnswer(params, state, action, decision), form)
}

func withAnswer(params, state, action, decision string) string {
	content := ""
	if decision != "" {
		content = fmt.Sprintf(`,"content":{"decision":%q}`, decision)
	}
	return fmt.Sprintf(`%s,"requestState":%q,"inputResponses":{"approval":{"action":%q%s}}}`, strings.TrimSuffix(params, "}"), state, action, content)
}

// A client is a legacy session.
type client struct {
	*rig
	who     string
	id      string
	version string
}

func (r *rig) connect(who, version, capabilities string) *client {
	r.t.Helper()
	x := r.post(who, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, version, capabilities), nil)
	c := &client{rig: r, who: who, id: x.header.Get(headerSession), version: version}
	if c.id == "" {
		r.t.Fatalf("no session: %d %s", x.status, x.raw)
	}
	if x := c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); x.status != http.StatusAccepted {
		r.t.Fatalf("initialized: %d", x.status)
	}
	return c
}

func (c *client) header() map[string]string {
	return map[string]string{headerSession: c.id, headerVersion: c.version}
}

func (c *client) send(body string) told { c.t.Helper(); return c.post(c.who, body, c.header()) }

func (c *client) call(id int, name, arguments string) told {
	c.t.Helper()
	return c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments))
}

// asked makes a call and gives each question on its stream to answer; the last
// message is the end.
func (c *client) asked(ctx context.Context, id int, name, arguments string, answer func(question map[string]json.RawMessage)) (end map[string]json.RawMessage, err error) {
	res, err := c.request(ctx, c.who, http.MethodPost,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments), c.header())
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return end, nil
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			if bytes.HasPrefix(line, []byte("{")) {
				data = line
			} else {
				continue
			}
		}
		m := decode(c.t, string(data))
		if m["method"] != nil {
			answer(m)
			continue
		}
		end = m
	}
}

func (c *client) respond(who, question, rest string) told {
	return c.post(who, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, question, rest), c.header())
}
