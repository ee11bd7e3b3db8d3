package upstream

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"gatehouse/gate"
)

func TestParamHeaders(t *testing.T) {
	bindings := []gate.ParamHeader{
		{Name: "Region", Path: []string{"region"}, Type: "string"},
		{Name: "Depth", Path: []string{"limits", "depth"}, Type: "integer"},
		{Name: "Dry", Path: []string{"dry"}, Type: "boolean"},
	}
	for arguments, want := range map[string]http.Header{
		`{}`: {},
		`{"region":"eu","limits":{"depth":3},"dry":false}`:   {"Mcp-Param-Region": {"eu"}, "Mcp-Param-Depth": {"3"}, "Mcp-Param-Dry": {"false"}},
		`{"region":null,"limits":{"depth":null},"dry":null}`: {},
		`{"region":"","limits":7}`:                           {"Mcp-Param-Region": {""}},
		`{"limits":{"depth":-1e2}}`:                          {"Mcp-Param-Depth": {"-100"}},
		`{"limits":{"depth":4.0}}`:                           {"Mcp-Param-Depth": {"4"}},
		`{"limits":{"depth":9007199254740991}}`:              {"Mcp-Param-Depth": {"9007199254740991"}},
		`{"region":"\u0065u"}`:                               {"Mcp-Param-Region": {"eu"}},
		`{"depth":5}`:                                        {},
	} {
		h := http.Header{}
		if err := setParamHeaders(h, bindings, []byte(arguments)); err != nil || !reflect.DeepEqual(h, want) {
			t.Errorf("%s: %v, error %v, want %v", arguments, h, err, want)
		}
	}
	for _, arguments := range []string{
		`{"region":7}`, `{"region":"\ud800"}`, `{"dry":"true"}`, `{"dry":1}`,
		`{"limits":{"depth":"3"}}`, `{"limits":{"depth":1.5}}`, `{"limits":{"depth":9007199254740993}}`, `{"limits":{"depth":1e400}}`,
	} {
		if err := setParamHeaders(http.Header{}, bindings, []byte(arguments)); err == nil {
			t.Errorf("%s: accepted", arguments)
		}
	}
}

func TestTraceThatIsNoHeader(t *testing.T) {
	for _, parent := range []string{"a\nb", "ü", "", "a\x1f", "a\x7f", strings.Repeat("a", maxTraceState+1)} {
		if got := newTrace(parent, "x=1"); got != (trace{}) {
			t.Errorf("newTrace(%q) = %+v", parent, got)
		}
	}
	longest := strings.Repeat("a", maxTraceState-2) + " ~"
	if got := newTrace(longest, longest); got != (trace{longest, longest}) {
		t.Errorf("what just fits gives %+v", got)
	}
	if got := newTrace("00-a-b-01", longest+"a"); got != (trace{parent: "00-a-b-01"}) {
		t.Errorf("a tracestate that is too long gives %+v", got)
	}
	if got := newTrace("00-a-b-01", "a\x00"); got != (trace{parent: "00-a-b-01"}) {
		t.Errorf("a bad tracestate gives %+v", got)
	}
}

func TestSessionID(t *testing.T) {
	op := &operation{}
	for id, ok := range map[string]bool{"!": true, "~": true, "a-1": true, strings.Repeat("a", 512): true, strings.Repeat("a", 513): false,
		" ": false, "a b": false, "a\t": false, "\x7f": false, "ü": false} {
		got, f := op.sessionID(http.Header{sessionHeader: {id}})
		if (f == nil) != ok || ok && got != id {
			t.Errorf("%.20q: got %.20q, %+v", id, got, f)
		}
	}
	if id, f := op.sessionID(http.Header{sessionHeader: {"a", "a"}}); f == nil {
		t.Errorf("two ids are taken for %q", id)
	}
}

func TestFailed(t *testing.T) {
	for result, want := range map[string]bool{
		`{"content":[]}`:                         false,
		`{"isError":true}`:                       true,
		`{"is\u0045rror":true}`:                  true,
		`{"isError":false}`:                      false,
		`{"isError":"true"}`:                     false,
		`{"ISERROR":true}`:                       false,
		`{"structuredContent":{"isError":true}}`: false,
	} {
		if got := failed([]byte(result)); got != want {
			t.Errorf("failed(%s) = %t", result, got)
		}
	}
}
