package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"gatehouse/gate"
)

const (
	// maxRounds bounds how often a call is sent again.
	maxRounds = 10_000
	// roundPause is between two rounds while somebody else decides. The daemon
	// holds a retry open for a while; where it does not, this keeps us from spinning.
	roundPause = 500 * time.Millisecond
)

// Call implements API: it is a caller of MCP 2026-07-28 at the daemon's own
// endpoint, so that a call from here takes the way of any other.
func (r *Remote) Call(ctx context.Context, c CallRequest, ask Asker, progress func([]byte)) (CallReply, error) {
	call := &remoteCall{endpoint: r.Endpoint(c.Caller), request: c, asks: ask != nil, progress: progress}
	for round := 1; round <= maxRounds; round++ {
		reply, err := call.send(ctx, round)
		if err != nil {
			if absent(err) {
				err = ErrNoDaemon
			}
			return CallReply{}, err
		}
		if reply.Error != nil {
			return failed(reply.Error), nil
		}
		var result struct {
			Type     string                  `json:"resultType"`
			State    string                  `json:"requestState"`
			Requests map[string]inputRequest `json:"inputRequests"`
			Meta     struct {
				Verdict gate.Verdict `json:"gatehouse/outcome"`
				Record  uint64       `json:"gatehouse/record"`
			} `json:"_meta"`
		}
		if err := json.Unmarshal(reply.Result, &result); err != nil {
			return CallReply{}, errReply
		}
		if result.Type != "input_required" {
			return CallReply{Result: reply.Result, Verdict: result.Meta.Verdict, Record: result.Meta.Record}, nil
		}
		call.state, call.responses = result.State, answers(ctx, result.Requests, ask)
		if len(result.Requests) == 0 && !pause(ctx) {
			return CallReply{}, ctx.Err()
		}
	}
	return CallReply{}, errors.New("the daemon asked too often; nothing was decided")
}

// pause waits a little; false when ctx ended first.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(roundPause):
		return true
	case <-ctx.Done():
		return false
	}
}

var errReply = errors.New("the daemon's reply could not be read; are it and this command of one version?")

// failed reads the verdict that the gateway puts into the data of its errors.
func failed(e *CallFailure) CallReply {
	var data struct {
		Verdict gate.Verdict `json:"gatehouse/outcome"`
		Record  uint64       `json:"gatehouse/record"`
	}
	// Data is free in form: what is not there stays empty.
	_ = json.Unmarshal(e.Data, &data)
	reply := CallReply{Error: e, Verdict: data.Verdict, Record: data.Record}
	if reply.Verdict == "" {
		reply.Verdict = gate.Refused
	}
	return reply
}

type inputRequest struct {
	Method string `json:"method"`
	Params struct {
		Message string `json:"message"`
	} `json:"params"`
}

type inputResponse struct {
	Action  string          `json:"action"`
	Content json.RawMessage `json:"content,omitempty"`
}

// answers puts every question to the person; without a question there is
// nothing to answer, and the call is only sent again.
func answers(ctx context.Context, requests map[string]inputRequest, ask Asker) map[string]inputResponse {
	out := map[string]inputResponse{}
	for key, request := range requests {
		answer := Unanswered
		if request.Method == "elicitation/create" && ask != nil {
			answer = ask(ctx, Question{Message: request.Params.Message})
		}
		out[key] = inputResponse{answer.action(), answer.content()}
	}
	return out
}

// A remoteCall is one call through all its rounds.
type remoteCall struct {
	endpoint  Endpoint
	request   CallRequest
	asks      bool
	progress  func([]byte)
	state     string
	responses map[string]inputResponse
}

func (c *remoteCall) body(round int) ([]byte, error) {
	capabilities := map[string]any{}
	if c.asks {
		capabilities["elicitation"] = map[string]any{"form": map[string]any{}}
	}
	meta := map[string]any{
		versionKey: "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": capabilities,
		"io.modelcontextprotocol/clientInfo":         map[string]string{"name": "gatehouse-cli", "version": "1"},
	}
	if c.progress != nil {
		meta["progressToken"] = "p"
	}
	params, err := json.Marshal(map[string]any{"name": c.request.Tool, "_meta": meta})
	if err != nil {
		return nil, err
	}
	// Put in as they are: what a person typed is what is judged, shown and sent.
	params = append(params[:len(params)-1], `,"arguments":`...)
	if c.request.Arguments == nil {
		params = append(params, "{}"...)
	} else {
		params = append(params, c.request.Arguments...)
	}
	if c.state != "" {
		rest, err := json.Marshal(map[string]any{"requestState": c.state, "inputResponses": c.responses})
		if err != nil {
			return nil, err
		}
		params = append(append(params, ','), rest[1:len(rest)-1]...)
	}
	body := []byte(`{"jsonrpc":"2.0","id":"cli-` + strconv.Itoa(round) + `","method":"tools/call","params":`)
	return append(append(body, params...), "}}"...), nil
}

type rpcReply struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *CallFailure    `json:"error"`
}

func (c *remoteCall) send(ctx context.Context, round int) (reply rpcReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, operationLimit)
	defer cancel()
	body, err := c.body(round)
	if err != nil {
		return reply, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.endpoint.Client.Do(req)
	if err != nil {
		return reply, fmt.Errorf("the daemon does not answer: %w", unwrapURL(err))
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "text/event-stream" {
		return c.stream(resp.Body)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return reply, err
	}
	if json.Unmarshal(raw, &reply) != nil || reply.Result == nil && reply.Error == nil {
		return reply, failureOf(resp, raw)
	}
	return reply, nil
}

// stream reads progress up to the answer.
func (c *remoteCall) stream(body io.Reader) (reply rpcReply, err error) {
	found := false
	err = Events(body, func(data []byte) error {
		var message rpcReply
		switch {
		case json.Unmarshal(data, &message) != nil:
			return errReply
		case message.Method == "notifications/progress" && c.progress != nil:
			c.progress(message.Params)
		case message.Result != nil || message.Error != nil:
			reply, found = message, true
			return io.EOF
		}
		return nil
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err == nil && !found {
		err = errors.New("the daemon ended the call without an answer; gatehouse audit tail shows what became of it")
	}
	return reply, err
}
