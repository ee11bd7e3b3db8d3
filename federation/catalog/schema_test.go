package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gatehouse/gate"
)

func TestParamHeaders(t *testing.T) {
	obj := func(rest string) string { return `{"type":"object",` + rest + `}` }
	for _, test := range []struct {
		schema string
		want   []gate.ParamHeader
		fault  string
	}{
		{obj(`"properties":{"r":{"type":"string","x-mcp-header":"Region"},"n":{"type":"object","properties":{"d":{"type":"integer","x-mcp-header":"Depth"}}},"b":{"type":["boolean","null"],"x-mcp-header":"Dry"}}`),
			[]gate.ParamHeader{{Name: "Depth", Path: []string{"n", "d"}, Type: "integer"}, {Name: "Dry", Path: []string{"b"}, Type: "boolean"}, {Name: "Region", Path: []string{"r"}, Type: "string"}}, ""},
		{obj(`"properties":{"x-mcp-header":{"type":"string"}}`), nil, ""},
		{obj(`"properties":{"a":{"enum":[{"x-mcp-header":"No"}],"default":{"x-mcp-header":1}}}`), nil, ""},
		{obj(`"x-mcp-header":"A"`), nil, "at the root"},
		{obj(`"properties":{"a":{"type":"number","x-mcp-header":"A"}}`), nil, `type "number"`},
		{obj(`"properties":{"a":{"type":["string","integer"],"x-mcp-header":"A"}}`), nil, "not string, integer or boolean"},
		{obj(`"properties":{"a":{"x-mcp-header":"A"}}`), nil, "not string, integer or boolean"},
		{obj(`"properties":{"a":{"type":"string","x-mcp-header":""}}`), nil, "not an HTTP token"},
		{obj(`"properties":{"a":{"type":"string","x-mcp-header":"A B"}}`), nil, "not an HTTP token"},
		{obj(`"properties":{"a":{"type":"string","x-mcp-header":"Ä"}}`), nil, "not an HTTP token"},
		{obj(`"properties":{"a":{"type":"string","x-mcp-header":"A\r\nX: y"}}`), nil, "not an HTTP token"},
		{obj(`"properties":{"a":{"type":"string","x-mcp-header":7}}`), nil, "not an HTTP token"},
		{obj(`"properties":{"a":{"type":"string","x-mcp-header":"One"},"b":{"type":"string","x-mcp-header":"oNE"}}`), nil, "used twice"},
		{obj(`"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}`), nil, "through properties alone"},
		{obj(`"properties":{"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}}`), nil, "through properties alone"},
		{obj(`"allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]`), nil, "through properties alone"},
		{obj(`"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`), nil, "through properties alone"},
		{obj(`"$defs":{"s":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/s"}}`), nil, "through properties alone"},
		{obj(`"x-odd":{"s":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/x-odd/s"}}`), nil, "through properties alone"},
		{obj(`"additionalProperties":{"type":"string","x-mcp-header":"A"}`), nil, "through properties alone"},
		{obj(`"patternProperties":{"^a":{"type":"string","x-mcp-header":"A"}}`), nil, "through properties alone"},
		// One boolean subschema must not switch the check off.
		{obj(`"properties":{"ok":true,"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}`), nil, "through properties alone"},
		{obj(`"properties":{"ok":false,"a":{"type":"string","x-mcp-header":"A"}}`), []gate.ParamHeader{{Name: "A", Path: []string{"a"}, Type: "string"}}, ""},
	} {
		doc, err := decodeSchema([]byte(test.schema))
		if err != nil {
			t.Fatalf("%s: %v", test.schema, err)
		}
		got, err := paramHeaders(doc)
		if test.fault == "" && (err != nil || !reflect.DeepEqual(got, test.want)) {
			t.Errorf("%s: got %+v, %v, want %+v", test.schema, got, err, test.want)
		}
		if test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
			t.Errorf("%s: got %+v, %v, want %q in the error", test.schema, got, err, test.fault)
		}
	}
}

