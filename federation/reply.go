package federation

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// JSON-RPC and MCP error codes (MCP 2026-07-28, basic/transports/streamable-http).
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// An rpcError is an error as the caller gets it.
type rpcError struct {
	code    int64
	message string
	data    []byte // raw JSON or nil
}

// statusOf is the HTTP status that the modern era prescribes for a code. Legacy
// requests get 200 with the error inside, except where the body was no message.
func statusOf(code int64) int {
	switch code {
	case codeMethodNotFound:
		return http.StatusNotFound
	case codeParse, codeInvalidRequest, codeInvalidParams, codeHeaderMismatch, codeMissingCapability, codeUnsupportedVersion:
		return http.StatusBadRequest
	}
	// The revision gives no status to -32603, and clients drop the body of a 5xx
	// as a passing failure of the transport: nobody would learn what happened.
	return http.StatusOK
}

func appendError(dst, id []byte, e *rpcError) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, id...)
	}
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, e.code, 10)
	dst = append(dst, `,"message":`...)
	dst = rawjson.AppendString(dst, e.message)
	if e.data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.data...)
	}
	return append(dst, "}}"...)
}

// resultHead begins a response; the caller appends the result object and '}'.
func resultHead(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// Names in _meta that are ours to set. What an upstream puts there is dropped,
// or it could forge a verdict.
const (
	metaOurs       = "gatehouse/"
	metaOutcome    = metaOurs + "outcome"
	metaRecord     = metaOurs + "record"
	metaServerInfo = "io.modelcontextprotocol/serverInfo"
)

// appendResult appends an upstream's result object as this caller may read it.
// Every member passes as the bytes received, except _meta, which gains our
// verdict, and what would not be valid in the caller's era.
func appendResult(dst []byte, members []rawjson.Member, era era, serverInfo []byte, verdict gate.Verdict, record uint64) []byte {
	dst = append(dst, '{')
	if era == modern {
		dst = append(dst, `"resultType":"complete",`...)
	}
	var meta []byte
	for i := range members {
		m := &members[i]
		switch {
		case m.Key == "_meta":
			meta = m.Value
			continue
		case m.Key == "resultType":
			continue
		case m.Key == "structuredContent" && era == legacy && !rawjson.IsObject(m.Value):
			// Before 2026-07-28 structured content is an object; SDKs of that
			// time refuse the whole result otherwise. The text content stays.
			continue
		}
		dst = append(append(append(append(dst, m.Name...), ':'), m.Value...), ',')
	}
	dst = append(dst, `"_meta":`...)
	dst = appendMeta(dst, meta, era, serverInfo, verdict, record)
	return append(dst, '}')
}

func appendMeta(dst, theirs []byte, era era, serverInfo []byte, verdict gate.Verdict, record uint64) []byte {
	dst = append(dst, '{')
	if theirs != nil {
		members, err := rawjson.Object(theirs)
		if err != nil {
			members = nil // not an object, or ambiguous: nothing to pass on
		}
		for _, m := range members {
			if !strings.HasPrefix(m.Key, metaOurs) && m.Key != metaServerInfo {
				dst = append(append(append(append(dst, m.Name...), ':'), m.Value...), ',')
			}
		}
	}
	if era == modern {
		dst = append(dst, `"`+metaServerInfo+`":`...)
		dst = append(append(dst, serverInfo...), ',')
	}
	dst = append(dst, `"`+metaOutcome+`":"`...)
	dst = append(dst, verdict...)
	dst = append(dst, `","`+metaRecord+`":`...)
	dst = strconv.AppendUint(dst, record, 10)
	return append(dst, '}')
}

// textResult is a result of our own: one text block.
func textResult(text string, isError bool) []rawjson.Member {
	block := rawjson.AppendString([]byte(`[{"type":"text","text":`), text)
	members := []rawjson.Member{member("content", append(block, `}]`...))}
	if isError {
		members = append(members, member("isError", []byte("true")))
	}
	return members
}

func member(key string, value []byte) rawjson.Member {
	return rawjson.Member{Key: key, Name: rawjson.AppendString(nil, key), Value: value}
}

// refusalData is error.data of a refusal: the verdict, the record, and for
// administrators the reason.
func refusalData(verdict gate.Verdict, reason string, record uint64) []byte {
	dst := []byte(`{"` + metaOutcome + `":"` + string(verdict) + `","` + metaRecord + `":`)
	dst = strconv.AppendUint(dst, record, 10)
	if reason != "" {
		dst = append(dst, `,"gatehouse/reason":`...)
		dst = rawjson.AppendString(dst, reason)
	}
	return append(dst, '}')
}

const (
	// writeLimit bounds one write to a caller, who may read as slowly as they like.
	writeLimit = 30 * time.Second
	// keepAliveEvery is how often a waiting stream carries a comment; the
	// shortest idle cut observed between callers and servers is 60 s.
	keepAliveEvery = 15 * time.Second
)

// An answer is the response to one POST. It begins as a single JSON value and
// becomes an event stream when something has to be said before the result.
type answer struct {
	w       http.ResponseWriter
	streams bool // the caller accepts text/event-stream

	mu        sync.Mutex // guards everything below and the writing itself
	streaming bool
	finished  bool
	broken    error
	ticker    *time.Timer
}

// event sends one JSON-RPC message ahead of the result.
func (a *answer) event(payload []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.upgrade(); err != nil {
		return err
	}
	return a.writeEvent(payload)
}

// upgrade turns the answer into an event stream. mu is held.
func (a *answer) upgrade() error {
	switch {
	case a.finished:
		return http.ErrBodyNotAllowed
	case a.broken != nil:
		return a.broken
	case a.streaming:
		return nil
	case !a.streams:
		return http.ErrNotSupported
	}
	a.streaming = true
	streamHeaders(a.w)
	a.w.WriteHeader(http.StatusOK)
	return nil
}

func streamHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
}

