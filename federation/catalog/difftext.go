package catalog

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const screenWidth = 80

// String is the difference for a terminal of 80 columns: first what is
// compared, then each change with the lines that went and the lines that came.
func (d Difference) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %q of server %q\n", d.Name, d.Remote, string(d.Server))
	if d.Note != "" {
		for _, l := range wrap(d.Note, screenWidth) {
			b.WriteString(l + "\n")
		}
	}
	if !d.Old.IsZero() && d.Old != d.New {
		fmt.Fprintf(&b, "enabled  %s\nnow      %s\n", d.Old, d.New)
	}
	if len(d.Changes) == 0 && d.Note == "" {
		b.WriteString("no difference\n")
	}
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "\n%s %s\n", c.Field, c.Kind)
		for _, l := range lineDiff(c.Old, c.New) {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// lineDiff shows which lines went, which came, and one unchanged line around
// them.
func lineDiff(old, new string) []string {
	a, b := lines(old), lines(new)
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var out []string
	add := func(mark string, texts []string) {
		for _, t := range texts {
			for i, l := range wrap(t, screenWidth-4) {
				if i > 0 {
					mark = " "
				}
				out = append(out, "  "+mark+" "+l)
			}
		}
	}
	if start > 0 {
		add(" ", a[start-1:start])
	}
	for _, t := range a[start : len(a)-end] {
		add("-", []string{t})
	}
	for _, t := range b[start : len(b)-end] {
		add("+", []string{t})
	}
	if end > 0 {
		add(" ", a[len(a)-end:len(a)-end+1])
	}
	return out
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	text = strings.ReplaceAll(text, "\t", "    ")
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

// wrap breaks a line at spaces, or within a word that is longer than a line.
func wrap(text string, width int) []string {
	var out []string
	line := ""
	for _, word := range strings.Split(text, " ") {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				out, line = append(out, line), ""
			}
			r := []rune(word)
			out, word = append(out, string(r[:width])), string(r[width:])
		}
		switch n := utf8.RuneCountInString(line) + 1 + utf8.RuneCountInString(word); {
		case line == "":
			line = word
		case n > width:
			out, line = append(out, line), word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}
