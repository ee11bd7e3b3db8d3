package wire

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"gatehouse/gate/rawjson"
)

// grace is how long an event stream is watched for a second response after the
// first one.
const grace = 250 * time.Millisecond

var readers = sync.Pool{New: func() any { return new(eventReader) }}

// A stream is what is known of an event stream so far.
type stream struct {
	*exchange
	answered   bool
	result     []byte
	failure    *Error // a JSON-RPC error, when that was the answer
	timer      *time.Timer
	unanswered string // the first method that the server asked of us
}

// fromStream judges the messages of an event stream: notifications and what is
// no JSON-RPC pass, requests of the server pass unanswered, the one response is
// judged like a body. After it the stream is watched for a second one, for a
// short while or until the stream ends.
func (x *exchange) fromStream(src io.Reader) ([]byte, *Error) {
	r := readers.Get().(*eventReader)
	r.reset(src)
	defer r.release()
	s := stream{exchange: x}
	defer s.stop()
	for {
		data, err := r.next()
		if err != nil {
			return s.end(err)
		}
		if failure := s.message(data); failure != nil {
			return nil, failure
		}
	}
}

// stop ends the watch.
func (s *stream) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// message judges one message. An error refuses the whole stream.
func (s *stream) message(data []byte) *Error {
	m, err := parseMessage(data, uniqueLevels(s.request.Method))
	switch {
	case err != nil:
		return malformed(err)
	case !m.response() && m.method == nil:
		return nil // a heartbeat or the like
	case !m.response() && m.id == nil:
		s.notification(&m)
		return nil
	case !m.response():
		if s.unanswered == "" {
			s.unanswered = methodName(m.method)
		}
		return nil
	case s.answered:
		return malformed(breaks(RuleOnce, "a second response in one stream"))
	}
	result, failure := s.accept(&m)
	if failure != nil && failure.Kind != RPCError {
		return failure
	}
	s.answered, s.failure = true, failure
	s.result = bytes.Clone(result) // the reader goes on to use its buffer
	s.timer = time.AfterFunc(grace, s.trip.cut)
	return nil
}

// notification offers progress for our token; everything else passes,
// list_changed included: the catalogue changes when an operator imports.
func (s *stream) notification(m *message) {
	r := s.request
	if r.Progress == nil || r.Token == "" || s.answered ||
		!isText(m.method, "notifications/progress") || !rawjson.IsObject(m.params) {
		return
	}
	for w := rawjson.Walk(m.params); ; {
		key, value, ok := w.Member()
		if !ok {
			return
		}
		if string(key) == "progressToken" && isText(value, r.Token) {
			r.Progress(bytes.Clone(m.params))
			return
		}
	}
}

// end decides when there is no more to read. An answer stands however the
// stream ends, our own hanging up included, unless it goes over the limit.
func (s *stream) end(err error) ([]byte, *Error) {
	switch {
	case errors.Is(err, errTooLarge):
		return nil, s.tooLarge()
	case s.answered && s.failure != nil:
		return nil, s.failure
	case s.answered:
		return s.result, nil
	case err == io.EOF:
		failure := malformed(breaks(RuleResponse, "the event stream ended without a response"))
		failure.Unanswered = s.unanswered
		return nil, failure
	}
	return nil, s.broken(err, s.unanswered)
}

// methodName decodes the method of a message for an error.
func methodName(raw []byte) string {
	if !rawjson.IsString(raw) {
		return rawjson.Describe(raw)
	}
	name, _ := rawjson.String(rawjson.FixSurrogates(raw)) // checked with the message
	return name
}
