package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/gate"
)

// typed is a terminal at which somebody types.
//
// What it showed can be read once it is closed.
func typed(t *testing.T, text string) (a *app, shown func() string) {
	t.Helper()
	ours, theirs := net.Pipe()
	screen := &bytes.Buffer{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(screen, theirs)
	}()
	go io.WriteString(theirs, text)
	t.Cleanup(func() { ours.Close(); theirs.Close(); <-done })
	return &app{terminal: func() (terminal, error) { return ours, nil }}, func() string { <-done; return screen.String() }
}

func TestAnswers(t *testing.T) {
	for text, want := range map[string]control.Answer{
		"approve\n":           control.Approve,
		"  approve \r\n":      control.Approve,
		"deny\n":              control.Deny,
		"\napprove\n":         control.Approve,
		"y\nyes\nok\n":        control.Unanswered,
		"APPROVE\n\n\n":       control.Unanswered,
		"approve it\nno\n\n":  control.Unanswered,
		"\n\n\napprove\n":     control.Unanswered,
		"deny\napprove\n":     control.Deny,
		"approve\x00\n\n\n":   control.Unanswered,
		"appr\u043Eve\n\n\n":  control.Unanswered, // a Cyrillic letter
		"\u202Eevorppa\n\n\n": control.Unanswered,
	} {
		a, _ := typed(t, text)
		ask, done := a.asker()
		if got := ask(t.Context(), control.Question{Message: "?"}); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
		done()
	}
}

func TestSilenceEnds(t *testing.T) {
	a, _ := typed(t, "")
	ask, done := a.asker()
	defer done()
	if got := ask(t.Context(), control.Question{Until: time.Now().Add(10 * time.Millisecond)}); got != control.Unanswered {
		t.Errorf("after the time is over: %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if got := ask(ctx, control.Question{}); got != control.Unanswered {
		t.Errorf("after an interrupt: %v", got)
	}
}

func TestQuestionIsEscaped(t *testing.T) {
	a, shown := typed(t, "deny\n")
	ask, done := a.asker()
	ask(t.Context(), control.Question{Message: "tool \x1b[2J\u202Eevil"})
	done()
	if s := shown(); strings.ContainsAny(s, "\x1b\u202E") || !strings.Contains(s, `\u{1b}[2J\u{202e}evil`) {
		t.Errorf("shown %q", s)
	}
}

func TestNoTerminal(t *testing.T) {
	a := &app{terminal: func() (terminal, error) { return nil, errors.New("none") }}
	if ask, done := a.asker(); ask != nil {
		done()
		t.Error("somebody can be asked where nobody is")
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain\n\ttext é 日本": "plain\n\ttext é 日本",
		"\x1b[31m":           `\u{1b}[31m`,
		"a\rb\x00\x7f":       `a\u{d}b\u{0}\u{7f}`,
		"\u009b1m":           `\u{9b}1m`,
		"a\u202eb\u200bc":    `a\u{202e}b\u{200b}c`,
		"line\u2028sep":      `line\u{2028}sep`,
		"bad\xff":            `bad\xff`,
		"\ufffd":             "\ufffd",
		"\U000E0041tag":      `\u{e0041}tag`,
	} {
		if got := escape(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdef", 4, "abc…"}, {"äöüß", 4, "äöüß"}, {"abcdef", 2, ""}, {"abcdef", -9, ""}, {"", 0, ""}} {
		if got := shorten(c.in, c.n); got != c.want {
			t.Errorf("shorten(%q, %d) is %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

func TestTableFitsTheScreen(t *testing.T) {
	out := &bytes.Buffer{}
	a := &app{stdout: out, getenv: func(string) string { return "" }}
	name := strings.Repeat("n", 64)
	a.table([]string{"NAME", "STATE", "ABOUT"}, [][]cell{
		{{text: name}, {"disabled", red}, {text: strings.Repeat("long ", 40)}},
		{{text: "short"}, {text: "enabled"}, {text: "x"}},
	})
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > screen {
			t.Errorf("%d characters: %s", n, line)
		}
		if strings.Contains(line, "\x1b") {
			t.Errorf("colour where there is no terminal: %q", line)
		}
	}
	if !strings.Contains(out.String(), name+"\n") {
		t.Errorf("the name was cut:\n%s", out)
	}
}

func TestWrap(t *testing.T) {
	got := wrap(strings.Repeat("word ", 30), 60)
	for i, line := range strings.Split(got, "\n") {
		if n := len(line); i > 0 && (n > screen || !strings.HasPrefix(line, strings.Repeat(" ", 60)+"word")) || i == 0 && n > screen-60 {
			t.Errorf("line %d is %q", i, line)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"gatehouse.toml": "gatehouse.toml", "/tmp/a-b_c.d": "/tmp/a-b_c.d", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(rm)": "'$(rm)'", "": "''", "~": "'~'", "*": "'*'",
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q is quoted %s, want %s", in, got, want)
		}
	}
}

func TestOnlyCaller(t *testing.T) {
	caller := func(name string, admin bool) config.Caller {
		return config.Caller{Caller: gate.Caller{Name: gate.CallerName(name), Admin: admin}}
	}
	for _, c := range []struct {
		callers []config.Caller
		want    string
	}{
		{nil, ""},
		{[]config.Caller{caller("a", false)}, "a"},
		{[]config.Caller{caller("a", false), caller("b", true)}, "b"},
		{[]config.Caller{caller("a", true), caller("b", true)}, ""},
		{[]config.Caller{caller("a", false), caller("b", false)}, ""},
	} {
		got, err := onlyCaller(&config.Config{Callers: c.callers})
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %q, %v, want %q", c.callers, got, err, c.want)
		}
	}
}

func TestResultText(t *testing.T) {
	for in, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:             "a\nb",
		`{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}`:             "[image image/png, 4 characters; --json shows it]",
		`{"content":[{"type":"resource_link","uri":"file:///x"}]}`:                        "[resource_link file:///x]",
		`{"content":[],"structuredContent":{"n":9007199254740993}}`:                       "{\n  \"n\": 9007199254740993\n}",
		`{"structuredContent":[1]}`:                                                       "[\n  1\n]",
		`{"content":[{"type":"text","text":"a"}],"structuredContent":{"not":"repeated"}}`: "a",
		`{}`: "",
	} {
		if got := resultText([]byte(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestOnlyWhatIsOnRecordHasANumber(t *testing.T) {
	for record, want := range map[uint64]string{0: "echo: refused\n", 7: "echo: refused (record 7)\n"} {
		stderr := &bytes.Buffer{}
		a := &app{stdout: io.Discard, stderr: stderr}
		result := []byte(`{"content":[]}`)
		if err := a.printReply("echo", control.CallReply{Result: result, Verdict: gate.Refused, Record: record}); err == nil {
			t.Error("a refused call succeeds")
		}
		if got := stderr.String(); !strings.HasSuffix(got, want) {
			t.Errorf("record %d: %q, want %q", record, got, want)
		}
	}
}
