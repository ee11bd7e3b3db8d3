package demo

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}`

// post sends one 2026 request and returns the raw reply.
func post(t *testing.T, url, method, params string, header ...string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":"a-1","method":"` + method + `","params":{` + params + modernMeta + `}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", method)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(reply)
}

func start(t *testing.T, hostile string) string {
	t.Helper()
	s, err := Start("127.0.0.1:0", "1", hostile)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s.URL
}

func TestListsTwelveTools(t *testing.T) {
	var reply struct {
		Result struct{ Tools []json.RawMessage }
	}
	got := post(t, start(t, ""), "tools/list", "")
	if err := json.Unmarshal([]byte(got), &reply); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if len(reply.Result.Tools) != 12 {
		t.Errorf("%d tools, want 12: %s", len(reply.Result.Tools), got)
	}
}

func TestCalls(t *testing.T) {
	url := start(t, "")
	for _, c := range []struct{ name, args, want string }{
		{"big_number", `{}`, `"structuredContent":{"number":9007199254740993}`},
		{"big_number", `{"number":123456789012345678901234567890}`, `123456789012345678901234567890`},
		{"notes_search", `{"words":"lemons"}`, `"title":"Shopping"`},
		{"notes_add", `{"title":"T","text":"x"}`, `added note 4`},
		{"notes_read", `{"id":99}`, `"isError":true`},
		{"weather", `{"town":"Turku"}`, `"town":"Turku"`},
		{"slow_count", `{"to":2,"delay_ms":1}`, `counted to 2`},
		{"text_stats", `{"text":"a b"}`, `"words":2`},
		{"simulate_failure", `{}`, `"isError":true`},
	} {
		got := post(t, url, "tools/call", `"name":"`+c.name+`","arguments":`+c.args+`,`, "Mcp-Name", c.name)
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %s, want it to hold %s", c.name, c.args, got, c.want)
		}
	}
}

// TestMisbehaviours sees that each kind does what it says, to a client that
// takes everything.
func TestMisbehaviours(t *testing.T) {
	for kind, want := range map[string]string{
		"wrong-id":       `"id":"somebody-else-1"`,
		"oversize":       strings.Repeat("x", 3<<20),
		"twice":          "data: {\"jsonrpc\":\"2.0\",\"id\":\"a-1\",\"result\":{\"content\":[]}}\n\ndata: ",
		"both":           `"error":{"code":1`,
		"array":          `"result":[]`,
		"duplicate-keys": "the other",
		"invalid-utf8":   "\xff\xfe",
		"deep":           strings.Repeat("[", 100_000),
		"big-header":     `"content":[]`,
	} {
		got := post(t, start(t, kind), "tools/call", `"name":"echo","arguments":{},`, "Mcp-Name", "echo")
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %.300s", kind, got)
		}
	}
	if got := post(t, start(t, "bomb"), "tools/call", `"name":"echo","arguments":{},`, "Mcp-Name", "echo"); len(got) < 20<<20 {
		t.Errorf("bomb: got %d bytes", len(got))
	}
	endless := start(t, "endless")
	if got := post(t, endless, "tools/list", "") + post(t, endless, "tools/list", `"cursor":"p1",`); !strings.Contains(got, `"nextCursor":"p2"`) {
		t.Errorf("endless: got %s", got)
	}
	if got := post(t, start(t, "escapes"), "tools/list", ""); !strings.Contains(got, `\u001b[2J`) {
		t.Errorf("escapes: got %s", got)
	}
}

func TestRugPullChangesADefinition(t *testing.T) {
	url := start(t, "rug-pull")
	if first, second := post(t, url, "tools/list", ""), post(t, url, "tools/list", ""); first == second {
		t.Error("two listings say the same")
	}
}

func TestStart(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:80", "8621", "example.org:1"} {
		if s, err := Start(address, "1", ""); err == nil {
			s.Close(context.Background())
			t.Errorf("it listens on %s", address)
		}
	}
	if _, err := Start("127.0.0.1:0", "1", "no-such"); err == nil || !strings.Contains(err.Error(), "rug-pull") {
		t.Errorf("got %v, want an error that lists the kinds", err)
	}
	s, err := Start("127.0.0.1:0", "1", "")
	if err != nil {
		t.Fatal(err)
	}
	post(t, s.URL, "tools/list", "")
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