func (a *answer) writeEvent(payload []byte) error {
	buf := make([]byte, 0, len(payload)+24)
	buf = append(buf, "event: message\ndata: "...)
	start := len(buf)
	buf = append(buf, payload...)
	// A line break in JSON is white space between tokens; in an event it would
	// end the field, and the message with it.
	for i := start; i < len(buf); i++ {
		if buf[i] == '\n' || buf[i] == '\r' {
			buf[i] = ' '
		}
	}
	return a.write(append(buf, "\n\n"...), true)
}

func (a *answer) write(b []byte, flush bool) error {
	if a.broken != nil {
		return a.broken
	}
	a.broken = writeBounded(a.w, b, flush)
	return a.broken
}

// writeBounded writes b within writeLimit.
func writeBounded(w http.ResponseWriter, b []byte, flush bool) error {
	rc := http.NewResponseController(w)
	// A writer without deadlines is a test's recorder; the real one has them.
	_ = rc.SetWriteDeadline(time.Now().Add(writeLimit))
	if _, err := w.Write(b); err != nil {
		return err
	}
	if flush {
		return rc.Flush()
	}
	return nil
}

// keepAlive starts sending comments while the caller waits. finish ends it.
func (a *answer) keepAlive() {
	if !a.streams {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ticker == nil && !a.finished {
		a.ticker = time.AfterFunc(keepAliveEvery, a.tick)
	}
}

func (a *answer) tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished || a.upgrade() != nil || a.write([]byte(": waiting\n\n"), true) != nil {
		return
	}
	a.ticker.Reset(keepAliveEvery)
}

// finish sends the response, whose pieces are written one after the other, and
// ends the answer. Later calls do nothing.
func (a *answer) finish(status int, pieces ...[]byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished {
		return
	}
	a.finished = true
	if a.ticker != nil {
		a.ticker.Stop()
	}
	if a.streaming {
		_ = a.writeEvent(bytes.Join(pieces, nil)) // kept in broken; there is nobody left to tell
		return
	}
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	h := a.w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	h["Content-Length"] = []string{strconv.Itoa(size)}
	a.w.WriteHeader(status)
	for _, piece := range pieces {
		_ = a.write(piece, false)
	}
}

// Header values that responses share. Nobody writes to them.
var jsonType, noStore = []string{"application/json"}, []string{"no-store"}

// abandon ends an answer that has no response: nothing may be written once the
// request is over. After finish it does nothing.
func (a *answer) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true
	if a.ticker != nil {
		a.ticker.Stop()
	}
}
