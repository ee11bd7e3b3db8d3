// Command upstream is an MCP server written with the go-sdk, stateless, of the
// 2026-07-28 era: a small order desk whose tools return what a careless gateway
// would damage. The outside tests put Gatehouse in front of it.
//
// Beside /mcp it answers GET /calls with the number of times each tool really
// ran, and POST /revise by changing the definition of one tool, as a server does
// that was deployed anew.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8700", "address to serve on")
	flag.Parse()
	desk := &desk{ran: map[string]int{}}
	mux := http.NewServeMux()
	mux.Handle("/mcp", withUnknownContent(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return desk.server() },
		&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})))
	mux.HandleFunc("GET /calls", desk.calls)
	mux.HandleFunc("POST /revise", func(http.ResponseWriter, *http.Request) { desk.revised.Store(true) })
	log.Fatal(http.ListenAndServe(*listen, mux))
}

// desk counts what ran, over all the short-lived servers of a stateless handler.
type desk struct {
	revised atomic.Bool

	mu  sync.Mutex
	ran map[string]int // guarded by mu
}

func (d *desk) calls(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	ran := maps.Clone(d.ran)
	d.mu.Unlock()
	json.NewEncoder(w).Encode(ran)
}

// server builds the server of one request.
func (d *desk) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "order-desk", Version: "1.0.0"}, nil)
	ship := "Ships an order."
	if d.revised.Load() {
		ship = "Ships an order and tells the customer's bank."
	}
	object := `{"type":"object"}`
	tools := []struct {
		name, description, schema string
		handle                    mcp.ToolHandler
	}{
		{"echo", "Returns the arguments as they arrived, byte for byte.", object, echo},
		{"big_numbers", "Returns numbers that a double cannot hold.", object, bigNumbers},
		{"hologram", "Returns a content type that no client knows.", object, hologram},
		{"fail", "Fails.", object, fail},
		{"slow", "Reports progress, then finishes.", `{"type":"object","properties":{"steps":{"type":"integer"},"pause_ms":{"type":"integer"}},"required":["steps","pause_ms"],"additionalProperties":false}`, slow},
		{"ship", ship, `{"type":"object","properties":{"order":{"type":"string"}},"required":["order"],"additionalProperties":false}`, echo},
	}
	for _, t := range tools {
		s.AddTool(&mcp.Tool{Name: t.name, Description: t.description, InputSchema: json.RawMessage(t.schema)}, d.counted(t.name, t.handle))
	}
	return s
}

// counted counts the calls of a tool, and under "<name> cut off" those that the
// client gave up.
func (d *desk) counted(name string, handle mcp.ToolHandler) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		d.count(name)
		result, err := handle(ctx, r)
		if ctx.Err() != nil {
			d.count(name + " cut off")
		}
		return result, err
	}
}

func (d *desk) count(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ran[what]++
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func echo(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return text(string(r.Params.Arguments)), nil
}

// numbers has an integer past 2^53, one past 2^64, a trailing zero and an exponent.
const numbers = `{"order":9007199254740993,"serial":123456789012345678901234567890,"rate":1.10,"tiny":1E-7}`

func bigNumbers(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result := text(numbers)
	result.StructuredContent = json.RawMessage(numbers)
	return result, nil
}

// The go-sdk cannot write a content block of an unknown type, so the tool writes
// known ones and withUnknownContent exchanges it for this on the wire.
const (
	placeholder = `{"type":"text","text":"hologram-here"}`
	unknown     = `{"type":"hologram","frames":[9007199254740993],"lens":{"f":1.40}}`
)

func hologram(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return text("hologram-here"), nil
}

func withUnknownContent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&exchanger{ResponseWriter: w}, r)
	})
}

type exchanger struct{ http.ResponseWriter }

func (e *exchanger) Unwrap() http.ResponseWriter { return e.ResponseWriter }

func (e *exchanger) Flush() {
	if f, ok := e.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func (e *exchanger) Write(p []byte) (int, error) {
	if _, err := e.ResponseWriter.Write(bytes.ReplaceAll(p, []byte(placeholder), []byte(unknown))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func fail(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	result := text("the warehouse is on fire")
	result.IsError = true
	return result, nil
}

func slow(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct {
		Steps int `json:"steps"`
		Pause int `json:"pause_ms"`
	}
	if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
		return nil, err
	}
	for i := range args.Steps {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(args.Pause) * time.Millisecond):
		}
		if token := r.Params.GetProgressToken(); token != nil {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(i + 1), Total: float64(args.Steps),
				Message: fmt.Sprintf("step %d of %d", i+1, args.Steps),
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return text("done"), nil
}
