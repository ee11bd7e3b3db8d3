package federation

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// decodeHeaderValue reads a value in the encoding of MCP 2026-07-28: visible
// ASCII, space and tab as they are, anything else as =?base64?…?=.
func decodeHeaderValue(value string) (string, bool) {
	inner, found := strings.CutPrefix(value, "=?base64?")
	if found {
		inner, found = strings.CutSuffix(inner, "?=")
	}
	if found {
		text, err := base64.StdEncoding.Strict().DecodeString(inner)
		return string(text), err == nil && utf8.Valid(text)
	}
	for i := range len(value) {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}

// checkParamHeaders compares the Mcp-Param-* headers that a tool's definition
// asks for with the arguments (MCP 2026-07-28, server/tools). nil when they agree.
func checkParamHeaders(h http.Header, tool *gate.Tool, arguments []byte) *rpcError {
	for i := range tool.ParamHeaders {
		binding := &tool.ParamHeaders[i]
		name := http.CanonicalHeaderKey("Mcp-Param-" + binding.Name)
		value := argumentAt(arguments, binding.Path)
		values := h[name]
		if value == nil || rawjson.IsNull(value) {
			if len(values) > 0 {
				return &rpcError{code: codeHeaderMismatch, message: "header " + name + " stands for an argument that is absent"}
			}
			continue
		}
		if len(values) != 1 {
			return &rpcError{code: codeHeaderMismatch, message: "header " + name + " must be present exactly once"}
		}
		got, ok := decodeHeaderValue(values[0])
		if !ok || !sameScalar(got, value) {
			return &rpcError{code: codeHeaderMismatch, message: "header " + name + " differs from its argument"}
		}
	}
	return nil
}

// argumentAt returns the raw value at a path of property names, nil when absent.
func argumentAt(arguments []byte, path []string) []byte {
	value := arguments
	for _, key := range path {
		if !rawjson.IsObject(value) {
			return nil
		}
		members, err := rawjson.Object(value)
		if err != nil {
			return nil
		}
		if value, _ = rawjson.Get(members, key); value == nil {
			return nil
		}
	}
	return value
}

// sameScalar compares a header's text with a string, number or boolean; numbers
// by value, so that 42 and 42.0 agree.
func sameScalar(text string, raw []byte) bool {
	switch {
	case rawjson.IsString(raw):
		s, err := rawjson.String(raw)
		return err == nil && s == text
	case rawjson.IsNumber(raw):
		if !rawjson.IsNumber([]byte(text)) {
			return false
		}
		a, errA := rawjson.Canonical(nil, []byte(text))
		b, errB := rawjson.Canonical(nil, raw)
		return errA == nil && errB == nil && bytes.Equal(a, b)
	}
	return text == string(raw)
}
