package federation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/upstreamtest"
)

func limited(t testing.TB, result string, limit int64) (map[string]json.RawMessage, bool) {
	t.Helper()
	members, err := rawjson.Object([]byte(result))
	if err != nil {
		t.Fatal(err)
	}
	members, cut := limitResult(members, limit, false)
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.Name...), ':'), m.Value...)
	}
	if err := rawjson.Check(append(out, '}')); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return decode(t, string(out)+"}"), cut
}

func TestResultsThatFitAreNotTouched(t *testing.T) {
	const result = `{"content":[ {"type":"text","text":"\u0061\/"} ],"structuredContent":{"n":1.0},"isError":false,"x":1E400}`
	for _, limit := range []int64{0, 1 << 10} {
		if got, cut := limited(t, result, limit); cut || string(got["content"]) != `[ {"type":"text","text":"\u0061\/"} ]` || string(got["x"]) != "1E400" {
			t.Errorf("limit %d: %v, %s", limit, cut, got)
		}
	}
}

func TestResultsThatDoNotFit(t *testing.T) {
	long := strings.Repeat("ä", 600) // 1200 bytes
	image := `{"type":"image","data":"` + strings.Repeat("A", 2000) + `","mimeType":"image/png"}`
	for name, test := range map[string]struct {
		result string
		want   []string // in the text of content, in order
		absent string
	}{
		"one text":    {`{"content":[{"type":"text","text":"` + long + `","annotations":{"priority":1}}]}`, []string{"[gatehouse: the last ", "of 1200 bytes of this text are left out; this server's results are limited to 1000 bytes]\nä"}, ""},
		"second text": {`{"content":[{"type":"text","text":"first"},{"type":"text","text":"` + long + `"},{"type":"text","text":"third"}]}`, []string{"[gatehouse: 1 of 3 content blocks, 30 bytes, are left out", "first", "[gatehouse: the last"}, "third"},
		"image":       {`{"content":[` + image + `,{"type":"text","text":"caption"}]}`, []string{"[gatehouse: 1 of 2 content blocks", "caption"}, "AAAA"},
		"structured":  {`{"content":[{"type":"text","text":"short"}],"structuredContent":{"all":"` + long + `"},"isError":true}`, []string{"[gatehouse: structured content of 1210 bytes is left out", "short"}, "all"},
		"no content":  {`{"structuredContent":{"all":"` + long + `"}}`, []string{"[gatehouse: structured content"}, "all"},
		"other":       {`{"content":[],"vendor":"` + long + `","_meta":{"k":1}}`, []string{`[gatehouse: \"vendor\" of 1202 bytes is left out`}, "ää"},
		"not a list":  {`{"content":"` + long + `"}`, []string{"[gatehouse: content of 1202 bytes is left out"}, "ää"},
		"escapes":     {`{"content":[{"type":"text","text":"` + strings.Repeat(`\u0001\n\"`, 200) + `"}]}`, []string{"[gatehouse: the last "}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, cut := limited(t, test.result, 1000)
			if !cut {
				t.Fatal("nothing was cut")
			}
			content := string(got["content"])
			rest := strings.ReplaceAll(content, `\n`, "\n")
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%q is not in %s", want, content)
				}
				rest = after
			}
			if test.absent != "" && strings.Contains(content, test.absent) {
				t.Errorf("%q is there: %s", test.absent, content)
			}
			if s, ok := got["structuredContent"]; ok && !strings.HasPrefix(string(s), `{"gatehouse/note":"[gatehouse: structured content`) {
				t.Errorf("structured content: %s", s)
			}
			if strings.Contains(test.result, "isError") && string(got["isError"]) != "true" || name == "other" && string(got["_meta"]) != `{"k":1}` {
				t.Errorf("what fits was lost: %s", got)
			}
		})
	}
}

// What has more escapes than it needs may fit once it is written plainly; then
// nothing is missing, and nothing says so.
func TestTextThatFitsWithoutItsEscapes(t *testing.T) {
	got, _ := limited(t, `{"content":[{"type":"text","text":"`+strings.Repeat(`\u0061`, 500)+`"}]}`, 1000)
	if content := string(got["content"]); strings.Contains(content, "gatehouse") || !strings.Contains(content, strings.Repeat("a", 500)) {
		t.Errorf("%s", content)
	}
}

