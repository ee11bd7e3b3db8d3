package cli

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// fits refuses what no screen of ours may have: a line beyond 80 characters, a
// blank at the end of one, a colour where nobody looks.
func fits(t *testing.T, screenful string) {
	t.Helper()
	for line := range strings.Lines(screenful) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > screen || strings.TrimRight(line, " ") != line || strings.Contains(line, "\x1b") {
			t.Errorf("%d characters: %q", n, line)
		}
	}
}

func shown(print func(*app)) string {
	var out bytes.Buffer
	print(&app{stdout: &out, getenv: func(string) string { return "" }})
	return out.String()
}

func TestTables(t *testing.T) {
	long := "mcp_" + strings.Repeat("n", 60)
	for name, c := range map[string]struct {
		heads []string
		rows  [][]cell
		want  string
	}{
		"short": {[]string{"NAME", "STATE", "ABOUT"}, [][]cell{{{text: "a"}, {"enabled", green}, {text: "says"}}},
			"NAME  STATE    ABOUT\na     enabled  says\n"},
		"the last column is cut": {[]string{"NAME", "STATE", "ABOUT"}, [][]cell{{{text: "a"}, {text: "enabled"}, {text: strings.Repeat("word ", 30)}}},
			"NAME  STATE    ABOUT\na     enabled  " + strings.TrimSpace(strings.Repeat("word ", 13)) + "…\n"},
		"a long name stands alone": {[]string{"NAME", "STATE", "ABOUT"},
			[][]cell{{{text: "short"}, {text: "server_disabled"}, {text: strings.Repeat("x", 30)}}, {{text: long}, {text: "disabled"}, {text: "about"}}},
			"NAME   STATE            ABOUT\nshort  server_disabled  " + strings.Repeat("x", 30) + "\n" + long + "\n       disabled         about\n"},
		"no room for the last column": {[]string{"ID", "CLASS", "NOTE"},
			[][]cell{{{text: "a"}, {text: strings.Repeat("c", 60)}, {text: "a note that is of some length"}}, {{text: "b"}, {}, {}}},
			"ID  CLASS\na   " + strings.Repeat("c", 60) + "\n    a note that is of some length\nb\n"},
	} {
		got := shown(func(a *app) { a.table(c.heads, c.rows) })
		if fits(t, got); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// TestTablesLoseNoName: whatever the rows, names are whole and lines fit.
func TestTablesLoseNoName(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string { return strings.Repeat("w", random.IntN(most+1)) }
	for range 2000 {
		var rows [][]cell
		for range 1 + random.IntN(4) {
			rows = append(rows, []cell{{text: "n" + word(63)}, {text: word(16)}, {text: word(22)}, {text: strings.TrimSpace(strings.Repeat(word(9)+" ", random.IntN(20)))}})
		}
		got := shown(func(a *app) { a.table([]string{"NAME", "STATE", "CLASS", "ABOUT"}, rows) })
		fits(t, got)
		for _, row := range rows {
			if !strings.Contains(got, row[0].text) || !strings.Contains(got, row[2].text) {
				t.Fatalf("%q or %q is not in\n%s", row[0].text, row[2].text, got)
			}
		}
	}
}

func TestWrapping(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"one line":     {wrap("as it is", 10), "as it is"},
		"two":          {wrap(strings.Repeat("word ", 16), 2), strings.TrimSpace(strings.Repeat("word ", 15)) + "\n  word"},
		"hanging":      {hang(strings.Repeat("a", 30)+" "+strings.Repeat("b", 30), 43, 4), strings.Repeat("a", 30) + "\n    " + strings.Repeat("b", 30)},
		"a long word":  {wrap(strings.Repeat("x", 100), 20), strings.Repeat("x", 60) + "\n" + strings.Repeat(" ", 20) + strings.Repeat("x", 40)},
		"a first word": {hang(strings.Repeat("x", 50), 43, 4), "\n    " + strings.Repeat("x", 50)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}

func TestForeignLines(t *testing.T) {
	got := shown(func(a *app) {
		a.quote("short\n\n  " + strings.Repeat("word ", 20) + "\n" + strings.Repeat("x", 100) + "\n")
	})
	fits(t, got)
	want := "  | short\n  |\n  |   " + strings.TrimSpace(strings.Repeat("word ", 15)) + "\n  : " + strings.TrimSpace(strings.Repeat("word ", 5)) +
		"\n  | " + strings.Repeat("x", 76) + "\n  : " + strings.Repeat("x", 24) + "\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestHintsCanBePasted(t *testing.T) {
	if got := shown(func(a *app) { a.hint("next:", "gatehouse check") }); got != "next: gatehouse check\n" {
		t.Errorf("%q", got)
	}
	long := "gatehouse tools enable " + strings.Repeat("x", 64)
	if got := shown(func(a *app) { a.hint("enable with:", long) }); got != "enable with:\n  "+long+"\n" {
		t.Errorf("%q", got)
	}
}
