package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// Credentials opens the credential session of one operation. *credential.Broker
// is one.
type Credentials interface {
	Open(credential.Auth, credential.Purpose) (credential.Session, error)
}

// Options is what a Client works with.
type Options struct {
	Network     *wire.Network
	Version     string // ours, as clientInfo says it
	Credentials Credentials
	Store       Store
	Logger      *slog.Logger     // nil: silent
	Now         func() time.Time // nil: time.Now, whose readings are monotonic
}

// A Client speaks to the configured servers. It is safe for concurrent use.
type Client struct {
	options Options
}

// A Report is what a connection test found.
type Report struct {
	Era           string // Legacy or Modern
	Version       string // the protocol version in use
	ServerName    string // as the server calls itself, clipped; for display only
	ServerVersion string
	Legs          []gate.Leg
	Latency       time.Duration
}

// A Listing is every page of tools/list. Tools are the bytes received.
type Listing struct {
	Tools []json.RawMessage
	Era   string
	Legs  []gate.Leg
	Pages int
}

// CallOptions is what accompanies a call without being judged.
type CallOptions struct {
	Progress    func(params []byte) // raw params of notifications/progress for our token; nil asks for none
	TraceParent string              // W3C trace context of our own span
	TraceState  string
	Holder      string            // key of the downstream session for kept sessions; "" is the caller alone
	CallerToken credential.Secret // the verified inbound token, for grants that exchange it
}

// A Result is what the tool answered.
type Result struct {
	Raw     []byte       // the result object as received, unpaired surrogate escapes replaced
	Verdict gate.Verdict // gate.OK or gate.ToolError
	Era     string
	Outcome gate.Outcome // what to settle the permit with
}

// A CallError says why an operation failed, in a sentence for operators.
// Callers branch on Verdict and Reason.
type CallError struct {
	Server     gate.ServerID
	Verdict    gate.Verdict // NotSent, UpstreamError, OutcomeUnknown or Cancelled
	Reason     string       // one of the Reason constants, or a credential's
	Code       int64        // JSON-RPC error of the server, when HasCode
	HasCode    bool
	Message    string // the server's own words, clipped
	Data       []byte // raw error.data
	RetryAfter time.Duration
	Outcome    gate.Outcome // what to settle the permit with
	text       string
}

func (e *CallError) Error() string { return e.text }

// New returns a Client without servers.
func New(o Options) (*Client, error) {
	if o.Network == nil || o.Credentials == nil || o.Store == nil {
		return nil, errors.New("upstream client: network, credentials and store are required")
	}
	return &Client{options: o}, nil
}

// Configure replaces the servers.
func (c *Client) Configure(servers []Server) error { return nil }

// Test shakes hands with a server.
func (c *Client) Test(ctx context.Context, id gate.ServerID) (Report, error) {
	return Report{}, &CallError{Server: id}
}

// List walks every page of a server's tools/list.
func (c *Client) List(ctx context.Context, id gate.ServerID) (Listing, error) {
	return Listing{}, &CallError{Server: id}
}

// Call sends what p allows and returns what came back.
func (c *Client) Call(ctx context.Context, p *gate.Permit, o CallOptions) (Result, error) {
	return Result{}, &CallError{}
}

// EndHolder ends the sessions kept for a downstream session.
func (c *Client) EndHolder(holder string) {}

// Close ends kept sessions and waits for everything the client started.
func (c *Client) Close(ctx context.Context) error { return nil }
