package upstream

import (
	"net/http"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// A trace is the W3C context of our own span. Values that are no header values
// are dropped, they could not be sent.
type trace struct{ parent, state string }

// maxTraceState is what W3C asks receivers to pass on at least.
const maxTraceState = 512

func newTrace(parent, state string) trace {
	if parent == "" || len(parent) > maxTraceState || !visible(parent) {
		return trace{}
	}
	if len(state) > maxTraceState || !visible(state) {
		state = ""
	}
	return trace{parent, state}
}

// visible reports whether s is ASCII text that a header can carry.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

func (t trace) setHeader(h http.Header) {
	if t.parent != "" {
		h["Traceparent"] = []string{t.parent}
	}
	if t.state != "" {
		h["Tracestate"] = []string{t.state}
	}
}

// appendMeta appends the members of a _meta object that follow its first ones.
func (t trace) appendMeta(dst []byte, token string) []byte {
	if token != "" {
		dst = rawjson.AppendString(append(dst, `,"progressToken":`...), token)
	}
	if t.parent != "" {
		dst = rawjson.AppendString(append(dst, `,"traceparent":`...), t.parent)
	}
	if t.state != "" {
		dst = rawjson.AppendString(append(dst, `,"tracestate":`...), t.state)
	}
	return dst
}

// modernMeta is the part of _meta that is the same in every 2026 request.
func modernMeta(version string) []byte {
	b := []byte(`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + Modern + `",` +
		`"io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"gatehouse","version":`)
	return append(rawjson.AppendString(b, version), '}')
}

// modernRequest is a request of the 2026 era. Params begins with its own
// members, each followed by a comma, and is closed here with _meta.
func (op *operation) modernRequest(method string, params [][]byte, token string) wire.Request {
	meta := append(make([]byte, 0, metaRoom), op.client.meta...)
	meta = append(op.trace.appendMeta(meta, token), '}', '}')
	h := make(http.Header, 6)
	h["Mcp-Protocol-Version"] = modernHeader
	h["Mcp-Method"] = []string{method}
	op.trace.setHeader(h)
	return wire.Request{Method: method, Params: append(params, meta), Header: h, Token: token}
}

// modernHeader is shared by all requests; nobody writes to it.
var modernHeader = []string{Modern}

// metaRoom is what _meta takes, trace context included, so that it is built
// without growing.
const metaRoom = 512
