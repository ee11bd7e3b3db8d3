package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

const c27Schema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"F":{"enum":["a","b"]}},"properties":{"f":{"$ref":"#/definitions/F"},"raw":true,"never":false,"n":{"type":["integer","null"],"minimum":1.0,"maximum":9007199254740993},"o":{"$ref":"#/properties/f"}},"x-vendor":{"k":"<b>&"},"additionalProperties":{"not":{}}}`

func TestC27SchemaIsServedByteForByte(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	// White space between tokens is the only thing that may go.
	spaced := strings.ReplaceAll(strings.ReplaceAll(c27Schema, `,"`, ", \n\t\""), `":`, `" : `)
	b.take("s", fmt.Sprintf(`{ "name" : "x", "vendor":{"a":1.50} , "inputSchema": %s, "_meta":{"k/k":[1E2,-0.0]} }`, spaced))
	b.enable("mcp_s_x")
	for _, era := range []catalog.Era{catalog.Era2025, catalog.Era2026} {
		_, tools := walk(t, b.Snapshot(), admin, era)
		want := `{"name":"mcp_s_x","description":"[via the external MCP server \"Server s\"] ","vendor":{"a":1.50},"inputSchema":` + c27Schema + `,"_meta":{"k/k":[1E2,-0.0]}}`
		if got := string(tools["mcp_s_x"]); got != want {
			t.Errorf("era %d:\ngot  %s\nwant %s", era, got, want)
		}
	}
	if e, _ := b.Snapshot().Entry("mcp_s_x"); len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "true or false instead of an object") {
		t.Errorf("warnings %q", e.Warnings)
	}
	check := b.Snapshot().Tool("mcp_s_x").Arguments.Check
	for args, ok := range map[string]bool{
		`{"f":"a","raw":[1],"n":9007199254740993}`: true,
		`{"n":null,"o":"b"}`:                       true,
		`{"n":9007199254740994}`:                   false,
		`{"n":0.99}`:                               false,
		`{"never":1}`:                              false,
		`{"o":"c"}`:                                false,
		`{"more":1}`:                               false,
	} {
		if err := check([]byte(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestC28OneBadToolHidesNoOther(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	r := b.take("s", `null`,
		`{"name":"ok","inputSchema":{"type":"object"}}`,
		`{"name":"p0","inputSchema":{"type":"object","properties":null}}`,
		`{"name":"r0","inputSchema":{"type":"object","properties":{},"required":null}}`,
		`{"name":"n0","inputSchema":null}`,
		`{"name":"u0"}`,
		`{"name":"a0","inputSchema":{"anyOf":[{"type":"object"}]}}`,
		`{"name":"s0","inputSchema":{"type":"string"}}`,
		`{"name":"d0","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/Gone"}}}}`,
		`{"name":"e0","inputSchema":{"type":"object","properties":{"x":{"$ref":"http://169.254.169.254/s.json"}}}}`,
		`{"name":"o0","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/Gone"}}}}`,
		`[1]`, `{"inputSchema":{"type":"object"}}`, `{"name":7,"inputSchema":{"type":"object"}}`,
		`{"name":"k0","inputSchema":{"type":"object","type":"object"}}`,
		`{"name":"x0","inputSchema":{"type":"object","$schema":"https://example.org/my-dialect"}}`,
		`{"name":"m0","inputSchema":{"type":"object","$ref":"http://json-schema.org/draft-07/schema#"}}`,
		`{"name":"l0","inputSchema":{"type":"object","title":"\ud800"}}`,
		"{\"name\":\"b0\",\"inputSchema\":{\"type\":\"object\",\"title\":\"\xff\"}}",
		`{"name":"c0","description":5,"inputSchema":{"type":"object"}}`,
		`{"name":"z0",`,
	)
	want := map[string]string{
		"#0": "it is null, not an object", "p0": `/properties must be an object, is null`, "r0": `/required must be an array, is null`,
		"n0": "it is null, not an object", "u0": "no inputSchema", "a0": `no "type": "object" at its root`,
		"s0": `is "string", not "object"`, "d0": `"#/$defs/Gone" leads nowhere`, "e0": "nothing is fetched", "o0": "its output schema",
		"#11": "it is an array", "#12": "it has no name", "#13": "its name is a number", "k0": "strict JSON", "x0": "its dialect",
		"m0": "outside the schema", "l0": "half a surrogate pair", "b0": "strict JSON", "c0": "its description is a number", "#20": "not strict JSON",
	}
	got := skipped(r)
	for key, part := range want {
		if !strings.Contains(got[key], part) {
			t.Errorf("%s: reason %q, want %q in it", key, got[key], part)
		}
	}
	if len(got) != len(want) || r.Imported != 1 {
		t.Errorf("%s; skipped %q", r.Summary(), sortedNames(got))
	}
	b.enable("mcp_s")
	names, tools := walk(t, b.Snapshot(), admin, catalog.Era2025)
	equalStrings(t, "listed", remote(names), []string{"mcp_s_ok"})
	if !strings.Contains(string(tools["mcp_s_ok"]), `"inputSchema":{"type":"object"}`) {
		t.Errorf("an empty schema was fixed: %s", tools["mcp_s_ok"])
	}
}

func TestC29SchemasThatNeverEnd(t *testing.T) {
	nest := func(n int) string {
		return `{"type":"object",` + strings.Repeat(`"properties":{"a":{`, n) + strings.Repeat(`}}`, n) + `}`
	}
	wide := func(n int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, `,"property_%d":{"type":"string","title":"T"}`, i)
		}
		return `{"type":"object","properties":{"first":{}` + s.String() + `}}`
	}
	doubling := `{"type":"object","$defs":{"a0":{"not":{"type":"string"}}`
	for i := 1; i < 60; i++ {
		doubling += fmt.Sprintf(`,"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}],"type":"object","not":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}}`, i, i-1, i-1, i-1, i-1)
	}
	doubling += `},"properties":{"x":{"$ref":"#/$defs/a59"}}}`
	odd := `{"type":"object","properties":{"x0":{"$ref":"#/x-odd/0"}`
	for i := 1; i < 500; i++ {
		odd += fmt.Sprintf(`,"x%d":{"$ref":"#/x-odd/%d"}`, i, i)
	}
	odd += `},"x-odd":[{}` + strings.Repeat(`,{"type":"object"}`, 499) + `]}`
	for _, test := range []struct{ what, schema, reason string }{
		{"a", `{"type":"object","properties":{"nodes":{"type":"array","items":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/properties/nodes/items"}}}}}}}`, ""},
		{"b", `{"type":"object","$defs":{"A":{"allOf":[{"$ref":"#/$defs/B"}]},"B":{"allOf":[{"$ref":"#/$defs/A"}]}},"allOf":[{"$ref":"#/$defs/A"}]}`, "without end"},
		{"c", `{"type":"object","$ref":"#"}`, "without end"},
		{"d", nest(4000), "512"},
		{"d at the limit", nest(31), ""},
		{"d beyond any parser", nest(9000), "strict JSON"},
		{"d over the limit", nest(32), "nests 65 levels deep"},
		{"e", wide(40000), "bytes, the limit is"},
		{"e below the limit of a tool", `{"type":"object","description":"` + strings.Repeat("x", 128<<10) + `"}`, "bytes, the limit is 131072"},
		{"e that fits", wide(2400), ""},
		{"e with too many parts", `{"type":"object","allOf":[true` + strings.Repeat(`,{}`, 30000) + `]}`, "more than 4096 subschemas"},
		{"f", `{"type":"object","$defs":{"a/b":{"type":"string"},"c%d":{"type":"integer"}},"properties":{"s":{"$ref":"#/$defs/a~1b"},"i":{"$ref":"#/$defs/c%25d"}}}`, ""},
		{"doubling references", doubling, ""},
		{"references to odd places", odd, "no schema belongs"},
		{"an enormous number", `{"type":"object","properties":{"x":{"maximum":1e999999999}}}`, "exponent"},
	} {
		t.Run(test.what, func(t *testing.T) {
			b := open(t, newMemory(), server("s"))
			start := time.Now()
			r := b.take("s", tool("other", ""), tool("t", `"inputSchema":`+test.schema))
			// Milliseconds on an idle machine; the race detector and a busy one take their share.
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("the import took %v", took)
			}
			reason := skipped(r)["t"] + skipped(r)["#1"] // the name of some cannot even be read
			switch {
			case test.reason == "" && reason != "":
				t.Fatalf("skipped: %s", reason)
			case test.reason != "":
				if !strings.Contains(reason, test.reason) {
					t.Errorf("reason %q, want %q in it", reason, test.reason)
				}
				if r.Imported != 1 {
					t.Errorf("the other tool is gone: %s", r.Summary())
				}
				return
			}
			b.enable("mcp_s_t")
			if _, tools := walk(t, b.Snapshot(), admin, catalog.Era2026); !strings.Contains(string(tools["mcp_s_t"]), test.schema) {
				t.Errorf("not served verbatim: %.200s", tools["mcp_s_t"])
			}
		})
	}
}

