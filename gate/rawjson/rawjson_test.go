package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/gate/rawjson"
)

func kindOf(err error) rawjson.Kind {
	var e *rawjson.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func TestCheckRefuses(t *testing.T) {
	many := func(n int, last string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return "{" + b.String() + last + "}"
	}
	for _, test := range []struct {
		in   string
		want rawjson.Kind
	}{
		{``, rawjson.Malformed},
		{` `, rawjson.Malformed},
		{`{`, rawjson.Malformed},
		{`{"a"}`, rawjson.Malformed},
		{`{"a":}`, rawjson.Malformed},
		{`{"a":1,}`, rawjson.Malformed},
		{`{,}`, rawjson.Malformed},
		{`{a:1}`, rawjson.Malformed},
		{`[1,]`, rawjson.Malformed},
		{`[1 2]`, rawjson.Malformed},
		{`[1}`, rawjson.Malformed},
		{`01`, rawjson.Trailing},
		{`1.`, rawjson.Malformed},
		{`.5`, rawjson.Malformed},
		{`1e`, rawjson.Malformed},
		{`+1`, rawjson.Malformed},
		{`NaN`, rawjson.Malformed},
		{`tru`, rawjson.Malformed},
		{`"a`, rawjson.Malformed},
		{`"\x"`, rawjson.Malformed},
		{`"\u12g4"`, rawjson.Malformed},
		{"\"a\nb\"", rawjson.Malformed},
		{"\"twelve bytes\tb\"", rawjson.Malformed},
		{"\"\xff\"", rawjson.NotUTF8},
		{"\"eight   \xc3\"", rawjson.NotUTF8},
		{"\xEF\xBB\xBF{}", rawjson.Malformed},
		{`{} {}`, rawjson.Trailing},
		{`{}x`, rawjson.Trailing},
		{`{"a":1,"a":2}`, rawjson.DuplicateKey},
		{`{"a":1,"\u0061":2}`, rawjson.DuplicateKey},
		{`[{"x":{"a":{},"b":1,"a":{}}}]`, rawjson.DuplicateKey},
		{many(1000, `"k3":0`), rawjson.DuplicateKey},
		{many(1000, `"k999":0`), rawjson.DuplicateKey},
		{many(24, `"k23":0`), rawjson.DuplicateKey},
		{many(25, `"k24":0`), rawjson.DuplicateKey},
		{strings.Repeat("[", 513) + strings.Repeat("]", 513), rawjson.TooDeep},
		{strings.Repeat(`{"a":`, 100000), rawjson.TooDeep},
	} {
		if got := kindOf(rawjson.Check([]byte(test.in))); got != test.want {
			t.Errorf("Check(%.40q): kind %d, want %d", test.in, got, test.want)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, in := range []string{
		`null`, ` true `, `-0`, `1E400`, `123456789012345678901234567890`, `"é \ud800"`, `{"a":{"a":1},"b":{"a":1}}`,
		`[[],{},[{}]]`, `{"A":1,"a":2}`, strings.Repeat("[", 512) + strings.Repeat("]", 512), "\"\u2028\"",
	} {
		if err := rawjson.Check([]byte(in)); err != nil {
			t.Errorf("Check(%.40q): %v", in, err)
		}
	}
	for levels, want := range []rawjson.Kind{0, 0, rawjson.DuplicateKey, rawjson.DuplicateKey} {
		if err := rawjson.CheckTop([]byte(`{"a":{"x":1,"x":2}}`), levels); kindOf(err) != want {
			t.Errorf("CheckTop with %d levels: %v, want kind %d", levels, err, want)
		}
	}
	if err := rawjson.CheckSyntax([]byte(`{"a":1,"a":2}`)); err != nil {
		t.Errorf("CheckSyntax minds duplicates: %v", err)
	}
}

func TestDecode(t *testing.T) {
	value, depth, err := rawjson.Decode([]byte(` {"a":[1.10,{"b":null}],"c":"\u00e9","d":true,"e":{},"f":[]} `))
	want := map[string]any{"a": []any{json.Number("1.10"), map[string]any{"b": nil}}, "c": "é", "d": true, "e": map[string]any{}, "f": []any{}}
	if err != nil || depth != 3 || !reflect.DeepEqual(value, want) {
		t.Errorf("got %v, %d, %v", value, depth, err)
	}
	if _, depth, _ := rawjson.Decode([]byte(`1`)); depth != 0 {
		t.Errorf("a scalar has depth %d", depth)
	}
	for in, want := range map[string]rawjson.Kind{
		`{"a":1,"\u0061":2}`: rawjson.DuplicateKey, `[1]]`: rawjson.Trailing, `[1`: rawjson.Malformed, `{"a" 1}`: rawjson.Malformed, `{"a":1]`: rawjson.Malformed,
		strings.Repeat("[", 513): rawjson.TooDeep, "\"\xff\"": rawjson.NotUTF8, ``: rawjson.Malformed,
	} {
		if _, _, err := rawjson.Decode([]byte(in)); kindOf(err) != want {
			t.Errorf("Decode(%.40q): %v, want kind %d", in, err, want)
		}
	}
}

func TestObject(t *testing.T) {
	ms, err := rawjson.Object([]byte(" { \"a\" : 1.10 , \"\\u0062\":{\"x\":1,\"x\":2}, \"c\":\"\" } "))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range ms {
		got += fmt.Sprintf("%s|%s|%s;", m.Key, m.Name, m.Value)
	}
	if want := `a|"a"|1.10;b|"\u0062"|{"x":1,"x":2};c|"c"|"";`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for in, want := range map[string]rawjson.Kind{
		`[]`:                 rawjson.WrongType,
		`"x"`:                rawjson.WrongType,
		`nul`:                rawjson.Malformed,
		`{"a":1,"\u0061":2}`: rawjson.DuplicateKey,
		`{"a":1}{}`:          rawjson.Trailing,
		`{"a":1`:             rawjson.Malformed,
		`{"a":1,}`:           rawjson.Malformed,
		strings.Repeat(`{"a":`, 513) + "1" + strings.Repeat("}", 513): rawjson.TooDeep,
	} {
		if _, err := rawjson.Object([]byte(in)); kindOf(err) != want {
			t.Errorf("Object(%.40q): %v, want kind %d", in, err, want)
		}
	}
	if _, err := rawjson.UniqueObject([]byte(`{"a":{"x":1,"x":2}}`)); kindOf(err) != rawjson.DuplicateKey {
		t.Errorf("UniqueObject overlooks a deep duplicate: %v", err)
	}
	if ms, err := rawjson.Object([]byte(`{}`)); err != nil || len(ms) != 0 {
		t.Errorf("Object({}) = %v, %v", ms, err)
	}
}

func TestSplit(t *testing.T) {
	for _, in := range []string{`{}`, ` { "a" : 1.10 , "b\\":{"x":[1,"}\""]}, "\u0063":"" , "d":[] ,"e":null } `, `{"a":"\\","b":"\""}`} {
		want, err := rawjson.Object([]byte(in))
		if got := rawjson.Split([]byte(in)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Split(%s) = %q, want %q, %v", in, got, want, err)
		}
	}
}

func TestArray(t *testing.T) {
	es, err := rawjson.Array([]byte(`[ 1, [2,3] ,null]`))
	if err != nil || string(bytes.Join(es, []byte("|"))) != `1|[2,3]|null` {
		t.Errorf("got %q, %v", es, err)
	}
	if es, err := rawjson.Array([]byte(`[]`)); err != nil || len(es) != 0 {
		t.Errorf("Array([]) = %v, %v", es, err)
	}
	for _, in := range []string{`{}`, `[1,]`, `[1]]`, `[1 2]`, `[`} {
		if _, err := rawjson.Array([]byte(in)); err == nil {
			t.Errorf("Array(%q) accepted", in)
		}
	}
}

func TestString(t *testing.T) {
	got, err := rawjson.String([]byte(` "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é" `))
	if want := "a\"\\/\b\f\n\r\té😀é"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, in := range []string{`"\ud83d"`, `"\ude00"`, `"\ud83dx"`, `"\ud83d\u0041"`} {
		if _, err := rawjson.String([]byte(in)); err != rawjson.ErrSurrogate {
			t.Errorf("String(%s): %v, want ErrSurrogate", in, err)
		}
	}
	if _, err := rawjson.String([]byte(`1`)); kindOf(err) != rawjson.WrongType {
		t.Errorf("String(1): %v", err)
	}
}

// The wanted forms follow RFC 8785 sections 3.2.2 and 3.2.3.
func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1,"a":[ true , null,{} ,[] ]}`:                                          `{"a":[true,null,{},[]],"b":1}`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`: "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
		`"\u0041\/\u000a\u0007\u001F\u007f"`:                                          "\"A/\\n\\u0007\\u001f\u007f\"",
		`1.0`:                                                                         `1`, `-0`: `0`, `0.0e9`: `0`, `1e21`: `1e+21`, `100000000000000000000`: `100000000000000000000`,
		`1E-7`: `1e-7`, `0.000001`: `0.000001`, `1.10`: `1.1`, `333333333.33333329`: `333333333.33333329`,
		`4.50`: `4.5`, `2e-3`: `0.002`,
		`9007199254740992`:               `9007199254740992`,
		`9007199254740993`:               `9007199254740993`,
		`1E400`:                          `1E400`,
		`1e-400`:                         `1e-400`,
		`123456789012345678901234567890`: `123456789012345678901234567890`,
		`"\uD800"`:                       `"\ud800"`,
	} {
		got, err := rawjson.Canonical(nil, []byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Canonical(%s) = %s, %v, want %s", in, got, err, want)
		}
	}
	if _, err := rawjson.Canonical(nil, []byte(`{"a":1,"a":1}`)); kindOf(err) != rawjson.DuplicateKey {
		t.Errorf("duplicate keys have no canonical form: %v", err)
	}
}

func TestFixSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"\ud83d\ude00"}`:        `{"a":"\ud83d\ude00"}`,
		`{"a":"\ud83d"}`:              `{"a":"\ufffd"}`,
		`{"a":"\\ud83d"}`:             `{"a":"\\ud83d"}`,
		`["\ude00\ud83d","\u0041\n"]`: `["\ufffd\ufffd","\u0041\n"]`,
	} {
		if got := string(rawjson.FixSurrogates([]byte(in))); got != want {
			t.Errorf("FixSurrogates(%s) = %s, want %s", in, got, want)
		}
	}
}

func FuzzAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\u00e9",null]}`, `[1,]`, `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`, ` 0 `, `-`, `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := rawjson.CheckSyntax(b)
		if kindOf(err) == rawjson.TooDeep {
			return
		}
		if want := json.Valid(b) && utf8.Valid(b); (err == nil) != want {
			t.Fatalf("CheckSyntax(%q) = %v, encoding/json and utf8 say %v", b, err, want)
		}
		if err != nil {
			return
		}
		if fixed := rawjson.FixSurrogates(b); rawjson.CheckSyntax(fixed) != nil {
			t.Fatalf("FixSurrogates(%q) = %q is no JSON", b, fixed)
		}
		decoded, _, errDecode := rawjson.Decode(b)
		if errCheck := rawjson.Check(b); (errCheck == nil) != (errDecode == nil) || kindOf(errCheck) != kindOf(errDecode) {
			t.Fatalf("Check(%q) = %v, Decode says %v", b, errCheck, errDecode)
		} else if _, errForm := rawjson.Canonical(nil, b); kindOf(errForm) != kindOf(errCheck) && kindOf(errForm) != rawjson.DuplicateKey {
			t.Fatalf("Check(%q) = %v, Canonical says %v", b, errCheck, errForm)
		} else if errCheck != nil {
			return
		}
		var plain any
		numbers := json.NewDecoder(bytes.NewReader(b))
		numbers.UseNumber()
		if err := numbers.Decode(&plain); err != nil || !reflect.DeepEqual(plain, decoded) {
			t.Fatalf("Decode(%q) = %v, encoding/json says %v, %v", b, decoded, plain, err)
		}
		form, err := rawjson.Canonical(nil, b)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := rawjson.Canonical(nil, form); err != nil || !bytes.Equal(again, form) {
			t.Fatalf("Canonical(%q) = %q is not stable: %q, %v", b, form, again, err)
		}
		var x, y any
		if json.Unmarshal(b, &x) == nil && json.Unmarshal(form, &y) == nil {
			if p, q := fmt.Sprint(x), fmt.Sprint(y); p != q && !strings.Contains(p, "-0") && !bytes.Contains(b, []byte(`\u`)) {
				t.Fatalf("Canonical(%q) = %q means something else", b, form)
			}
		}
		if ms, err := rawjson.Object(b); err == nil {
			if split := rawjson.Split(b); !reflect.DeepEqual(ms, split) {
				t.Fatalf("Object(%q) = %q, Split says %q", b, ms, split)
			}
			var m map[string]json.RawMessage
			if json.Unmarshal(b, &m) == nil && len(m) != len(ms) && !bytes.Contains(b, []byte(`\u`)) {
				t.Fatalf("Object(%q) has %d members, encoding/json %d", b, len(ms), len(m))
			}
		}
	})
}

func FuzzStringRoundTrip(f *testing.F) {
	f.Add("a\"\\\x00\u2028😀")
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			s = strings.ToValidUTF8(s, "\ufffd")
		}
		got, err := rawjson.String(rawjson.AppendString(nil, s))
		if err != nil || got != s {
			t.Fatalf("%q came back as %q, %v", s, got, err)
		}
	})
}

func FuzzNumber(f *testing.F) {
	f.Add(0.1)
	f.Add(math.MaxFloat64)
	f.Fuzz(func(t *testing.T, x float64) {
		b, err := json.Marshal(x)
		if err != nil {
			return
		}
		got, err := rawjson.Canonical(nil, b)
		if want := strings.TrimPrefix(string(b), "-"); err != nil || strings.TrimPrefix(string(got), "-") != want {
			t.Fatalf("Canonical(%s) = %s, %v", b, got, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(`{"text":"` + strings.Repeat("lorem ipsum ", 8700) + `"}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := rawjson.Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	small := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mcp_a_echo","arguments":{"text":"` + strings.Repeat("x", 1024) + `"}}}`)
	large := []byte(`{"text":"` + strings.Repeat("lorem ipsum ", 8700) + `"}`)
	for name, data := range map[string][]byte{"1KiB": small, "100KiB": large} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := rawjson.Check(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Keys that become equal once half pairs are replaced are equal before.
func TestRepairMakesNoKeysEqual(t *testing.T) {
	for _, text := range []string{`{"\ud800":1,"\ufffd":2}`, `{"\ud800":1,"\ud801":2}`, `{"a":[{"x\udc00":1,"x\ud801":2}]}`, "{\"\\ud800\":1,\"\uFFFD\":2}"} {
		if found, ok := errors.AsType[*rawjson.Error](rawjson.Check([]byte(text))); !ok || found.Kind != rawjson.DuplicateKey {
			t.Errorf("%s passes the check, and %s would come of it", text, rawjson.FixSurrogates([]byte(text)))
		}
	}
	one := []byte(`{"\ud800":1,"\ud83d\ude00":2}`)
	if rawjson.Check(one) != nil || rawjson.Check(rawjson.FixSurrogates(one)) != nil {
		t.Errorf("%s is refused", one)
	}
}