func TestPortable(t *testing.T) {
	deep := func(n int) string {
		return `{"type":"object"` + strings.Repeat(`,"properties":{"a":{"type":"object"`, n) + strings.Repeat(`}}`, n) + `}`
	}
	for _, test := range []struct{ schema, want, reason string }{
		{`{"type":"object"}`, `{"type":"object"}`, ""},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","type":"object","properties":{"a":{"title":"A","minimum":1.0}}}`,
			`{"type":"object","properties":{"a":{"title":"A","minimum":1.0}}}`, ""},
		{`{"type":"object","properties":{"$ref":{"type":"string"},"if":{"type":"string"},"$defs":{"type":"integer"}}}`,
			`{"type":"object","properties":{"$ref":{"type":"string"},"if":{"type":"string"},"$defs":{"type":"integer"}}}`, ""},
		{`{"type":"object","$defs":{"f":{"enum":["a"]}},"properties":{"x":{"$ref":"#/$defs/f"},"y":{"type":"array","items":{"$ref":"#/$defs/f"}}}}`,
			`{"type":"object","properties":{"x":{"enum":["a"]},"y":{"type":"array","items":{"enum":["a"]}}}}`, ""},
		{`{"type":"object","$defs":{"f":{"enum":["a"]}},"properties":{"x":{"$ref":"#/$defs/f","description":"d"}}}`,
			`{"type":"object","properties":{"x":{"allOf":[{"enum":["a"]}],"description":"d"}}}`, ""},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"f":{"enum":["a"]}},"properties":{"x":{"$ref":"#/definitions/f","description":"d"}}}`,
			`{"type":"object","properties":{"x":{"enum":["a"]}}}`, ""},
		{`{"type":"object","properties":{"a~b/c %":{"type":"string"},"d":{"$ref":"#/properties/a~0b~1c%20%25"}}}`,
			`{"type":"object","properties":{"a~b/c %":{"type":"string"},"d":{"type":"string"}}}`, ""},
		{`{"type":"object","properties":{"e":{},"l":{"allOf":[]},"n":{"properties":{}}},"additionalProperties":false}`,
			`{"type":"object","properties":{"e":{},"l":{"allOf":[]},"n":{"properties":{}}},"additionalProperties":false}`, ""},
		{`{"type":"object","properties":{"n":{"type":"array","items":{"$ref":"#/properties/n"}}}}`, "", "recursive"},
		{`{"type":"object","properties":{"n":{"$ref":"#"}}}`, "", "not a plain path"},
		{`{"type":"object","properties":{"n":{"$ref":"#name"}}}`, "", "not a plain path"},
		{`{"type":"object","minProperties":1}`, "", `"minProperties" at its root`},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, "", "no boolean"},
		{`{"type":"object","properties":{"x":{"if":{},"then":{}}}}`, "", "uses if"},
		{`{"type":"object","properties":{"x":{"type":"object","propertyNames":{}}}}`, "", "uses propertyNames"},
		{`{"type":"object","allOf":[{"dependentRequired":{}}]}`, "", "uses dependentRequired"},
		{deep(5), deep(5), ""},
		{deep(6), "", "13 levels deep, 12 are portable"},
		{`{"type":"object","description":"` + strings.Repeat("x", 16<<10) + `"}`, "", "more than 16384 bytes"},
	} {
		got, reason := portable([]byte(test.schema))
		if string(got) != test.want || test.reason == "" != (reason == "") || !strings.Contains(reason, test.reason) {
			t.Errorf("%.200s:\ngot  %s, %q\nwant %s, %q", test.schema, got, reason, test.want, test.reason)
		}
	}
}

func TestPortableGrowthIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","$defs":{"a0":{"type":"string"}`)
	for i := 1; i < 60; i++ {
		fmt.Fprintf(&b, `,"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i-1, i-1)
	}
	b.WriteString(`},"properties":{"x":{"$ref":"#/$defs/a59"}}}`)
	if _, reason := portable([]byte(b.String())); !strings.Contains(reason, "16384 bytes") && !strings.Contains(reason, "levels deep") {
		t.Errorf("doubling references: %q", reason)
	}
}

func TestDialects(t *testing.T) {
	for schema, dialect := range map[string]string{
		`{"type":"object","properties":{"x":{"prefixItems":[{"type":"string"}]}}}`:     "https://json-schema.org/draft/2020-12/schema",
		`{"type":"object","properties":{"x":{"items":[{"type":"string"}]}} }`:          "https://json-schema.org/draft/2019-09/schema",
		`{"type":"object","properties":{"x":{"items":[{"type":"string"}]}}}`:           "http://json-schema.org/draft-07/schema#",
		`{"type":"object","properties":{"x":{"items":[{"type":"string"}]} }}`:          "http://json-schema.org/draft-06/schema",
		`{"type":"object","properties":{"x":{"items":[{"type":"string"}],"id":"#x"}}}`: "http://json-schema.org/draft-04/schema#",
	} {
		raw := []byte(strings.Replace(schema, `"type":"object"`, fmt.Sprintf(`"$schema":%q,"type":"object"`, dialect), 1))
		if _, err := checkInputSchema(raw); err != nil {
			t.Errorf("%s: %v", dialect, err)
			continue
		}
		c := newChecker(raw)
		if c.Check([]byte(`{"x":["a"]}`)) != nil || c.Check([]byte(`{"x":[1]}`)) == nil {
			t.Errorf("%s: tuples are not checked", dialect)
		}
	}
	// In an older dialect the last letter of the keyword table is another: a
	// boolean exclusiveMinimum is an error in draft-07 and means something in 04.
	four := `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"n":{"minimum":1,"exclusiveMinimum":true}}}`
	if err := newChecker([]byte(four)).Check([]byte(`{"n":1}`)); err == nil {
		t.Error("draft-04: exclusiveMinimum is not read")
	}
	if _, err := checkInputSchema([]byte(strings.Replace(four, "draft-04", "draft-07", 1))); err == nil {
		t.Error("draft-07: a boolean exclusiveMinimum passes")
	}
}

func TestArgumentRules(t *testing.T) {
	schema := `{"type":"object","properties":{
		"s":{"type":"string","minLength":2,"maxLength":3,"pattern":"^[a-z\\s]+$"},"n":{"type":"number","exclusiveMinimum":0,"maximum":2.50,"multipleOf":0.25},
		"i":{"type":["integer","null"]},"e":{"enum":["<a>",1,null]},"c":{"const":{"k":1.0}},"l":{"type":"array","items":{"type":"boolean"},"minItems":1,"uniqueItems":true},
		"o":{"type":"object","properties":{"p/q":{"type":"string"}},"required":["p/q","r"],"additionalProperties":false},
		"u":{"anyOf":[{"type":"string"},{"type":"object","required":["id"]}]},"date":{"type":"string","format":"date"},"never":false,
		"w":{"contains":{"const":1}},"names":{"propertyNames":{"maxLength":2}}},
		"dependentRequired":{"s":["n"]}}`
	c := newChecker([]byte(schema))
	for args, want := range map[string]string{
		`{}`:                              "",
		``:                                "arguments: must be one strict JSON object: json: unexpected end at byte 0",
		`[]`:                              "arguments: must be an object, is an array",
		`null`:                            "arguments: must be an object, is null",
		`{"s":"ab","s":"cd","n":1}`:       `arguments: must not name a member twice`,
		`{"s":"ab","n":1} x`:              "arguments: must be one strict JSON object",
		`{"s":"ab"}`:                      `argument /n: is required together with "s"`,
		`{"s":"a","n":1}`:                 "argument /s: must have at least 2 characters, has 1",
		`{"s":"abcd","n":1}`:              "argument /s: must have at most 3 characters, has 4",
		`{"s":"A1","n":1}`:                `argument /s: must match the pattern "^[a-z\\s]+$"`,
		`{"s":"a\u00a0","n":1}`:           "",
		`{"n":0}`:                         "argument /n: must be greater than 0",
		`{"n":2.75}`:                      "argument /n: must be at most 2.5",
		`{"n":0.3}`:                       "argument /n: must be a multiple of 0.25",
		`{"i":"1"}`:                       "argument /i: must be null or an integer, is a string",
		`{"i":1.0}`:                       "",
		`{"e":2}`:                         `argument /e: must be one of "<a>", 1, null`,
		`{"c":{"k":2}}`:                   `argument /c: must be {"k":1.0}`,
		`{"c":{"k":1}}`:                   "",
		`{"l":[]}`:                        "argument /l: must have at least 1 item, has 0",
		`{"l":[true,1]}`:                  "argument /l/1: must be a boolean, is a number",
		`{"l":[true,true]}`:               "argument /l: must not repeat an item, but items 0 and 1 are equal",
		`{"o":{}}`:                        "argument /o/p~1q: is required; /o/r is required",
		`{"o":{"p/q":"","r":1}}`:          "argument /o/r: is not a known property; leave it out",
		`{"u":5}`:                         "argument /u: must match one of several forms: (a) must be a string, is a number, (b) must be an object, is a number",
		`{"u":{}}`:                        "argument /u: must match one of several forms: (a) must be a string, is an object, (b) /id is required",
		`{"date":"soon"}`:                 "",
		`{"never":1}`:                     "argument /never: is not allowed; leave it out",
		`{"w":[2]}`:                       "argument /w: must contain at least one item of the wanted kind",
		`{"names":{"abc":1}}`:             "argument /names/abc: is not an allowed property name: it must have at most 2 characters, has 3",
		`{"i":true,"n":"x","e":[],"l":0}`: `argument /e: must be one of "<a>", 1, null; /i must be null or an integer, is a boolean; /l must be an array, is a number; /n must be a number, is a string`,
	} {
		err := c.Check([]byte(args))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		var e *gate.ArgumentError
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\ngot  %v\nwant %s", args, err, want)
		}
	}
	if err := c.Check(nil); err != nil {
		t.Errorf("no arguments at all: %v", err)
	}
	if err := c.Check([]byte(strings.Repeat(`{"o":`, 600) + "1" + strings.Repeat("}", 600))); err == nil || !strings.Contains(err.Error(), "512 levels") {
		t.Errorf("deep arguments: %v", err)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain, ünïcödé 漢字 ok\r\n\tindented": "plain, ünïcödé 漢字 ok\r\n\tindented",
		"a\u200bb\u2066c\ufeff":              `a\u200bb\u2066c\ufeff`,
		"\x1b[31m\x07\x7f\u0085":             `\u001b[31m\u0007\u007f\u0085`,
		"cr\ralone":                          `cr\u000dalone`,
		"tag \U000e0041 vs \ufe0e":           `tag \U000e0041 vs \ufe0e`,
		"❤\ufe0f 1\ufe0f x\ufe0f":            "❤\ufe0f 1\ufe0f x" + `\ufe0f`,
		"line\u2028sep":                      `line\u2028sep`,
		"soft\u00adhyphen \u3164 \u2800":     `soft\u00adhyphen \u3164 \u2800`,
	} {
		if got, _ := visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := oneLine("a\nb\tc "+strings.Repeat("é", 50), 20); got != `a\nb\tc `+strings.Repeat("é", 11)+"…" {
		t.Errorf("got %q", got)
	}
}

func TestPatternsMeanWhatTheyMeanInECMAScript(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		match, known  bool
	}{
		{`^a.b$`, "a\u2028b", false, true},
		{`^[^.]+$`, "a b", true, true},
		{`^\s\S$`, "\u3000x", true, true},
		{`^[\s\d]+$`, "1\ufeff", true, true},
		{`\/path\-x`, "/path-x", true, true},
		{`^\u00e9\x41$`, "éA", true, true},
		{`[\b]`, "\b", true, true},
		{`(?<year>\d{4})`, "2026", true, true},
		{`a{1,2000}`, "", false, false},
		{`(a)\1`, "", false, false},
		{`(?i)a`, "", false, false},
		{`[[:alpha:]]`, "", false, false},
		{`\Aa\z`, "", false, false},
		{`\cA`, "", false, false},
		{`(?<=a)b`, "", false, false},
		{`[`, "", false, false},
		{`\`, "", false, false},
		{`\ud83d\ude00`, "", false, false},
	} {
		re, known := compilePattern(test.pattern)
		if known != test.known || known && re.MatchString(test.text) != test.match {
			t.Errorf("%s: known %v, want %v, matches %q: %v", test.pattern, known, test.known, test.text, test.match)
		}
	}
}

func TestSchemaErrorsNeverPanic(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","$id":"::","properties":{}}`,
		`{"type":"object","$id":"a","properties":{"x":{"$id":"a"}}}`,
		`{"type":"object","properties":{"x":{"$anchor":"a"},"y":{"$anchor":"a"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"#/%zz"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"#~2"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"#/properties/x~"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"other.json"}}}`,
		`{"type":"object","properties":{"x":{"$ref":"file:///etc/passwd"}}}`,
		`{"type":"object","properties":{"x":{"$schema":"https://evil.example/s","$id":"https://evil.example/x"}}}`,
		`{"type":"object","properties":{"x":{"multipleOf":0}}}`,
		`{"type":"object","properties":{"x":{"minLength":-1}}}`,
		`{"type":"object","properties":{"x":{"type":"strin"}}}`,
		`{"type":"object","properties":{"x":5}}`,
		`{"type":"object","properties":{"x":{"format":7}}}`,
		`{"type":"object","$schema":5}`,
		`{"type":"object","$dynamicRef":"#gone"}`,
	} {
		_, err := checkInputSchema([]byte(schema))
		if err == nil {
			t.Errorf("%s passes", schema)
			continue
		}
		if strings.Contains(err.Error(), "mem://") || len(err.Error()) > 400 {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

func TestNothingIsLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(file, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"file://" + file, file, "http://127.0.0.1:1/x", "http://json-schema.org/draft-07/schema#"} {
		for _, schema := range []string{`{"type":"object","properties":{"x":{"$ref":%q}}}`, `{"type":"object","properties":{"x":{"$id":"y","$schema":%q}}}`} {
			_, err := checkInputSchema(fmt.Appendf(nil, schema, ref))
			if official := strings.Contains(schema, "$schema") && strings.Contains(ref, "json-schema.org"); (err == nil) != official {
				t.Errorf("%s of %s: %v", schema, ref, err)
			}
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, s := range []string{`null`, `{"name":"a","inputSchema":{"type":"object"}}`, `{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"#"}}}}`,
		`{"name":"a","description":"\u202e\ud800","title":"x","icons":[{"src":"y"}],"annotations":{"title":null},"inputSchema":{"type":"object","$defs":{"x":{"pattern":"("}}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v := judge(raw, 0, "2026-07-28", func(gate.RemoteName) *record { return nil })
		if (v.refusal == "") != (v.ready != nil) {
			t.Fatalf("refusal %q and ready %v", v.refusal, v.ready)
		}
		if v.ready == nil {
			return
		}
		d, err := readDefinition(v.raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, era := range []Era{Era2025, Era2026} {
			out := d.serve("mcp_a_b", "A", era, nil).appendTo(nil)
			if !json.Valid(out) || strings.ContainsAny(string(out), "\n\r") {
				t.Fatalf("serves %q", out)
			}
		}
	})
}
