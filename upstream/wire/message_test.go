package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/gate/rawjson"
)

// A reading is what a second, slower reading of the reply table makes of a
// body. It is written with the tokens of encoding/json and shares no code with
// the first.
type reading struct {
	verdict string // accepted, refused, wants, malformed
	result  any
	code    int64
	message string
}

func readSlowly(b []byte, id string, toolCall bool) reading {
	malformed := reading{verdict: "malformed"}
	if !json.Valid(b) || !utf8.Valid(b) || !uniqueKeys(b) {
		return malformed
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil || members == nil {
		return malformed
	}
	known := []string{"jsonrpc", "id", "method", "params", "result", "error"}
	for key := range members {
		for _, name := range known {
			if key != name && strings.EqualFold(key, name) {
				return malformed
			}
		}
	}
	result, hasResult := members["result"]
	failure, hasError := members["error"]
	_, hasMethod := members["method"]
	if hasMethod || hasResult == hasError || !says(members["jsonrpc"], "2.0") || !says(members["id"], id) {
		return malformed
	}
	if hasError {
		var object map[string]json.RawMessage
		if json.Unmarshal(failure, &object) != nil || object == nil {
			return malformed
		}
		code, err := strconv.ParseInt(string(object["code"]), 10, 64)
		message, ok := decode(object["message"]).(string)
		if err != nil || !ok {
			return malformed
		}
		return reading{verdict: "refused", code: code, message: message}
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(result, &object) != nil || object == nil {
		return malformed
	}
	if content, ok := object["content"]; ok && toolCall {
		blocks, ok := decode(content).([]any)
		if !ok {
			return malformed
		}
		for _, block := range blocks {
			if _, ok := block.(map[string]any); !ok {
				return malformed
			}
		}
	}
	if kind, ok := object["resultType"]; ok && !says(kind, "complete") {
		return reading{verdict: "wants"}
	}
	return reading{verdict: "accepted", result: decode(result)}
}

func decode(raw []byte) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.Decode(&v)
	return v
}

// says reports whether raw is a string that says want. encoding/json turns half
// a surrogate pair into U+FFFD, which no wanted text holds.
func says(raw []byte, want string) bool {
	text, ok := decode(raw).(string)
	return ok && text == want
}

// uniqueKeys walks the tokens of a valid value: at most 512 levels, and no key
// twice in any object.
func uniqueKeys(b []byte) bool {
	type level struct {
		keys    map[string]bool // nil for an array
		wantKey bool
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return true
		}
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if n := len(open); n > 0 {
				open[n-1].wantKey = true
			}
			next := level{}
			if token == json.Delim('{') {
				next = level{keys: map[string]bool{}, wantKey: true}
			}
			if open = append(open, next); len(open) > 512 {
				return false
			}
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			continue
		}
		if len(open) == 0 {
			continue
		}
		top := &open[len(open)-1]
		if top.keys != nil && top.wantKey {
			key := token.(string)
			if top.keys[key] {
				return false
			}
			top.keys[key], top.wantKey = true, false
			continue
		}
		top.wantKey = true
	}
}

func readFast(b []byte, id string, toolCall bool) reading {
	x := &exchange{id: id, request: &Request{Method: "tools/list"}}
	if toolCall {
		x.request.Method = "tools/call"
	}
	m, err := parseMessage(b, rawjson.MaxDepth)
	if err != nil {
		return reading{verdict: "malformed"}
	}
	result, failure := x.accept(&m)
	switch {
	case failure == nil:
		return reading{verdict: "accepted", result: decode(result)}
	case failure.Kind == RPCError:
		return reading{verdict: "refused", code: failure.Code, message: failure.Message}
	case failure.Kind == InputRequired:
		return reading{verdict: "wants"}
	}
	return reading{verdict: "malformed"}
}

var messageSeeds = []string{
	`{"jsonrpc":"2.0","id":"a-1","result":{}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{"content":[{"type":"text","text":"\ud800 \\"}],"isError":true}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{"content":{}}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{"content":[1]}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{"resultType":"complete","x":[{"y":{"z":[]}}]}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}}}}`,
	`{"jsonrpc":"2.0","id":"a-1","error":{"code":-32000,"message":"m","data":[1]}}`,
	`{"jsonrpc":"2.0","id":"a-1","error":{"code":1e2,"message":"m"}}`,
	`{"jsonrpc":"2.0","id":"a-1","error":{"code":"1","message":"m"}}`,
	`{"jsonrpc":"2.0","id":"a-1","error":{"code":99999999999999999999,"message":"m"}}`,
	`{"jsonrpc":"2.0","id":"a-1","error":null,"result":{}}`,
	`{"jsonrpc":"2.0","id":"a-1","method":"x","result":{}}`,
	`{"jsonrpc":"2.0","id":"a-1"}`,
	`{"jsonrpc":"2.0","id":"a-1","Result":{}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{},"ſ":1,"param\u017f":2}`,
	`{"json\u0072pc":"2\u002e0","\u0069d":"a\u002d1","result":{"a":{"b":1,"b":2}}}`,
	`{"jsonrpc":"2.0","id":"a\u002d2","result":{}}`, `{"jsonrpc":"2\u002e1","id":"a-1","result":{}}`,
	`{"a":1,"a":2}`, `{"\ud800":1,"\ufffd":2}`, `[{"jsonrpc":"2.0","id":"a-1","result":{}}]`, `null`, `"a-1"`, `1`, ` { } `, `{}{}`, "\xEF\xBB\xBF{}",
	`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":2.0,"id":"a-1","result":{}}`, `{"jsonrpc":"2.0","id":null,"result":[]}`,
	`{"":{"a":"b\"}"},"x\\":[{},[],"",-0.0e-1,true,false,null]}`,
	`{"jsonrpc":"2.0","id":"a-1","result":{"a":"\\\"","b":"\\","c":"]}"}}`,
	`{"jsonrpc":"2.0","id":"a-1","result":` + strings.Repeat(`{"a":`, 511) + `1` + strings.Repeat(`}`, 511) + `}`,
	`{"jsonrpc":"2.0","id":"a-1","result":` + strings.Repeat(`{"a":`, 512) + `1` + strings.Repeat(`}`, 512) + `}`,
}

