package wire

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"gatehouse/gate/rawjson"
)

// A message is one JSON-RPC object whose members were found and not yet
// judged. A member that is absent is nil; one that is null is "null".
type message struct {
	jsonrpc, id, method, params, result, failure []byte
}

// envelope lists the members that decide what a message is. A key that differs
// from one of them in letter case only would be that member to some parsers.
var envelope = [...]string{"jsonrpc", "id", "method", "params", "result", "error"}

// uniqueLevels is how deep into a reply to method no key may stand twice. What
// comes back whole is refused whole. A listing is many definitions, each of
// which is judged on its own by whoever keeps it: one that is ambiguous must not
// take the others with it.
func uniqueLevels(method string) int {
	if method == "tools/list" {
		return 2 // the message and its result
	}
	return rawjson.MaxDepth
}

// parseMessage finds the members of the one JSON object b, in whose outermost
// levels no key may stand twice. The error, if any, is the reason for a reply to
// be malformed.
func parseMessage(b []byte, levels int) (message, error) {
	var m message
	if err := rawjson.CheckTop(b, levels); err != nil {
		return m, err
	}
	if !rawjson.IsObject(b) {
		return m, breaks(RuleObject, "it is %s, not an object", rawjson.Describe(b))
	}
	for w := rawjson.Walk(b); ; {
		key, value, ok := w.Member()
		if !ok {
			return m, nil
		}
		if field := m.field(key); field != nil {
			*field = value
			continue
		}
		for _, name := range envelope {
			if bytes.EqualFold(key, []byte(name)) {
				return m, breaks(RuleKeyCase, "it has the key %q, which is %q in other letters", Clip(string(key)), name)
			}
		}
	}
}

func (m *message) field(key []byte) *[]byte {
	switch string(key) {
	case "jsonrpc":
		return &m.jsonrpc
	case "id":
		return &m.id
	case "method":
		return &m.method
	case "params":
		return &m.params
	case "result":
		return &m.result
	case "error":
		return &m.failure
	}
	return nil
}

// response reports whether m claims to be one.
func (m *message) response() bool { return m.result != nil || m.failure != nil }

// check judges a response to the request id by everything but the content of
// its result or error.
func (m *message) check(id string) error {
	switch {
	case m.method != nil && m.response():
		return breaks(RuleKind, "it has a method beside a result or an error")
	case m.method != nil && m.id != nil:
		return breaks(RuleKind, "it is a request, not a response")
	case m.method != nil:
		return breaks(RuleKind, "it is a notification, not a response")
	case !isText(m.jsonrpc, "2.0"):
		return breaks(RuleVersion, `its "jsonrpc" is %s, not "2.0"`, show(m.jsonrpc))
	case !isText(m.id, id):
		return breaks(RuleID, "its id is %s, not the request's %q", show(m.id), id)
	case m.result != nil && m.failure != nil:
		return breaks(RuleBranch, "it has both a result and an error")
	case !m.response():
		return breaks(RuleBranch, "it has neither a result nor an error")
	case m.failure != nil && !rawjson.IsObject(m.failure):
		return breaks(RuleError, "its error is %s, not an object", rawjson.Describe(m.failure))
	case m.result != nil && !rawjson.IsObject(m.result):
		return breaks(RuleResult, "its result is %s, not an object", rawjson.Describe(m.result))
	}
	return nil
}

// An rpcError is the error member of a response.
type rpcError struct {
	code    int64
	message string
	data    []byte
}

// parseFailure reads the object raw.
func parseFailure(raw []byte) (rpcError, error) {
	var e rpcError
	var code, text []byte
	for w := rawjson.Walk(raw); ; {
		key, value, ok := w.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "code":
			code = value
		case "message":
			text = value
		case "data":
			e.data = value
		}
	}
	var err error
	if e.code, err = strconv.ParseInt(string(code), 10, 64); err != nil {
		return e, breaks(RuleError, "its error code is %s, not an integer", show(code))
	}
	if !rawjson.IsString(text) {
		return e, breaks(RuleError, "its error message is %s, not a string", show(text))
	}
	e.message, err = rawjson.String(rawjson.FixSurrogates(text))
	return e, err
}

// checkResult judges the object raw as a result: resultType "complete" or
// absent, and for a tool call content that is an array of objects or absent.
// refused is what the server wanted instead of completing.
func checkResult(raw []byte, toolCall bool) (refused string, err error) {
	var kind, inputs []byte
	for w := rawjson.Walk(raw); ; {
		key, value, ok := w.Member()
		if !ok {
			break
		}
		switch string(key) {
		case "resultType":
			kind = value
		case "inputRequests":
			inputs = value
		case "content":
			if err := checkContent(value); toolCall && err != nil {
				return "", err
			}
		}
	}
	if kind == nil || isText(kind, "complete") {
		return "", nil
	}
	refused = "resultType " + show(kind)
	if wanted := inputMethods(inputs); len(wanted) > 0 {
		refused += " and wants " + strings.Join(wanted, ", ")
	}
	return refused, nil
}

func checkContent(raw []byte) error {
	if !rawjson.IsArray(raw) {
		return breaks(RuleContent, "the content of its result is %s, not an array", rawjson.Describe(raw))
	}
	for w := rawjson.Walk(raw); ; {
		block, ok := w.Element()
		if !ok {
			return nil
		}
		if !rawjson.IsObject(block) {
			return breaks(RuleContent, "a content block of its result is %s, not an object", rawjson.Describe(block))
		}
	}
}

// inputMethods lists what an input_required result asks for, each method once.
func inputMethods(raw []byte) []string {
	if !rawjson.IsObject(raw) {
		return nil
	}
	var methods []string
	for w := rawjson.Walk(raw); len(methods) < 8; {
		_, request, ok := w.Member()
		if !ok {
			break
		}
		if !rawjson.IsObject(request) {
			continue
		}
		for in := rawjson.Walk(request); ; {
			key, value, ok := in.Member()
			if !ok {
				break
			}
			if name := show(value); string(key) == "method" && !slices.Contains(methods, name) {
				methods = append(methods, name)
			}
		}
	}
	return methods
}

// isText reports whether raw is a JSON string that says want.
func isText(raw []byte, want string) bool {
	if raw == nil || raw[0] != '"' {
		return false
	}
	if in := raw[1 : len(raw)-1]; bytes.IndexByte(in, '\\') < 0 {
		return string(in) == want
	}
	got, err := rawjson.String(raw)
	return err == nil && got == want
}

// show quotes a raw value for an error.
func show(raw []byte) string {
	switch {
	case raw == nil:
		return "missing"
	case raw[0] == '"':
		s, _ := rawjson.String(rawjson.FixSurrogates(raw))
		return strconv.Quote(Clip(s))
	case raw[0] == '{' || raw[0] == '[':
		return rawjson.Describe(raw)
	}
	return Clip(string(raw))
}
