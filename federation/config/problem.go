package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
)

// A Problem is one thing wrong with a file, and what is wanted instead.
type Problem struct {
	File    string
	Line    int    // 0: the file as a whole, or no line to point at
	Key     string // "server.data_class", "" when no key is concerned
	Warning bool   // the file loads all the same
	Text    string // subject first: server "crm": unknown data class …
}

// String is the line a command prints.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(filepath.Base(p.File))
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(strings.Map(printable, p.Text))
	return b.String()
}

// printable keeps what a file says on one line of a terminal.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// Problems is everything that is wrong, in the order of the file.
type Problems []Problem

// Errors are the problems that keep the file from loading.
func (ps Problems) Errors() Problems { return ps.only(false) }

// Warnings are the problems that do not.
func (ps Problems) Warnings() Problems { return ps.only(true) }

func (ps Problems) only(warning bool) Problems {
	var out Problems
	for _, p := range ps {
		if p.Warning == warning {
			out = append(out, p)
		}
	}
	return out
}

// Error implements error: one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