// FuzzMessage: the fast reading accepts only what the slow one accepts, and
// says the same of everything else.
func FuzzMessage(f *testing.F) {
	for _, seed := range messageSeeds {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, toolCall bool) {
		before := bytes.Clone(b)
		got, want := readFast(b, "a-1", toolCall), readSlowly(b, "a-1", toolCall)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q (tools/call %t)\nfast: %+v\nslow: %+v", b, toolCall, got, want)
		}
		if !bytes.Equal(b, before) {
			t.Errorf("%q was written to", before)
		}
	})
}

// The result is a part of what was received, byte for byte.
func TestResultIsNotEncodedAnew(t *testing.T) {
	const result = `{ "content":[ {"type":"text","text":"<&>\u0041\/"} ],"n":1.50e+02,"big":9007199254740993 }`
	x := &exchange{id: "a-1", request: &Request{Method: "tools/call"}}
	m, err := parseMessage([]byte(`{"jsonrpc":"2.0","result":`+result+` ,"id":"a-1"}`), rawjson.MaxDepth)
	if err != nil {
		t.Fatal(err)
	}
	if got, failure := x.accept(&m); failure != nil || string(got) != result {
		t.Errorf("got %s, %v", got, failure)
	}
}

// What a server wants is shown whatever the shape of its wish.
func TestC46_WishesOfAnyShape(t *testing.T) {
	for result, want := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"a":5,"b":[{"method":"x"}],"c":"s","d":null,"e":{"params":{}},"f":{"method":7},"g":{"method":"roots/list"}}}`: `resultType "input_required" and wants 7, "roots/list"`,
		`{"resultType":"input_required","inputRequests":[{"method":"x"}]}`:                                                                                             `resultType "input_required"`,
		`{"resultType":["x"]}`: `resultType an array`,
		`{"resultType":"input_required","inputRequests":{"1":{"method":"a"},"2":{"method":"b"},"3":{"method":"c"},"4":{"method":"d"},"5":{"method":"e"},"6":{"method":"f"},"7":{"method":"g"},"8":{"method":"h"},"9":{"method":"i"}}}`: `resultType "input_required" and wants "a", "b", "c", "d", "e", "f", "g", "h"`,
		`{"resultType":"complete"}`: "",
		`{}`:                        "",
	} {
		if got, err := checkResult([]byte(result), true); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", result, got, err, want)
		}
	}
}

func TestC06_RequestIDs(t *testing.T) {
	first, second := nextID(), nextID()
	if first == second {
		t.Errorf("%s twice", first)
	}
	name, number, ok := strings.Cut(first, "-")
	if !ok || len(name) != 16 || name != namespace || name[0] < 'a' || name[0] > 'f' || strings.Trim(name, "0123456789abcdef") != "" {
		t.Errorf("the id %q is not 16 hexadecimal digits that begin with a letter, and a number", first)
	}
	if _, err := strconv.ParseUint(number, 10, 64); err != nil {
		t.Errorf("the id %q does not end in a number", first)
	}
	for range 1000 {
		if other := newNamespace(); other[0] < 'a' || other[0] > 'f' || len(other) != 16 || other == namespace {
			t.Fatalf("a namespace %q", other)
		}
	}
}

func TestKindNames(t *testing.T) {
	names := map[Kind]string{HostRefused: "host_refused", CredentialFailed: "credential_failed", Transport: "transport",
		HTTPStatus: "http_status", Redirect: "redirect", RPCError: "rpc_error", Malformed: "malformed", TooLarge: "too_large",
		ContentType: "content_type", InputRequired: "input_required", Deadline: "deadline", Cancelled: "cancelled"}
	for k := HostRefused; k <= Cancelled; k++ {
		name := k.String()
		if want := names[k]; name != want {
			t.Errorf("kind %d is called %q, want %q", k, name, want)
		}
	}
	if got := Kind(0).String(); got != "none" {
		t.Errorf("no kind is called %q", got)
	}
	if got := (Cancelled + 1).String(); got != "unknown" {
		t.Errorf("a kind that is none is called %q", got)
	}
}

func TestEncode(t *testing.T) {
	for _, test := range []struct {
		request Request
		want    string
	}{
		{Request{Method: "tools/list"}, `{"jsonrpc":"2.0","id":"a-1","method":"tools/list"}`},
		{Request{Method: "m", Params: [][]byte{[]byte(`{"a": 1.0}`)}}, `{"jsonrpc":"2.0","id":"a-1","method":"m","params":{"a": 1.0}}`},
		{Request{Method: "m\"", Notification: true, Params: [][]byte{[]byte(`{}`)}}, `{"jsonrpc":"2.0","method":"m\"","params":{}}`},
	} {
		if got := string(bytes.Join(encode(&test.request, "a-1"), nil)); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}
