package federation_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gatehouse/upstream/upstreamtest/leak"
)

// This file is what callers do: both eras over HTTP, with headers of their own
// that are nobody's business upstream.

// patience is how long anything may take that no budget of ours bounds, on a
// machine that is busy with other things.
const patience = 60 * time.Second

// A flight is one POST and what comes back for it, message by message.
type flight struct {
	messages chan message
	hangUp   context.CancelFunc
	status   int // of these two, once messages is closed
	header   http.Header
}

// A message is one that came back; nil stands for none.
type message map[string]json.RawMessage

// post sends a body as somebody, who may be nobody.
func (m *machine) post(p *person, body string, header map[string]string) *flight {
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{messages: make(chan message, 8), hangUp: cancel}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.front.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	set := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Cookie": "session=" + leak.Mark, "X-Forwarded-For": "192.0.2.1", "X-Api-Key": leak.Mark, "X-Real-Ip": "192.0.2.1",
		"Mcp-Param-Region": leak.Mark, "Proxy-Authorization": "Basic " + leak.Mark}
	if p != nil {
		set["Authorization"] = "Bearer " + p.token
	}
	for _, more := range []map[string]string{set, header} {
		for name, value := range more {
			req.Header.Set(name, value)
		}
	}
	m.flights.Go(func() { // ended by its answer, by hangUp, or with the gateway
		defer close(f.messages)
		defer cancel()
		res, err := m.client.Do(req)
		if err != nil {
			return
		}
		defer res.Body.Close()
		f.status, f.header = res.StatusCode, res.Header
		f.read(res)
	})
	return f
}

// read takes the messages out of a response; what is none ends it.
func (f *flight) read(res *http.Response) {
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if body, err := io.ReadAll(res.Body); err == nil {
			f.take(body)
		}
		return
	}
	for lines := bufio.NewReaderSize(res.Body, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			f.take(data)
		}
		if err != nil {
			return
		}
	}
}

func (f *flight) take(data []byte) {
	var one message
	if json.Unmarshal(data, &one) == nil {
		f.messages <- one
	}
}

// next is the next message of f, nil at the end.
func (m *machine) next(f *flight) message {
	select {
	case one := <-f.messages:
		return one
	case <-time.After(patience):
		m.broke(5, "a call has no end after %s", patience)
		f.hangUp()
		return nil
	}
}

// over waits for the end of f.
func (m *machine) over(f *flight) *flight {
	for m.next(f) != nil {
	}
	return f
}

// member digs in a message.
func (one message) member(path ...string) json.RawMessage {
	raw := json.RawMessage(nil)
	for i, key := range path {
		if i > 0 {
			one = nil
			_ = json.Unmarshal(raw, &one) // what is no object has no members
		}
		raw = one[key]
	}
	return raw
}

func (one message) text(path ...string) (s string) {
	_ = json.Unmarshal(one.member(path...), &s) // what is no string is ""
	return s
}

func (one message) verdict() string {
	if one["error"] != nil {
		return one.text("error", "data", "gatehouse/outcome")
	}
	return one.text("result", "_meta", "gatehouse/outcome")
}

func (one message) String() string {
	b, _ := json.Marshal(map[string]json.RawMessage(one)) // of raw messages that were parsed
	return string(b[:min(len(b), 600)])
}

const yes = `{"action":"accept","content":{"decision":"approve"}}`

// answers are what a person, or a client in their name, may say that is no yes.
var answers = []string{
	`{"action":"accept","content":{"decision":"deny"}}`,
	`{"action":"decline"}`,
	`{"action":"cancel"}`,
	`{}`,
	`{"action":"accept"}`,
	`{"action":"accept","content":{}}`,
	`{"action":"accept","content":{"decision":"APPROVE"}}`,
	`{"action":"accept","content":{"Decision":"approve"}}`,
	`{"action":"accept","content":{"decision":["approve"]}}`,
	`{"action":"accept","content":{"decision":"approve","more":true}}`,
	`{"action":"decline","content":{"decision":"approve"}}`,
	`{"action":"Accept","content":{"decision":"approve"}}`,
	`{"content":{"decision":"approve"}}`,
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}`

// dial makes an attempt, with more parameters such as an answer.
func (m *machine) dial(a *attempt, more string) *flight {
	if a.session != nil {
		a.session.calls++
		return m.post(a.who, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, a.session.calls, a.tool(), a.arguments), a.session.header())
	}
	capabilities := `{}`
	if a.elicits {
		capabilities = `{"elicitation":{"form":{}}}`
	}
	return m.modern(a.who, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s,%s`, a.tool(), a.arguments, more), capabilities, map[string]string{"Mcp-Name": a.tool()})
}

// back is the parameters of an attempt that comes back with an answer; "" is none.
func back(state, answer string) string {
	more := fmt.Sprintf(`"requestState":%q,`, state)
	if answer != "" {
		more += fmt.Sprintf(`"inputResponses":{"approval":%s},`, answer)
	}
	return more
}

func (m *machine) modern(p *person, method, params, capabilities string, header map[string]string) *flight {
	all := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	for name, value := range header {
		all[name] = value
	}
	return m.post(p, fmt.Sprintf(`{"jsonrpc":"2.0","id":"m","method":%q,"params":{%s`+modernMeta+`}}`, method, params, capabilities), all)
}

// legacy sends a message in a session.
func (m *machine) legacy(p *person, s *session, body string) *flight {
	return m.post(p, body, s.header())
}

func (s *session) header() map[string]string {
	return map[string]string{"Mcp-Session-Id": s.id, "Mcp-Protocol-Version": "2025-11-25"}
}

// connect opens a session.
func (m *machine) connect(p *person, elicits bool) *session {
	capabilities := `{}`
	if elicits {
		capabilities = `{"elicitation":{}}`
	}
	f := m.over(m.post(p, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"machine","version":"1"}}}`, nil))
	s := &session{id: f.header.Get("Mcp-Session-Id"), elicits: elicits}
	if s.id == "" {
		m.t.Fatalf("no session: status %d", f.status)
	}
	p.sessions = append(p.sessions, s)
	return s
}

// leave ends a session.
func (m *machine) leave(p *person, s *session) {
	req, err := http.NewRequest(http.MethodDelete, m.front.URL+"/mcp", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	for name, value := range s.header() {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	res, err := m.client.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		m.t.Fatalf("a session could not be ended: status %d", res.StatusCode)
	}
}

// respond answers a question in a session.
func (m *machine) respond(p *person, s *session, id, answer string) int {
	return m.over(m.legacy(p, s, fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, id, answer))).status
}

// listed is the tools that a person's client is shown, name -> title.
func (m *machine) listed(p *person, s *session) map[string]string {
	var f *flight
	if s != nil {
		f = m.legacy(p, s, `{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
	} else {
		f = m.modern(p, "tools/list", "", "{}", nil)
	}
	var tools []struct{ Name, Title string }
	one := m.next(f)
	if err := json.Unmarshal(one.member("result", "tools"), &tools); err != nil {
		m.broke(6, "%s lists no tools: %s", p.name, one)
	}
	out := map[string]string{}
	for _, tool := range tools {
		if strings.HasPrefix(tool.Name, "mcp_") {
			out[tool.Name] = tool.Title
		}
	}
	return out
}
