package rig

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Server is a published MCP server, how to start it, and one call that shows
// that it works without any network but this machine.
type Server struct {
	ID      string
	Package string // in package.json, which pins it
	Host    string // in the url, 127.0.0.1 when empty
	Path    string // in the url, /mcp when empty
	Env     []string
	Command []string // without a bridge; {port}, {dir} and {module} are filled in
	Stdio   []string // the command of a server that speaks stdio only, which supergateway bridges

	Protocol string // pins the era where the server cannot be asked for it

	Tools     []string // some that it has
	Tool      string   // the one to call
	Arguments string   // {dir} is filled in
	Outcome   string   // what the gateway says about the call
	Want      string   // text of the answer
}

// Published are the servers of the catalogue test, other than server-everything.
var Published = []Server{
	{
		ID: "git", Package: "@cyanheads/git-mcp-server",
		Env:     []string{"MCP_TRANSPORT_TYPE=http", "MCP_HTTP_PORT={port}", "NODE_ENV=production", "LOGS_DIR={dir}"},
		Command: []string{"{module}/dist/index.js"}, Protocol: "2025-11-25", // it answers server/discover with a 500
		Tools: []string{"git_status", "git_commit", "git_push"},
		Tool:  "git_wrapup_instructions", Arguments: `{"acknowledgement":"yes"}`, Outcome: "ok", Want: "Git Wrap-up",
	},
	{
		ID: "system", Package: "@modelcontextprotocol/server-system-monitor",
		Env:     []string{"PORT={port}"},
		Command: []string{"{module}/dist/index.js"},
		Tools:   []string{"get-system-info", "poll-system-stats"},
		Tool:    "get-system-info", Arguments: `{}`, Outcome: "ok", Want: "totalBytes",
	},
	{
		ID: "browser", Package: "@playwright/mcp", Host: "localhost", // it refuses any other name
		Command: []string{"{module}/cli.js", "--headless", "--host", "localhost", "--port", "{port}", "--executable-path", "/nonexistent"},
		Tools:   []string{"browser_navigate", "browser_close", "browser_evaluate"},
		Tool:    "browser_close", Arguments: `{}`, Outcome: "tool_error", Want: "/nonexistent",
	},
	{
		ID: "charts", Package: "@antv/mcp-server-chart",
		Command: []string{"{module}/build/index.js", "--transport", "streamable", "--port", "{port}"},
		Tools:   []string{"generate_pie_chart", "generate_mind_map"},
		Tool:    "generate_pie_chart", Arguments: `{"data":[{"category":"a","value":1}]}`, Outcome: "upstream_error", Want: "ENOTFOUND",
	},
	{
		ID: "docs", Package: "@upstash/context7-mcp",
		Command: []string{"{module}/dist/index.js", "--transport", "http", "--port", "{port}"},
		Tools:   []string{"resolve-library-id", "query-docs"},
		Tool:    "resolve-library-id", Arguments: `{"libraryName":"react","query":"state"}`, Outcome: "ok", Want: "fetch failed",
	},
	{
		ID: "search", Package: "@brave/brave-search-mcp-server", Env: []string{"BRAVE_API_KEY=none"},
		Command: []string{"{module}/dist/index.js", "--transport", "http", "--host", "127.0.0.1", "--port", "{port}"},
		Tools:   []string{"brave_web_search", "brave_news_search"},
		Tool:    "brave_web_search", Arguments: `{"query":"gatehouse"}`, Outcome: "tool_error", Want: "fetch failed",
	},
	{
		ID: "addresses", Package: "@aashari/boilerplate-mcp-server", Env: []string{"TRANSPORT_MODE=http", "PORT={port}"},
		Command: []string{"{module}/dist/index.js"},
		Tools:   []string{"ip_get_details"},
		Tool:    "ip_get_details", Arguments: `{}`, Outcome: "tool_error", Want: "Network error",
	},
	{
		ID: "research", Package: "@perplexity-ai/mcp-server", Env: []string{"PERPLEXITY_API_KEY=none", "PORT={port}"},
		Command: []string{"{module}/dist/http.js"},
		Tools:   []string{"perplexity_ask", "perplexity_search"},
		Tool:    "perplexity_search", Arguments: `{"query":"gatehouse"}`, Outcome: "tool_error", Want: "fetch failed",
	},
	{
		ID: "memory", Package: "@modelcontextprotocol/server-memory", Env: []string{"MEMORY_FILE_PATH={dir}/memory.jsonl"},
		Stdio: []string{"{module}/dist/index.js"},
		Tools: []string{"read_graph", "create_entities"},
		Tool:  "create_entities", Arguments: `{"entities":[{"name":"gate","entityType":"thing","observations":["it opens"]}]}`, Outcome: "ok", Want: "it opens",
	},
	{
		ID: "files", Package: "@modelcontextprotocol/server-filesystem",
		Stdio: []string{"{module}/dist/index.js", "{dir}"},
		Tools: []string{"read_text_file", "list_directory"},
		Tool:  "list_directory", Arguments: `{"path":"{dir}"}`, Outcome: "ok", Want: "[FILE] present.txt",
	},
	{
		ID: "thinking", Package: "@modelcontextprotocol/server-sequential-thinking",
		Stdio: []string{"{module}/dist/index.js"},
		Tools: []string{"sequentialthinking"},
		Tool:  "sequentialthinking", Arguments: `{"thought":"a gate","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, Outcome: "ok", Want: "thoughtNumber",
	},
}

// Start starts the server and returns its url and what {dir} stood for.
func (s Server) Start(t *testing.T) (url, dir string) {
	t.Helper()
	port, dir := FreePort(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "present.txt"), []byte("here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil && s.ID == "git" {
		t.Logf("git init: %v %s", err, out) // its wrap-up instructions do without
	}
	fill := strings.NewReplacer("{port}", fmt.Sprint(port), "{dir}", dir, "{module}", Module(s.Package, ""))
	filled := func(in []string) []string {
		out := make([]string, len(in))
		for i, v := range in {
			out[i] = fill.Replace(v)
		}
		return out
	}
	node := Node(t)
	offline := "--import=" + Module("..", "node/offline.mjs")
	command := append([]string{node, offline}, filled(s.Command)...)
	if s.Stdio != nil {
		bridged := strings.Join(append([]string{node, offline}, filled(s.Stdio)...), " ")
		command = []string{node, Module("supergateway", "dist/index.js"), "--stdio", bridged,
			"--outputTransport", "streamableHttp", "--stateful", "--sessionTimeout", "60000", "--port", fmt.Sprint(port), "--logLevel", "none"}
	}
	Start(t, s.ID, port, append(filled(s.Env), "HOME="+dir), command...) // some write logs there
	host, path := s.Host, s.Path
	if host == "" {
		host = "127.0.0.1"
	}
	if path == "" {
		path = "/mcp"
	}
	return fmt.Sprintf("http://%s:%d%s", host, port, path), dir
}

// Everything starts the reference server of the 2025 era and returns its url.
func Everything(t *testing.T) string {
	t.Helper()
	port := FreePort(t)
	Start(t, "server-everything", port, []string{fmt.Sprintf("PORT=%d", port)},
		Node(t), Module("@modelcontextprotocol/server-everything", "dist/index.js"), "streamableHttp")
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}

// Conformance starts go-sdk's own conformance server for one era and returns its url.
func Conformance(t *testing.T, stateless bool) string {
	t.Helper()
	port := FreePort(t)
	Start(t, "everything-server", port, nil, Build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"),
		"-http", fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("-stateless=%v", stateless))
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}

// MCPGo starts the server written with mcp-go and returns its url.
func MCPGo(t *testing.T) string {
	t.Helper()
	port := FreePort(t)
	Start(t, "mcp-go server", port, nil, Build(t, "./mcpgo"), "-listen", fmt.Sprintf("127.0.0.1:%d", port))
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}

// An OrderDesk is our server of the 2026 era, written with the go-sdk.
type OrderDesk struct {
	*Process
	URL string
}

// Orders starts an order desk.
func Orders(t *testing.T) *OrderDesk {
	t.Helper()
	port := FreePort(t)
	p := Start(t, "order desk", port, nil, Build(t, "./upstream"), "-listen", fmt.Sprintf("127.0.0.1:%d", port))
	return &OrderDesk{p, fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}
}

// Ran returns how many times a tool has been started.
func (o *OrderDesk) Ran(t *testing.T, tool string) int {
	t.Helper()
	ran, err := o.ran(tool)
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

func (o *OrderDesk) ran(tool string) (int, error) {
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/calls", o.Port))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	ran := map[string]int{}
	err = json.NewDecoder(response.Body).Decode(&ran)
	return ran[tool], err
}

// Started returns a channel that is closed once a tool has been started, or
// after half a minute without.
func (o *OrderDesk) Started(tool string) <-chan struct{} {
	started := make(chan struct{})
	go func() {
		defer close(started)
		for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
			if n, err := o.ran(tool); err == nil && n > 0 {
				return
			}
		}
	}()
	return started
}

// Revise has the desk change the definition of its tool "ship".
func (o *OrderDesk) Revise(t *testing.T) {
	t.Helper()
	response, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/revise", o.Port), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}
