package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"gatehouse/gate/rawjson"
)

const (
	// maxErrorBody caps the body of a 4xx, read only for a JSON-RPC error.
	maxErrorBody = 64 << 10
	// maxIgnoredBody is how much of an answer to a notification is read, so that
	// its connection can be used again.
	maxIgnoredBody = 4 << 10
	// firstRead bounds what a declared length may make us allocate at once.
	firstRead = 256 << 10

	eventStream = "text/event-stream"
	jsonBody    = "application/json"

	acceptedMedia = jsonBody + ", " + eventStream
)

// judge reads a response to the end of what is wanted of it. It does not close
// the body.
func (x *exchange) judge(res *http.Response) (*Reply, *Error) {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return nil, redirectError(res, x.endpoint.url)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, x.refusal(res)
	}
	reply := &Reply{Status: res.StatusCode, Header: res.Header, BytesOut: x.size}
	if x.request.Notification {
		x.ignore(res)
		return reply, nil
	}
	if res.ContentLength == 0 {
		return nil, noResponse(res)
	}
	media, failure := mediaType(res)
	if failure != nil {
		return nil, failure
	}
	src := &capReader{src: res.Body, limit: x.endpoint.limit}
	if media == eventStream {
		reply.EventStream = true
		reply.Result, failure = x.fromStream(src)
	} else {
		reply.Result, failure = x.fromBody(src, res)
	}
	reply.BytesIn = src.count
	return reply, failure
}

// mediaType refuses what nobody asked for. No content type means JSON.
func mediaType(res *http.Response) (string, *Error) {
	for _, v := range res.Header["Content-Encoding"] {
		if v = strings.TrimSpace(v); v != "" && !strings.EqualFold(v, "identity") {
			return "", &Error{Kind: ContentType, text: fmt.Sprintf("the reply has the content encoding %q; only identity was asked for", Clip(v))}
		}
	}
	values := res.Header["Content-Type"]
	if len(values) == 0 {
		return jsonBody, nil
	}
	media, _, _ := strings.Cut(values[0], ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case len(values) > 1:
		return "", &Error{Kind: ContentType, text: "the reply has more than one content type"}
	case media == "" || media == jsonBody:
		return jsonBody, nil
	case media == eventStream:
		return eventStream, nil
	}
	return "", &Error{Kind: ContentType, text: fmt.Sprintf("the reply has the content type %q; want %s or %s", Clip(media), jsonBody, eventStream)}
}

// refusal reads a response that is neither 2xx nor a redirect. A 4xx may carry
// a JSON-RPC error; when it does not, only the status counts.
func (x *exchange) refusal(res *http.Response) *Error {
	e := statusError(res)
	if res.StatusCode/100 != 4 || x.request.Notification {
		return e
	}
	if media, _ := mediaType(res); media != jsonBody {
		return e
	}
	limit := min(maxErrorBody, x.endpoint.limit)
	data, err := readAll(&capReader{src: res.Body, limit: limit}, res.ContentLength)
	if err != nil {
		return e
	}
	m, err := parseMessage(data, uniqueLevels(x.request.Method))
	if err != nil || m.check(x.id) != nil || m.failure == nil {
		return e
	}
	failure, err := parseFailure(m.failure)
	if err != nil {
		return e
	}
	e.setRPC(failure)
	e.text += ": " + rpcText(failure)
	return e
}

func (e *Error) setRPC(f rpcError) {
	e.HasCode, e.Code, e.Message, e.Data = true, f.code, f.message, bytes.Clone(f.data)
}

func rpcText(f rpcError) string {
	return fmt.Sprintf("the server refused with code %d: %q", f.code, Clip(f.message))
}

// ignore lets the answer to a notification pass, whatever it is. A short body
// is read so that the connection stays; the end of it is not waited for long.
func (x *exchange) ignore(res *http.Response) {
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if res.ContentLength == 0 || strings.EqualFold(strings.TrimSpace(media), eventStream) {
		return
	}
	timer := time.AfterFunc(grace, x.trip.cut)
	defer timer.Stop()
	io.CopyN(io.Discard, res.Body, maxIgnoredBody) // an error here only costs the connection
}

func noResponse(res *http.Response) *Error {
	return malformed(breaks(RuleResponse, "no response to the request (status %d)", res.StatusCode))
}

// fromBody judges one JSON value.
func (x *exchange) fromBody(src *capReader, res *http.Response) ([]byte, *Error) {
	if res.ContentLength > src.limit {
		return nil, x.tooLarge()
	}
	data, err := readAll(src, res.ContentLength)
	if err != nil {
		return nil, x.broken(err, "")
	}
	if len(data) == 0 {
		return nil, noResponse(res)
	}
	m, err := parseMessage(data, uniqueLevels(x.request.Method))
	if err != nil {
		return nil, malformed(err)
	}
	return x.accept(&m)
}

// readAll reads to the end into a slice of its own. length is what the response
// declared, negative when it did not.
func readAll(src io.Reader, length int64) ([]byte, error) {
	if length < 0 {
		length = 4 << 10
	}
	// One byte of room more, so that the end is seen without growing.
	data := make([]byte, 0, min(length, firstRead)+1)
	for {
		n, err := src.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			grown := make([]byte, len(data), 2*cap(data))
			copy(grown, data)
			data = grown
		}
	}
}

// accept judges m as the response to the request and returns its result.
func (x *exchange) accept(m *message) ([]byte, *Error) {
	if err := m.check(x.id); err != nil {
		return nil, malformed(err)
	}
	if m.failure != nil {
		failure, err := parseFailure(m.failure)
		if err != nil {
			return nil, malformed(err)
		}
		e := &Error{Kind: RPCError, text: rpcText(failure)}
		e.setRPC(failure)
		return nil, e
	}
	call := x.request.Method == "tools/call"
	refused, err := checkResult(m.result, call)
	if err != nil {
		return nil, malformed(err)
	}
	if refused != "" {
		return nil, &Error{Kind: InputRequired,
			text: "the server did not complete: it answers " + refused + "; we declared no capability that allows it"}
	}
	if call {
		return rawjson.FixSurrogates(m.result), nil
	}
	return m.result, nil
}

// broken makes the error of a body that could not be read to its end.
// unanswered is what the server asked of us meanwhile.
func (x *exchange) broken(err error, unanswered string) *Error {
	if errors.Is(err, errTooLarge) {
		return x.tooLarge()
	}
	e := &Error{Kind: Transport, cause: err, Unanswered: unanswered,
		text: "connection failed in the reply: " + transportText(err)}
	if x.over() {
		x.ended(e)
	}
	return e
}
