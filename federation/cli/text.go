package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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

// table prints rows under their heads, in columns as wide as they need. The
// last column gives way so that a line fits the screen; the others never do,
// because they hold names to be copied.
func (a *app) table(heads []string, rows [][]cell) {
	last := len(heads) - 1
	widths := make([]int, len(heads))
	for i, h := range heads {
		widths[i] = utf8.RuneCountInString(h)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	room := screen
	for _, w := range widths[:last] {
		room -= w + 2
	}
	line := func(row []cell) {
		var b strings.Builder
		for i, c := range row {
			if i == last {
				b.WriteString(a.paint(c.colour, shorten(c.text, room)))
				break
			}
			b.WriteString(a.paint(c.colour, c.text))
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
		}
		a.printf("%s\n", strings.TrimRight(b.String(), " "))
	}
	head := make([]cell, len(heads))
	for i, h := range heads {
		head[i] = cell{h, bold}
	}
	line(head)
	for _, row := range rows {
		line(row)
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

// indent puts prefix before every line.
func indent(w io.Writer, prefix, s string) {
	for line := range strings.Lines(strings.TrimRight(s, "\n") + "\n") {
		fmt.Fprint(w, prefix, line)
	}
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
func wrap(s string, margin int) string {
	var b strings.Builder
	column := margin
	for i, word := range pieces(s, screen-margin) {
		width := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+width > screen:
			b.WriteString("\n" + strings.Repeat(" ", margin))
			column = margin
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String()
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
