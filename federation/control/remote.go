package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"time"
)

// host is what requests through the socket name as their host; only the socket
// decides where they go.
const host = "http://gatehouse"

// maxReply bounds what is read of a daemon's reply: a catalogue of thousands of
// tools with their definitions.
const maxReply = 256 << 20

// operationLimit bounds one operation. It is longer than any budget that the
// daemon itself keeps to, and is for a daemon that has come to a halt.
const operationLimit = 15 * time.Minute

// A Remote is the API of the daemon behind a socket.
type Remote struct {
	client *http.Client
	path   string
}

var _ API = (*Remote)(nil)

// Dial reaches the daemon at the socket. The error is ErrNoDaemon when nobody
// listens there, also when a process that is gone left the socket behind.
func Dial(ctx context.Context, path string) (*Remote, error) {
	path = nearby(path)
	r := &Remote{client: dialer(path), path: path}
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	if _, err := r.Status(ctx); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close gives the connections up.
func (r *Remote) Close() { r.client.CloseIdleConnections() }

// An Endpoint is the MCP endpoint as one caller meets it.
type Endpoint struct {
	URL    string
	Client *http.Client
}

// Endpoint returns the endpoint for the named caller. It needs no token.
func (r *Remote) Endpoint(caller string) Endpoint {
	return Endpoint{URL: host + "/callers/" + url.PathEscape(caller) + "/mcp", Client: r.client}
}

// send asks for one operation and decodes its result into out.
func (r *Remote) send(ctx context.Context, operation string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operationLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, host+"/v1/"+operation, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return r.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return r.unreachable(ctx, err)
	}
	if resp.StatusCode != http.StatusOK {
		return failureOf(resp, reply)
	}
	if err := json.Unmarshal(reply, out); err != nil {
		return fmt.Errorf("%s: the daemon's reply could not be read; are it and this command of one version?", filepath.Base(r.path))
	}
	return nil
}

func (r *Remote) unreachable(ctx context.Context, err error) error {
	switch {
	case absent(err):
		return ErrNoDaemon
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s: the daemon does not answer (%w)", filepath.Base(r.path), unwrapURL(err))
}

// unwrapURL drops the url that net/http puts before its errors; ours says nothing.
func unwrapURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// A remoteError is the daemon's own error, as it came through the socket.
type remoteError struct{ failure }

func (e *remoteError) Error() string { return e.Text }

// Is makes what was not found there not found here.
func (e *remoteError) Is(target error) bool { return target == ErrNotFound && e.NotFound }

func failureOf(resp *http.Response, reply []byte) error {
	var f failure
	if json.Unmarshal(reply, &f) != nil || f.Text == "" {
		return fmt.Errorf("the daemon answered %s; are it and this command of one version?", resp.Status)
	}
	return &remoteError{f}
}

// Status implements API.
func (r *Remote) Status(ctx context.Context) (out Status, err error) {
	return out, r.send(ctx, "status", none{}, &out)
}

// Servers implements API.
func (r *Remote) Servers(ctx context.Context) (out []Server, err error) {
	return out, r.send(ctx, "servers", none{}, &out)
}

// TestServer implements API.
func (r *Remote) TestServer(ctx context.Context, id string) (out TestReport, err error) {
	return out, r.send(ctx, "test", inServer{id}, &out)
}

// Import implements API.
func (r *Remote) Import(ctx context.Context, ids []string, all, dryRun bool) (out []ImportReport, err error) {
	return out, r.send(ctx, "import", inImport{ids, all, dryRun}, &out)
}

// Tools implements API.
func (r *Remote) Tools(ctx context.Context, pattern string) (out []Tool, err error) {
	return out, r.send(ctx, "tools", inPattern{pattern}, &out)
}

// Tool implements API.
func (r *Remote) Tool(ctx context.Context, name string) (out ToolDetail, err error) {
	return out, r.send(ctx, "tool", inName{name}, &out)
}

// Diff implements API.
func (r *Remote) Diff(ctx context.Context, name string) (out Difference, err error) {
	return out, r.send(ctx, "diff", inName{name}, &out)
}

// Enable implements API.
func (r *Remote) Enable(ctx context.Context, patterns []string) (out []ToolChange, err error) {
	return out, r.send(ctx, "enable", inPatterns{patterns}, &out)
}

// Disable implements API.
func (r *Remote) Disable(ctx context.Context, patterns []string) (out []ToolChange, err error) {
	return out, r.send(ctx, "disable", inPatterns{patterns}, &out)
}

// Explain implements API.
func (r *Remote) Explain(ctx context.Context, tool, caller string) (out Explanation, err error) {
	return out, r.send(ctx, "explain", inExplain{tool, caller}, &out)
}

// Approvals implements API.
func (r *Remote) Approvals(ctx context.Context) (out []Approval, err error) {
	return out, r.send(ctx, "approvals", none{}, &out)
}

// Approval implements API.
func (r *Remote) Approval(ctx context.Context, number uint64) (out Approval, err error) {
	return out, r.send(ctx, "approval", inDecide{Number: number}, &out)
}

// Decide implements API.
func (r *Remote) Decide(ctx context.Context, number uint64, approve bool) error {
	return r.send(ctx, "decide", inDecide{number, approve}, &none{})
}

// Secrets implements API.
func (r *Remote) Secrets(ctx context.Context) (out []Secret, err error) {
	return out, r.send(ctx, "secrets", none{}, &out)
}

// SetSecret implements API.
func (r *Remote) SetSecret(ctx context.Context, name string, value []byte) error {
	return r.send(ctx, "set-secret", inSecret{name, value}, &none{})
}

// RemoveSecret implements API.
func (r *Remote) RemoveSecret(ctx context.Context, name string) error {
	return r.send(ctx, "remove-secret", inName{name}, &none{})
}
