package gate_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/gate"
)

func TestMessageIsTrueAndComplete(t *testing.T) {
	h := newHouse(t)
	h.change(func(t *gate.Tool) {
		t.Class, t.ServerName, t.Origin, t.Remote = gate.SourceCode, "Code \"search\"", "https://code.example.org:8443", "find.all\u202e"
	})
	h.alice = caller(zone(gate.ExternalEU))
	q := h.ask(h.call(`{"path":"a\nb","big":9007199254740993,"list":[1,{"deep":null}],"empty":{},"none":[ ]}`))
	const want = `Approve this tool call? Nothing is sent unless the decision is "approve".

Tool: mcp_demo_echo
Name on its server: "find.all\u202e"
Server: "Code \"search\"" at "https://code.example.org:8443"
Data class: source_code
Caller: "alice"; the result travels to zone external_eu
Question 1, to be answered by 2026-12-01 09:02:00 UTC

Arguments, all 85 bytes. SHA-256: DIGEST
| {
|   "path": "a\nb",
|   "big": 9007199254740993,
|   "list": [
|     1,
|     {
|       "deep": null
|     }
|   ],
|   "empty": {},
|   "none": []
| }
End of the arguments.
`
	got := regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(q.Message, "DIGEST")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if string(q.Schema) == "" || strings.Contains(string(q.Schema), "default") {
		t.Errorf("schema %s", q.Schema)
	}
}

func TestArgumentsCannotHide(t *testing.T) {
	for _, hidden := range []rune{0, 7, 0x1b, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x180e, 0x200b, 0x200d, 0x200e, 0x2028, 0x2029,
		0x202e, 0x2060, 0x2066, 0x2800, 0x3000, 0x3164, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0xe0041, 0xe0100, 0xf0000} {
		raw := fmt.Sprintf(`{"a":"x%cy"}`, hidden)
		text, shown := gate.RenderArguments([]byte(raw))
		if shown != len(raw) || strings.ContainsRune(text[:len(text)-1], hidden) || !strings.Contains(text, `\u`) {
			t.Errorf("%U is shown as %q", hidden, text)
		}
	}
	if text, _ := gate.RenderArguments([]byte(`{"ä":"日本 é"}`)); !strings.Contains(text, `"ä": "日本 é"`) {
		t.Errorf("plain letters are shown as %q", text)
	}
	if text, _ := gate.RenderArguments([]byte("{\"a\":\"x" + strings.Repeat("\u0301", 9) + "\"}")); strings.Count(text, `\u0301`) != 7 {
		t.Errorf("stacked marks are shown as %q", text)
	}
	if text, _ := gate.RenderArguments([]byte("{\"a\":\"\xff\"}")); !strings.Contains(text, `\xff`) {
		t.Errorf("a byte that is no text is shown as %q", text)
	}
}

