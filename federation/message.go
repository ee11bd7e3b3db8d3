package federation

import (
	"bytes"
	"errors"
	"strings"

	"gatehouse/gate/rawjson"
)

// A message is one JSON-RPC message after the strict parse. All parts are the
// bytes received; nothing downstream parses the body a second time in another way.
type message struct {
	id     []byte // raw: a string or a safe integer; nil for a notification
	method string // empty for a response
	params []rawjson.Member
	raw    []byte           // params as received, nil when absent
	meta   []rawjson.Member // of params._meta
	result []byte           // raw, of a response
	failed []byte           // raw error object, of a response
}

func (m *message) isResponse() bool     { return m.method == "" }
func (m *message) isNotification() bool { return m.method != "" && m.id == nil }

// param returns the raw value of a parameter, nil when it is absent.
func (m *message) param(key string) []byte {
	value, _ := rawjson.Get(m.params, key)
	return value
}

// A faultyMessage says why a body is no message of this protocol.
type faultyMessage struct {
	code int    // JSON-RPC
	text string // what is wrong, and never the content
	id   []byte // the request's id where it could be read
}

func (f *faultyMessage) Error() string { return f.text }

// Longest accepted request id and method name, in bytes. Both are echoed or recorded.
const (
	maxID     = 256
	maxMethod = 128
)

// protocolMembers are the names that the protocol gives a meaning at the two
// levels this gateway reads. A name that differs from one of them in letter case
// only is refused: a parser that folds case would read another message
// (encoding/json does, and also folds U+017F and U+212A).
var (
	envelopeMembers = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramMembers    = []string{"name", "arguments", "_meta", "cursor", "requestState", "inputResponses",
		"protocolVersion", "capabilities", "clientInfo", "requestId", "notifications", "uri"}
)

// parseMessage reads body strictly: one JSON object, no key twice at any depth,
// exact member names, an id that survives every parser.
func parseMessage(body []byte) (*message, *faultyMessage) {
	members, err := rawjson.UniqueObject(body)
	if err != nil {
		return nil, parseFault(body, err)
	}
	m := &message{}
	var version []byte
	for i := range members {
		member := &members[i]
		switch member.Key {
		case "jsonrpc":
			version = member.Value
		case "id":
			m.id = member.Value
		case "method":
			if m.method, err = rawjson.String(member.Value); err != nil || m.method == "" || len(m.method) > maxMethod {
				return nil, &faultyMessage{code: codeInvalidRequest, text: "method is not a name"}
			}
		case "params":
			m.raw = member.Value
		case "result":
			m.result = member.Value
		case "error":
			m.failed = member.Value
		default:
			if twin := foldsInto(member.Key, envelopeMembers); twin != "" {
				return nil, &faultyMessage{code: codeInvalidRequest, text: "a member differs from " + twin + " in letter case only"}
			}
		}
	}
	if m.id != nil && !safeID(m.id) {
		return nil, &faultyMessage{code: codeInvalidRequest, text: "id is neither a string of at most 256 bytes nor an integer within 2^53"}
	}
	if string(version) != `"2.0"` {
		return nil, &faultyMessage{code: codeInvalidRequest, text: `jsonrpc is not "2.0"`, id: m.id}
	}
	if fault := m.shape(); fault != nil {
		return nil, fault
	}
	return m, nil
}

// shape checks that the message is exactly one of request, notification and response.
func (m *message) shape() *faultyMessage {
	if m.isResponse() {
		if m.id == nil || (m.result == nil) == (m.failed == nil) || m.raw != nil {
			return &faultyMessage{code: codeInvalidRequest, text: "neither a request, a notification nor a response", id: m.id}
		}
		return nil
	}
	if m.result != nil || m.failed != nil {
		return &faultyMessage{code: codeInvalidRequest, text: "method beside result or error", id: m.id}
	}
	if m.raw == nil {
		return nil
	}
	if !rawjson.IsObject(m.raw) {
		return &faultyMessage{code: codeInvalidParams, text: "params is not an object", id: m.id}
	}
	m.params = rawjson.Split(m.raw) // checked with the whole body
	for i := range m.params {
		key := m.params[i].Key
		if twin := foldsInto(key, paramMembers); twin != "" {
			return &faultyMessage{code: codeInvalidParams, text: "a parameter differs from " + twin + " in letter case only", id: m.id}
		}
		if key == "_meta" {
			if !rawjson.IsObject(m.params[i].Value) {
				return &faultyMessage{code: codeInvalidParams, text: "_meta is not an object", id: m.id}
			}
			m.meta = rawjson.Split(m.params[i].Value)
		}
	}
	return nil
}

// parseFault words why body is no single JSON object.
func parseFault(body []byte, err error) *faultyMessage {
	var syntax *rawjson.Error
	if !errors.As(err, &syntax) {
		return &faultyMessage{code: codeParse, text: "body is not JSON"}
	}
	switch {
	case syntax.Kind == rawjson.WrongType && rawjson.IsArray(body):
		// A batch would pass every check that looks at one object (removed in 2025-06-18).
		return &faultyMessage{code: codeInvalidRequest, text: "batches are not served; send one message a request"}
	case syntax.Kind == rawjson.WrongType:
		return &faultyMessage{code: codeInvalidRequest, text: "body is not a JSON object"}
	case syntax.Kind == rawjson.DuplicateKey:
		return &faultyMessage{code: codeInvalidRequest, text: "a key stands twice in one object", id: nil}
	case syntax.Kind == rawjson.Trailing:
		return &faultyMessage{code: codeInvalidRequest, text: "more than one JSON value in the body"}
	case syntax.Kind == rawjson.TooDeep:
		return &faultyMessage{code: codeInvalidRequest, text: syntax.Text}
	}
	return &faultyMessage{code: codeParse, text: syntax.Error()}
}

// foldsInto returns the name that key differs from in letter case only.
func foldsInto(key string, names []string) string {
	for _, name := range names {
		if key == name {
			return ""
		}
	}
	for _, name := range names {
		if strings.EqualFold(key, name) {
			return name
		}
	}
	return ""
}

// safeID reports whether raw may be echoed: a string, or an integer that every
// parser keeps exactly (at most 2^53 in magnitude).
func safeID(raw []byte) bool {
	if len(raw) == 0 || len(raw) > maxID {
		return false
	}
	if rawjson.IsString(raw) {
		_, err := rawjson.String(raw)
		return err == nil
	}
	digits := bytes.TrimPrefix(raw, []byte("-"))
	const limit = "9007199254740992"
	if len(digits) == 0 || len(digits) > len(limit) || len(digits) == len(limit) && string(digits) > limit {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
