package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Go opens a client of the go-sdk. It asks for the 2026 era first and answers
// input_required results by calling again, as the SDK does on its own.
func Go(t *testing.T, o Options) Client {
	t.Helper()
	c, err := openGo(t, o)
	if err != nil {
		t.Fatalf("the go-sdk client did not connect: %v", err)
	}
	return c
}

// GoRefused opens a client that is expected not to get in, and returns why.
func GoRefused(t *testing.T, o Options) error {
	t.Helper()
	if _, err := openGo(t, o); err != nil {
		return err
	}
	t.Fatal("the go-sdk client connected")
	return nil
}

func openGo(t *testing.T, o Options) (*goClient, error) {
	t.Helper()
	c := &goClient{options: o, wire: &recorder{token: o.Token}}
	so := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.progress = append(c.progress, Progress{r.Params.Progress, r.Params.Total, r.Params.Message})
		},
	}
	if o.Answer != None {
		so.ElicitationHandler = c.answer
	}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: o.URL, HTTPClient: &http.Client{Transport: c.wire}}
	if len(o.Command) > 0 {
		cmd := exec.Command(o.Command[0], o.Command[1:]...)
		cmd.Stderr = os.Stderr
		transport = &mcp.CommandTransport{Command: cmd}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e-go", Version: "1.0.0"}, so).Connect(ctx, transport, nil)
	if err != nil {
		return nil, err
	}
	c.session = session
	t.Cleanup(func() { session.Close() })
	return c, nil
}

// progressLag is how long the SDK may still be busy handing over notifications
// after the result that followed them.
const progressLag = 200 * time.Millisecond

type goClient struct {
	options Options
	session *mcp.ClientSession
	wire    *recorder

	mu        sync.Mutex
	questions []Question // guarded by mu
	progress  []Progress // guarded by mu
}

func (c *goClient) answer(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	schema, err := json.Marshal(r.Params.RequestedSchema)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.questions = append(c.questions, Question{r.Params.Message, schema})
	c.mu.Unlock()
	switch c.options.Answer {
	case Late:
		select {
		case <-time.After(c.options.LateBy):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		fallthrough
	case Accept:
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
	case Deny:
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "deny"}}, nil
	case Silent:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &mcp.ElicitResult{Action: string(c.options.Answer)}, nil
}

func (c *goClient) List(t *testing.T) []Tool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var tools []Tool
	for tool, err := range c.session.Tools(ctx, nil) {
		if err != nil {
			t.Fatalf("tools/list: %v", err)
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, Tool{tool.Name, tool.Description, schema})
	}
	return tools
}

func (c *goClient) Call(t *testing.T, name, arguments string, options ...Option) Reply {
	t.Helper()
	o := with(options)
	limit := timeout(c.options)
	if o.cancel > 0 {
		limit = o.cancel
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	params := &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}
	if o.progress {
		params.SetProgressToken("e2e-" + name)
	}
	c.mu.Lock()
	c.questions, c.progress = nil, nil
	c.mu.Unlock()
	c.wire.reset()

	start := time.Now()
	result, err := c.session.CallTool(ctx, params)
	r := Reply{Took: time.Since(start), Wire: c.wire.bodies()}
	if o.progress {
		time.Sleep(progressLag)
	}
	c.mu.Lock()
	r.Questions, r.Progress = c.questions, c.progress
	c.mu.Unlock()
	if err != nil {
		r.Error = &Error{Message: err.Error()}
		if e := fromServer(err); e != nil {
			r.Error = &Error{Code: int(e.Code), Message: e.Message, Data: e.Data}
		}
		return r
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r.Result); err != nil {
		t.Fatal(err)
	}
	return r
}

// rejected is the code of an error that the SDK joins to the server's own when
// the HTTP status was not 200.
const rejected = -32005

// fromServer finds the server's error in what the SDK returned.
func fromServer(err error) *jsonrpc.Error {
	switch e := err.(type) {
	case nil:
		return nil
	case *jsonrpc.Error:
		if e.Code != rejected {
			return e
		}
		return nil
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if found := fromServer(part); found != nil {
				return found
			}
		}
		return nil
	}
	return fromServer(errors.Unwrap(err))
}

func (c *goClient) Info(t *testing.T) (string, string) {
	t.Helper()
	hello := c.session.InitializeResult()
	name := ""
	if hello.ServerInfo != nil {
		name = hello.ServerInfo.Name
	}
	return name, hello.Instructions
}

// recorder adds the token to every request and keeps the text of every response.
type recorder struct {
	token string

	mu   sync.Mutex
	kept []*bytes.Buffer // guarded by mu, as are the buffers
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	buffer := new(bytes.Buffer)
	r.mu.Lock()
	r.kept = append(r.kept, buffer)
	r.mu.Unlock()
	response.Body = &recordedBody{response.Body, r, buffer}
	return response, nil
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = nil
}

func (r *recorder) bodies() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var texts []string
	for _, b := range r.kept {
		texts = append(texts, b.String())
	}
	return texts
}

type recordedBody struct {
	io.ReadCloser
	recorder *recorder
	buffer   *bytes.Buffer
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.recorder.mu.Lock()
	b.buffer.Write(p[:n])
	b.recorder.mu.Unlock()
	return n, err
}
