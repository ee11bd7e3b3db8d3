package federation

import (
	"net/http"
	"testing"

	"gatehouse/gate"
)

func TestDecodeHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"plain": "plain", "with space\tand tab": "with space\tand tab", "=?base64?w6k=?=": "é", "=?base64??=": "",
		"=?base64?eA==": "=?base64?eA==", "=?BASE64?eA==?=": "=?BASE64?eA==?=",
	} {
		if got, ok := decodeHeaderValue(in); !ok || got != want {
			t.Errorf("decode(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"é", "a\x00b", "=?base64?eA=?=", "=?base64?e A==?=", "=?base64?/w==?=", "\x7f"} {
		if got, ok := decodeHeaderValue(in); ok {
			t.Errorf("decode(%q) = %q, want a refusal", in, got)
		}
	}
}

func TestParamHeaders(t *testing.T) {
	tool := &gate.Tool{ParamHeaders: []gate.ParamHeader{
		{Name: "Region", Path: []string{"region"}, Type: "string"},
		{Name: "Depth", Path: []string{"options", "depth"}, Type: "integer"},
		{Name: "Dry", Path: []string{"dry"}, Type: "boolean"},
	}}
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add("Mcp-Param-"+pairs[i], pairs[i+1])
		}
		return h
	}
	for _, test := range []struct {
		name      string
		arguments string
		header    http.Header
		agrees    bool
	}{
		{"all present", `{"region":"eu","options":{"depth":42},"dry":true}`, header("Region", "eu", "Depth", "42.0", "Dry", "true"), true},
		{"encoded", `{"region":"Köln"}`, header("Region", "=?base64?S8O2bG4=?="), true},
		{"absent and null need none", `{"dry":null}`, header(), true},
		{"unbound headers are nobody's", `{}`, header("Other", "x"), true},
		{"missing", `{"region":"eu"}`, header(), false},
		{"differs", `{"region":"eu"}`, header("Region", "us"), false},
		{"differs in case", `{"region":"eu"}`, header("Region", "EU"), false},
		{"twice", `{"region":"eu"}`, header("Region", "eu", "Region", "eu"), false},
		{"stands for nothing", `{}`, header("Region", "eu"), false},
		{"number as text", `{"options":{"depth":42}}`, header("Depth", "forty-two"), false},
		{"other number", `{"options":{"depth":9007199254740993}}`, header("Depth", "9007199254740992"), false},
	} {
		if fault := checkParamHeaders(test.header, tool, []byte(test.arguments)); (fault == nil) != test.agrees {
			t.Errorf("%s: %v", test.name, fault)
		}
	}
}