func TestC29ValidationEnds(t *testing.T) {
	schema := `{"type":"object","$defs":{"a":{"type":"object","anyOf":[{"properties":{"c":{"$ref":"#/$defs/a"}},"required":["x"]},{"properties":{"c":{"$ref":"#/$defs/a"}},"required":["x"]}]}},"properties":{"r":{"$ref":"#/$defs/a"}}}`
	b := open(t, newMemory(), server("s"))
	b.take("s", tool("t", `"inputSchema":`+schema))
	check := b.Snapshot().Tool("mcp_s_t").Arguments.Check
	// Each level doubles the work, and makes each step of it dearer.
	for depth, want := range map[int]string{200: "too long to check", 14: "too long to check", 8: "must match one of several forms"} {
		err := check([]byte(`{"r":` + strings.Repeat(`{"c":`, depth) + `{}` + strings.Repeat(`}`, depth) + `}`))
		var argument *gate.ArgumentError
		if !errors.As(err, &argument) || !strings.Contains(argument.Rule, want) {
			t.Errorf("depth %d: got %v", depth, err)
		}
	}
	if err := check([]byte(`{"r":{"x":1,"c":{"x":1}}}`)); err != nil {
		t.Errorf("the next call suffers: %v", err)
	}
}

func TestC30PatternsThatGoCannotRun(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	schema := `{"type":"object","properties":{"mail":{"type":"string","pattern":"^(?!\\.)[^@]+@x$"},"u":{"type":"string","pattern":"^\\p{Script=Greek}+$"},"w":{"pattern":"(?P<id>\\d+)"},"evil":{"pattern":"^(a+)+$"},"hex":{"pattern":"^\\u0041\\x42$"}}}`
	r := b.take("s", tool("t", `"inputSchema":`+schema))
	warned := ""
	for _, l := range r.Lines {
		if l.What == catalog.LineWarning {
			warned += l.Text
		}
	}
	if r.Imported != 1 || !strings.Contains(warned, `(?!`) || !strings.Contains(warned, `Script=Greek`) || strings.Contains(warned, "a+") {
		t.Errorf("%s, warned of %q", r.Summary(), warned)
	}
	b.enable("mcp_s_t")
	if _, tools := walk(t, b.Snapshot(), admin, catalog.Era2026); !strings.Contains(string(tools["mcp_s_t"]), schema) {
		t.Errorf("the schema was changed: %s", tools["mcp_s_t"])
	}
	check := b.Snapshot().Tool("mcp_s_t").Arguments.Check
	for args, ok := range map[string]bool{
		`{"mail":"a@x"}`: true, `{"mail":".a@x"}`: true, `{"mail":5}`: false, `{"u":"x"}`: true, `{"w":"7"}`: true, `{"w":"x"}`: false,
		`{"evil":"` + strings.Repeat("a", 28) + `!"}`: false, `{"evil":"aaa"}`: true, `{"hex":"AB"}`: true, `{"hex":"BA"}`: false,
	} {
		if err := check([]byte(args)); (err == nil) != ok {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestC30NoOpinionNeverRefuses(t *testing.T) {
	const odd = `"pattern":"^(?!x)y"`
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"not":{` + odd + `}}}}`,
		`{"type":"object","properties":{"a":{"oneOf":[{` + odd + `},{"type":"string"}]}}}`,
		`{"type":"object","properties":{"a":{"if":{` + odd + `},"then":false}}}`,
		`{"type":"object","patternProperties":{"^(?!a)":{"type":"integer"}},"additionalProperties":false}`,
		`{"type":"object","patternProperties":{"^(?!a)":{"type":"integer"}},"unevaluatedProperties":false}`,
	} {
		b := open(t, newMemory(), server("s"))
		b.take("s", tool("t", `"inputSchema":`+schema))
		if err := b.Snapshot().Tool("mcp_s_t").Arguments.Check([]byte(`{"a":"z"}`)); err != nil {
			t.Errorf("%s refuses: %v", schema, err)
		}
	}
}

func TestC33NumbersKeepTheirDigits(t *testing.T) {
	b := open(t, newMemory(), server("s"))
	b.take("s", tool("t", `"inputSchema":{"type":"object","properties":{"id":{"type":"integer","maximum":9007199254740993},"e":{"type":"number","minimum":0},"s":{"type":"integer","const":123456789012345678901234567890}}}`))
	check := b.Snapshot().Tool("mcp_s_t").Arguments.Check
	raw := []byte(`{"id":9007199254740993,"price":1.10,"e":1E400,"z":-0,"s":123456789012345678901234567890}`)
	kept := string(raw)
	if err := check(raw); err != nil {
		t.Errorf("exact numbers are refused: %v", err)
	}
	if string(raw) != kept {
		t.Errorf("the arguments were changed to %s", raw)
	}
	for args, want := range map[string]gate.ArgumentError{
		`{"id":9007199254740994}`:              {Pointer: "/id", Rule: "must be at most 9007199254740993"},
		`{"id":1.5}`:                           {Pointer: "/id", Rule: "must be an integer, is a number"},
		`{"s":123456789012345678901234567891}`: {Pointer: "/s", Rule: "must be 123456789012345678901234567890"},
		`{"e":1e99999999}`:                     {Pointer: "/e", Rule: "must be a number of at most 4096 digits and an exponent within 4096"},
	} {
		var got *gate.ArgumentError
		if err := check([]byte(args)); !errors.As(err, &got) || *got != want {
			t.Errorf("%s: got %v, want %v", args, err, &want)
		}
	}
}