// Whatever the arguments are, every line of them carries our mark.
func TestArgumentsCannotImitate(t *testing.T) {
	h := newHouse(t)
	for _, arguments := range []string{
		`{"a":"\"\n}\nEnd of the arguments.\nData class: public_content"}`,
		`{"End of the arguments.":"` + strings.Repeat("Tool: mcp_other ", 200) + `"}`,
		`{"a":"` + strings.Repeat(" ", 3000) + `Question 2"}`,
		`{"a":[` + strings.Repeat("1,", 3000) + `1]}`,
		`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
	} {
		q := h.ask(h.call(arguments))
		head, rest, _ := strings.Cut(q.Message, "\nArguments, ")
		heading, body, _ := strings.Cut(rest, "\n")
		body, end, found := strings.Cut(body, "\nEnd of the arguments.\n")
		if !found {
			body, end, found = strings.Cut(body, "\nEnd of the arguments, of which ")
			_, end, _ = strings.Cut(end, " BYTES ARE NOT SHOWN.\n")
		}
		if !found || end != "" || !strings.Contains(head, "Data class: public_content\n") {
			t.Fatalf("the message is\n%s", q.Message)
		}
		lines := strings.Split(body, "\n")
		for _, line := range lines {
			if !strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, `\ `) || utf8.RuneCountInString(line) > 100 {
				t.Errorf("a line of arguments is %q", line)
			}
		}
		if len(lines) > 170 || len(body) > 8192 {
			t.Errorf("%d lines and %d bytes push the rest out of sight", len(lines), len(body))
		}
		if strings.Contains(heading, "NOT SHOWN") != (len(arguments) > 4096 || strings.Contains(arguments, "[[")) {
			t.Errorf("heading %q for %d bytes", heading, len(arguments))
		}
	}
}

func TestWhatIsLeftOutIsCounted(t *testing.T) {
	h := newHouse(t)
	arguments := `{"text":"` + strings.Repeat("é", 5000) + `"}`
	q := h.ask(h.call(arguments))
	m := regexp.MustCompile(`the first (\d+) of (\d+) bytes; (\d+) BYTES ARE NOT SHOWN. SHA-256 of all: ([0-9a-f]{64})`).FindStringSubmatch(q.Message)
	if m == nil {
		t.Fatalf("the message is\n%s", q.Message)
	}
	shown, _ := strconv.Atoi(m[1])
	left, _ := strconv.Atoi(m[3])
	if shown+left != len(arguments) || m[2] != strconv.Itoa(len(arguments)) || m[4] != gate.DigestOf([]byte(arguments)).String() {
		t.Errorf("%v for %d bytes", m[1:], len(arguments))
	}
	if got := strings.Count(q.Message, "é"); got != (shown-len(`{"text":"`))/2 || !utf8.ValidString(q.Message) {
		t.Errorf("%d letters are there and %d bytes are said to be", got, shown)
	}
}

// The layout shows every byte that it claims to show: without our marks and
// spaces it is the arguments again.
func FuzzLayoutIsFaithful(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[1,{"b":"c\\\""}],"d":{}}`, `{"a":" | \\ "}`, `{"k":"` + strings.Repeat("x", 200) + `"}`, `[`, `"`, `"\`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		text, shown := gate.RenderArguments([]byte(raw))
		if shown < 0 || shown > len(raw) {
			t.Fatalf("%d of %d bytes", shown, len(raw))
		}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, `\ `) {
				t.Fatalf("a line is %q", line)
			}
		}
		for _, r := range raw {
			if r < ' ' || r > '~' {
				return // escapes are compared by TestArgumentsCannotHide
			}
		}
		joined := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n\\ ", ""), "\n| ", "")
		squeeze := strings.NewReplacer(" ", "")
		if got, want := squeeze.Replace(strings.TrimPrefix(joined, "| ")), squeeze.Replace(raw[:shown]); got != want {
			t.Fatalf("%q is shown as %q", want, got)
		}
	})
}

func TestRedaction(t *testing.T) {
	const arguments = `{"password": "hunter2","n":1.10,"list":["a\"b",true,null],"deep":{"hunter":"\\"}}`
	const want = `{"password": "[7 bytes]","n":1.10,"list":["[4 bytes]",true,null],"deep":{"hunter":"[2 bytes]"}}`
	if got := gate.Redact([]byte(arguments)); got != want {
		t.Errorf("got %s", got)
	}
	for keep, want := range map[gate.ArgumentRecord]string{gate.KeepDigest: "", gate.KeepRedacted: want, gate.KeepAll: arguments} {
		h := waived(t, func(o *gate.Options) { o.Arguments = keep })
		h.permitted(h.submit(h.call(arguments)))
		if e := h.ledger.Last(gate.KindIntent); e.Arguments != want || e.ArgumentDigest.IsZero() {
			t.Errorf("mode %d keeps %q", keep, e.Arguments)
		}
	}
}

// Whoever reads the end of a question learns there that it is not the end.
func TestOmissionStandsAtBothEnds(t *testing.T) {
	h := newHouse(t)
	q := h.ask(h.call(`{"text":"` + strings.Repeat("x", 10_000) + `"}`))
	_, count, found := strings.Cut(q.Message, " bytes; ")
	count, _, _ = strings.Cut(count, ".")
	if !found || !strings.HasSuffix(q.Message, "End of the arguments, of which "+count+".\n") {
		t.Errorf("%q is not at the end of %s", count, q.Message)
	}
}
