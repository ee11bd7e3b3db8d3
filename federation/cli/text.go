package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// screen is the width that tables keep to.
const screen = 80

// The colours.
const (
	plain  = ""
	green  = "32"
	yellow = "33"
	red    = "31"
	bold   = "1"
)

// paint colours s on a terminal whose owner did not ask for no colour.
func (a *app) paint(colour, s string) string {
	if colour == plain || !isTerminal(a.stdout) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printJSON prints v for scripts. A nil list is an empty one.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }

// A cell is one field of a table.
type cell struct {
	text   string
	colour string
}

// lastRoom is what a table leaves to its last column, if that wants so much.
const lastRoom = 24

// table prints rows under their heads. The columns between the first and the
// last are as wide as they need, since they hold words to be copied. The first
// has what is left: a name that does not fit stands on a line of its own. The
// last is cut, or stands below its row where there is no room for it at all.
func (a *app) table(heads []string, rows [][]cell) {
	t := layout(heads, rows)
	head := make([]cell, len(heads))
	for i, h := range heads {
		head[i] = cell{h, bold}
	}
	if t.below {
		head[t.last].text = ""
	}
	t.line(a, head)
	for _, row := range rows {
		t.line(a, row)
	}
}

// A grid is the widths of a table's columns.
type grid struct {
	widths []int
	last   int
	room   int  // of the last column
	below  bool // the last column stands below
}

func layout(heads []string, rows [][]cell) grid {
	t := grid{widths: make([]int, len(heads)), last: len(heads) - 1}
	for _, row := range append([][]cell{nil}, rows...) {
		for i := range heads {
			text := heads[i]
			if row != nil {
				text = row[i].text
			}
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(text))
		}
	}
	free := screen
	for _, w := range t.widths[1:t.last] {
		free -= w + 2
	}
	want := min(t.widths[t.last], lastRoom)
	if t.below = free-2-want < min(t.widths[0], lastRoom/2); t.below {
		want = -2
	}
	most, first := free-2-want, utf8.RuneCountInString(heads[0])
	for _, row := range rows {
		if n := utf8.RuneCountInString(row[0].text); n <= most {
			first = max(first, n)
		}
	}
	t.widths[0] = first
	t.room = free - 2 - first
	return t
}

// line prints one row.
func (t grid) line(a *app, row []cell) {
	var b strings.Builder
	for i, c := range row[:t.last] {
		width := utf8.RuneCountInString(c.text)
		b.WriteString(a.paint(c.colour, c.text))
		if width > t.widths[i] { // a name that does not fit
			b.WriteByte('\n')
			width = 0
		}
		b.WriteString(strings.Repeat(" ", t.widths[i]-width+2))
	}
	end := row[t.last]
	if !t.below {
		b.WriteString(a.paint(end.colour, shorten(end.text, t.room)))
	}
	a.printf("%s\n", strings.TrimRight(b.String(), " "))
	if t.below && end.text != "" {
		a.printf("    %s\n", a.paint(end.colour, wrap(end.text, 4)))
	}
}

// shorten cuts s to n characters.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 4 {
		return ""
	}
	return string([]rune(s)[:n-1]) + "…"
}

// escape makes remote text of several lines safe for a terminal: what could
// move the cursor, change colours or turn the direction of reading is written
// out, line feeds and tabs stay.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ago says how long ago t was.
func ago(t *time.Time) string {
	if t == nil {
		return "never"
	}
	switch d := time.Since(*t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// wrap breaks s between words so that it fits the screen behind margin
// characters, and indents the lines after the first by as much. A word that is
// too long for a line is broken where the line ends.
func wrap(s string, margin int) string { return hang(s, margin, margin) }

// hang is wrap with another margin for the lines after the first.
func hang(s string, first, margin int) string {
	var b strings.Builder
	column := first
	for i, word := range pieces(s, screen-margin) {
		width := utf8.RuneCountInString(word)
		switch {
		case i == 0 && column+width <= screen:
		case column+1+width > screen:
			b.WriteString("\n" + strings.Repeat(" ", margin))
			column = margin
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String()
}

// quote prints lines that somebody else wrote, each behind two blanks and a bar.
// A line that is longer than the screen goes on behind a colon.
func (a *app) quote(s string) { a.lines(s, "  | ", "  : ") }

// lines prints the lines of s behind a prefix, and what of a line is too long for
// the screen behind another one.
func (a *app) lines(s, begin, more string) {
	for line := range strings.Lines(strings.TrimRight(s, "\n") + "\n") {
		runes := []rune(strings.TrimRight(line, " \t\n"))
		prefix := begin
		for len(runes) > screen-len(prefix) {
			cut := breakBefore(runes, screen-len(prefix))
			a.printf("%s%s\n", prefix, strings.TrimRight(string(runes[:cut]), " "))
			runes, prefix = runes[cut:], more
		}
		a.printf("%s\n", strings.TrimRight(prefix+string(runes), " "))
	}
}

// breakBefore is where a line is best broken so that its first part has at most
// that many characters: after a blank that is no indentation, or else at most.
func breakBefore(runes []rune, most int) int {
	begins := slices.IndexFunc(runes, func(r rune) bool { return r != ' ' })
	for i := most; i > begins; i-- {
		if runes[i] == ' ' {
			return i + 1
		}
	}
	return most
}

// hint prints a line that ends with a command. A long one gets a line of its
// own, unbroken, since it is to be pasted.
func (a *app) hint(text, command string) {
	separator := " "
	if utf8.RuneCountInString(text)+1+utf8.RuneCountInString(command) > screen {
		separator = "\n  "
	}
	a.printf("%s%s%s\n", text, separator, command)
}

// pieces are the words of s, those longer than most cut up.
func pieces(s string, most int) []string {
	var out []string
	for _, word := range strings.Fields(s) {
		runes := []rune(word)
		for len(runes) > most {
			out = append(out, string(runes[:most]))
			runes = runes[most:]
		}
		out = append(out, string(runes))
	}
	return out
}
