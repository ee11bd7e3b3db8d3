package upstreamtest

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"gatehouse/gate/rawjson"
)

// An Exchange is one request that waits for its answer.
type Exchange struct {
	Request
	Writer http.ResponseWriter

	server    *Server
	state     *session // of the request's session, nil without one
	http      *http.Request
	streaming bool   // the event stream has begun
	proper    func() // answers as a server that behaves
}

// Gone is closed when the client has hung up.
func (x *Exchange) Gone() <-chan struct{} { return x.http.Context().Done() }

// Context ends when the client has hung up.
func (x *Exchange) Context() context.Context { return x.http.Context() }

// Message frames a response with the request's id around rest, which is
// `"result":…` or `"error":…`.
func (x *Exchange) Message(rest string) string {
	return `{"jsonrpc":"2.0","id":` + string(x.ID) + `,` + rest + `}`
}

// Result answers with a result object, in the profile's framing.
func (x *Exchange) Result(object string) { x.Send(x.Message(`"result":` + object)) }

// Send answers with one whole message, in the profile's framing.
func (x *Exchange) Send(message string) {
	if x.server.Profile.Stream || x.streaming {
		x.Event(message)
		return
	}
	x.Raw(http.StatusOK, "application/json", message)
}

// Error answers with a JSON-RPC error under an HTTP status.
func (x *Exchange) Error(status int, code int64, message string) {
	x.ErrorData(status, code, message, "")
}

// ErrorData is Error with raw data; "" leaves data out.
func (x *Exchange) ErrorData(status int, code int64, message, data string) {
	object := `"error":{"code":` + strconv.FormatInt(code, 10) + `,"message":` + quote(message)
	if data != "" {
		object += `,"data":` + data
	}
	reply := x.Message(object + `}`)
	if status == http.StatusOK {
		x.Send(reply)
		return
	}
	x.Raw(status, "application/json", reply)
}

// Notify sends a notification on the event stream that carries the answer.
func (x *Exchange) Notify(method, params string) {
	x.Event(`{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`)
}

// Event sends one event and flushes it; the first begins the stream.
func (x *Exchange) Event(message string) {
	x.Chunk("event: message\ndata: " + strings.ReplaceAll(message, "\n", "\ndata: ") + "\n\n")
}

// Chunk sends raw bytes of an event stream and flushes them.
func (x *Exchange) Chunk(text string) {
	if !x.streaming {
		x.streaming = true
		x.Writer.Header().Set("Content-Type", "text/event-stream")
		x.Writer.Header().Set("Cache-Control", "no-store")
		x.Writer.WriteHeader(http.StatusOK)
	}
	write(x.Writer, text)
	flush(x.Writer)
}

// Raw answers with exactly these bytes.
func (x *Exchange) Raw(status int, contentType, body string) {
	if contentType != "" {
		x.Writer.Header().Set("Content-Type", contentType)
	}
	x.Writer.WriteHeader(status)
	write(x.Writer, body)
}

// Accept answers a notification.
func (x *Exchange) Accept() { x.Writer.WriteHeader(http.StatusAccepted) }

// HangUp closes the connection without another byte.
func (x *Exchange) HangUp() { panic(http.ErrAbortHandler) }

// write sends text to a client that may be gone, which is the client's right.
func write(w http.ResponseWriter, text string) { _, _ = w.Write([]byte(text)) }

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

func quote(s string) string { return string(rawjson.AppendString(nil, s)) }
