package federation

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestParseRefuses covers what two parsers could read differently: duplicate
// keys, letter case, batches, trailing values, ids that do not survive.
func TestParseRefuses(t *testing.T) {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for name, test := range map[string]struct {
		body string
		code int
	}{
		"C35a folded name beside name":     {call(`{"name":"mcp_docs_search","Name":"mcp_ops_wipe","arguments":{}}`), codeInvalidParams},
		"C35b name twice":                  {call(`{"name":"a","name":"b"}`), codeInvalidRequest},
		"C35b name twice, once escaped":    {call(`{"name":"a","n\u0061me":"b"}`), codeInvalidRequest},
		"C35c folded method":               {`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, codeInvalidRequest},
		"C35d long s folds into s":         {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"param\u017f":{}}`, codeInvalidRequest},
		"C35e duplicate key in arguments":  {call(`{"name":"a","arguments":{"path":"a","path":"b"}}`), codeInvalidRequest},
		"C35e duplicate deep in arguments": {call(`{"name":"a","arguments":{"x":[{"p":1,"p":2}]}}`), codeInvalidRequest},
		"Kelvin sign folds into k":         {call(`{"name":"a","progressTo\u212aen":1,"_META":{}}`), codeInvalidParams},
		"C53a batch of one":                {`[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}]`, codeInvalidRequest},
		"C53b empty batch":                 {`[]`, codeInvalidRequest},
		"C53c batch after space":           {" \n\t[{}]", codeInvalidRequest},
		"C53e two documents":               {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, codeInvalidRequest},
		"C53g byte order mark":             {"\xEF\xBB\xBF[{}]", codeParse},
		"scalar":                           {`"ping"`, codeInvalidRequest},
		"not JSON":                         {`{"jsonrpc"`, codeParse},
		"empty":                            {``, codeParse},
		"invalid UTF-8":                    {call("{\"name\":\"\xff\"}"), codeParse},
		"no version":                       {`{"id":1,"method":"ping"}`, codeInvalidRequest},
		"wrong version":                    {`{"jsonrpc":"2.1","id":1,"method":"ping"}`, codeInvalidRequest},
		"id null":                          {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, codeInvalidRequest},
		"id object":                        {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, codeInvalidRequest},
		"id fraction":                      {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, codeInvalidRequest},
		"id exponent":                      {`{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, codeInvalidRequest},
		"C33 id beyond 2^53":               {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, codeInvalidRequest},
		"id of half a surrogate":           {`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, codeInvalidRequest},
		"id too long":                      {`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 300) + `","method":"ping"}`, codeInvalidRequest},
		"method not a string":              {`{"jsonrpc":"2.0","id":1,"method":1}`, codeInvalidRequest},
		"method empty":                     {`{"jsonrpc":"2.0","id":1,"method":""}`, codeInvalidRequest},
		"params array":                     {call(`[]`), codeInvalidParams},
		"_meta not an object":              {call(`{"_meta":1}`), codeInvalidParams},
		"method beside result":             {`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, codeInvalidRequest},
		"neither request nor response":     {`{"jsonrpc":"2.0","id":1}`, codeInvalidRequest},
		"response with both":               {`{"jsonrpc":"2.0","id":"1","result":{},"error":{}}`, codeInvalidRequest},
		"response without id":              {`{"jsonrpc":"2.0","result":{}}`, codeInvalidRequest},
		"deeper than any parser wants":     {call(`{"arguments":` + strings.Repeat(`{"a":`, 600) + `1` + strings.Repeat(`}`, 600) + `}`), codeInvalidRequest},
	} {
		m, fault := parseMessage([]byte(test.body))
		if fault == nil {
			t.Errorf("%s: accepted as %+v", name, m)
		} else if fault.code != test.code {
			t.Errorf("%s: code %d (%s), want %d", name, fault.code, fault.text, test.code)
		}
	}
}

// TestParseKeepsBytes shows that ids and arguments stay the text received (C33).
func TestParseKeepsBytes(t *testing.T) {
	const arguments = `{"id":9007199254740993, "price":1.10,"e":1E400,"z":-0,"s":123456789012345678901234567890,"<":"\u003c"}`
	for _, id := range []string{`"9007199254740993"`, `9007199254740992`, `-9007199254740992`, `0`, `"a\"b"`, `"é"`} {
		m, fault := parseMessage([]byte(` {"id":` + id + ` ,"params":{"arguments":` + arguments + `,"name":"x"},"method":"tools/call","jsonrpc":"2.0","extra":1} `))
		if fault != nil {
			t.Fatalf("id %s: %v", id, fault)
		}
		if string(m.id) != id || string(m.param("arguments")) != arguments || m.method != "tools/call" {
			t.Errorf("id %s, arguments %s, method %s", m.id, m.param("arguments"), m.method)
		}
	}
}

// FuzzParse compares with encoding/json: what is accepted here must say the same
// there, for the members that decide anything.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","method":"ping","METHOD":"tools/call"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"x","result":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, fault := parseMessage(body)
		if fault != nil {
			return
		}
		var folded struct {
			Method string
			ID     json.RawMessage
			Params struct{ Name any }
		}
		if err := json.Unmarshal(body, &folded); err != nil {
			if m.param("name") == nil {
				return // params of another shape
			}
			t.Fatalf("accepted %q, encoding/json says %v", body, err)
		}
		if folded.Method != m.method || string(folded.ID) != string(m.id) {
			t.Fatalf("%q: method %q and id %s here, %q and %s there", body, m.method, m.id, folded.Method, folded.ID)
		}
	})
}