// FuzzLimit: whatever is cut stays valid, is never longer than the limit and the
// notes, keeps a prefix of the text, and says how much of it is missing.
func FuzzLimit(f *testing.F) {
	f.Add("äöü\x00\"\\ plain \U0001F600", uint16(60))
	f.Fuzz(func(t *testing.T, text string, limit uint16) {
		if !utf8.ValidString(text) {
			return
		}
		value := rawjson.AppendString(nil, text)
		result := `{"content":[{"type":"text","text":` + string(value) + `}]}`
		got, cut := limited(t, result, int64(limit)+1)
		var blocks []struct{ Type, Text string }
		if err := json.Unmarshal(got["content"], &blocks); err != nil || len(blocks) != 1 {
			t.Fatalf("%s, %v", got["content"], err)
		}
		note, kept, _ := strings.Cut(blocks[0].Text, "]\n")
		switch {
		case !cut && blocks[0].Text != text:
			t.Fatalf("%q became %q in silence", text, blocks[0].Text)
		case cut && strings.HasPrefix(note, "[gatehouse: the last"):
			if !strings.HasPrefix(text, kept) || len(kept) == len(text) || !strings.Contains(note, fmt.Sprintf("the last %d of %d bytes", len(text)-len(kept), len(text))) {
				t.Fatalf("%q became %q", text, blocks[0].Text)
			}
			if left := len(rawjson.AppendString(nil, kept)); left > int(limit)+1 {
				t.Fatalf("%d bytes are left, the limit is %d", left, limit)
			}
		case cut && !strings.HasPrefix(blocks[0].Text, "[gatehouse: 1 of 1 content blocks"):
			t.Fatalf("%q became %q", text, blocks[0].Text)
		}
	})
}

// TestResultLimit cuts through the whole line, in both eras, and says so on record.
func TestResultLimit(t *testing.T) {
	r := newRig(t, recent, "requires_approval = false\nresult_limit = \"1KiB\"", "")
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
		x.Result(`{"content":[{"type":"text","text":"` + strings.Repeat("long ", 1000) + `"}],"structuredContent":{"n":1}}`)
	})
	c := r.connect("alice", "2025-11-25", `{}`)
	for era, x := range map[string]told{"2026": r.modern("alice", "tools/call", echo, `{}`), "2025": c.call(7, "mcp_up_echo", `{}`)} {
		if text := string(x.result()["content"]); x.verdict() != "ok" || !strings.Contains(text, "of 5000 bytes of this text are left out") || len(text) > 1400 {
			t.Errorf("%s: %s", era, x.raw)
		}
		if !strings.Contains(string(x.result()["structuredContent"]), "gatehouse/note") {
			t.Errorf("%s: structured content %s", era, x.result()["structuredContent"])
		}
	}
	for _, e := range r.entries(gate.KindOutcome, 2) {
		if e.Verdict != gate.OK || !strings.Contains(e.Detail, "result_limit") || e.BytesIn < 5000 {
			t.Errorf("on record: %+v", e)
		}
	}
}

// Clients hold structured content to a tool's output schema, and miss it where it
// is absent, unless the result is an error.
func TestResultLimitOfAToolWithAnOutputSchema(t *testing.T) {
	r := newRig(t, recent, "requires_approval = false\nresult_limit = \"1KiB\"", "", func(r *rig) {
		r.upstream.Tools[0].Definition = `{"name":"echo","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["n"]}}`
	})
	long := strings.Repeat("long ", 1000)
	answer := ""
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) { x.Result(answer) })
	c := r.connect("alice", "2025-11-25", `{}`)
	eras := map[string]func() told{
		"2026": func() told { return r.modern("alice", "tools/call", echo, `{}`) },
		"2025": func() told { return c.call(7, "mcp_up_echo", `{}`) },
	}
	for era, call := range eras {
		answer = `{"content":[{"type":"text","text":"short"}],"structuredContent":{"n":"` + long + `"},"isError":false}`
		x := call()
		_, there := x.result()["structuredContent"]
		if content := string(x.result()["content"]); there || string(x.result()["isError"]) != "true" || x.verdict() != "ok" ||
			strings.Count(x.raw, `"isError"`) != 1 || !strings.Contains(content, "the call was made") || !strings.Contains(content, "short") {
			t.Errorf("%s: structured content that does not fit: %s", era, x.raw)
		}
		answer = `{"structuredContent":{"n":1},"content":[{"type":"text","text":"short"},{"type":"image","data":"` + long + `","mimeType":"image/png"}]}`
		if x := call(); string(x.result()["structuredContent"]) != `{"n":1}` || x.result()["isError"] != nil {
			t.Errorf("%s: structured content that fits: %s", era, x.raw)
		}
	}
}
