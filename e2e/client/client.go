// Package client drives the MCP clients that the outside tests use, none of
// them ours: the TypeScript SDK, which speaks the 2025 era, and the go-sdk, which
// speaks the 2026 one. Both keep the text of what came over the wire, because
// what a client's library decodes says nothing about bytes.
package client

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// An Answer is what the person in front of a client does when asked to approve.
type Answer string

// The answers.
const (
	Accept  Answer = "accept"
	Deny    Answer = "deny"    // submits the form, but with the other choice
	Decline Answer = "decline" // turns the form down
	Cancel  Answer = "cancel"  // closes the form
	Late    Answer = "late"    // accepts, after Options.LateBy
	Silent  Answer = "silent"  // never answers
	None    Answer = "none"    // the client has no elicitation and says so
)

// Options say how to reach the server and who sits in front of the client.
type Options struct {
	URL, Token string
	Command    []string // speaks stdio with this command instead of HTTP
	Answer     Answer
	LateBy     time.Duration
	Timeout    time.Duration // of one call; a minute when zero
}

// A Client is a connected client.
type Client interface {
	// List returns every tool of every page.
	List(t *testing.T) []Tool
	// Call calls one tool with arguments that go out as they are written here.
	Call(t *testing.T, name, arguments string, o ...Option) Reply
	// Info returns the server's name and instructions.
	Info(t *testing.T) (name, instructions string)
}

// A Kind opens a client of one SDK.
type Kind struct {
	Name string
	Open func(t *testing.T, o Options) Client
}

// Kinds are the clients every scenario runs with.
var Kinds = []Kind{
	{"typescript-2025", TypeScript},
	{"go-2026", Go},
}

// An Option changes one call.
type Option func(*call)

type call struct {
	progress bool
	cancel   time.Duration
}

// WithProgress asks for progress notifications.
func WithProgress(c *call) { c.progress = true }

// CancelAfter has the client give up.
func CancelAfter(d time.Duration) Option { return func(c *call) { c.cancel = d } }

func with(options []Option) call {
	var c call
	for _, o := range options {
		o(&c)
	}
	return c
}

// A Tool is one entry of tools/list, as the client's library read it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Names lists the names of tools, in their order.
func Names(tools []Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}

// A Question is what the person was shown.
type Question struct {
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
}

// A Progress is one notification of progress.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

// A Reply is how a call ended for the client.
type Reply struct {
	Result    *Result       `json:"result"`
	Error     *Error        `json:"error"`
	Questions []Question    `json:"questions"`
	Progress  []Progress    `json:"progress"`
	Wire      []string      `json:"wire"` // bodies of the responses, as text
	Took      time.Duration `json:"-"`
}

// A Result is a tool's result, as the client's library read it.
type Result struct {
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StructuredContent json.RawMessage            `json:"structuredContent"`
	IsError           bool                       `json:"isError"`
	Meta              map[string]json.RawMessage `json:"_meta"`
}

// An Error is a JSON-RPC error, or one the library made itself (code 0).
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Text returns the text blocks of the result, or the message of the error.
func (r Reply) Text() string {
	if r.Error != nil {
		return r.Error.Message
	}
	if r.Result == nil {
		return ""
	}
	var parts []string
	for _, c := range r.Result.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// OK reports whether the tool ran and did not fail.
func (r Reply) OK() bool { return r.Error == nil && r.Result != nil && !r.Result.IsError }

// Outcome returns the verdict that the gateway wrote into the result, if any.
func (r Reply) Outcome() string {
	if r.Result == nil {
		return ""
	}
	var verdict string
	if json.Unmarshal(r.Result.Meta["gatehouse/outcome"], &verdict) != nil {
		return ""
	}
	return verdict
}

// OnWire reports whether the response bodies contain text as it is.
func (r Reply) OnWire(text string) bool {
	return strings.Contains(strings.Join(r.Wire, "\n"), text)
}

// String describes the reply for a failure's message.
func (r Reply) String() string {
	switch {
	case r.Error != nil:
		return fmt.Sprintf("error %d %q data %s after %s", r.Error.Code, r.Error.Message, r.Error.Data, r.Took.Round(time.Millisecond))
	case r.Result != nil:
		return fmt.Sprintf("isError=%v outcome=%q text %q after %s", r.Result.IsError, r.Outcome(), r.Text(), r.Took.Round(time.Millisecond))
	}
	return "no reply"
}
