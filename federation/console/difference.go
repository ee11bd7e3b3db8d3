package console

import (
	"strings"
	"unicode"

	"gatehouse/federation/control"
)

// A difference is how a tool differs from what was enabled, laid out to be read.
type difference struct {
	control.Difference
	Fields []fieldDifference
}

// A fieldDifference is one change: what both sides begin and end with, and
// between them what went and what came.
type fieldDifference struct {
	Field, Kind        string
	Before, Gone, Came string
	After              string
}

func newDifference(d control.Difference) *difference {
	out := &difference{Difference: d}
	for _, c := range d.Changes {
		f := fieldDifference{Field: c.Field, Kind: c.Kind}
		f.Before, f.Gone, f.Came, f.After = split(c.Old, c.New)
		out.Fields = append(out.Fields, f)
	}
	return out
}

// split cuts two texts into what they share at both ends and what they do not,
// between words.
func split(old, new string) (before, gone, came, after string) {
	a, b := words(old), words(new)
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < len(a)-start && end < len(b)-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return strings.Join(a[:start], ""), strings.Join(a[start:len(a)-end], ""),
		strings.Join(b[start:len(b)-end], ""), strings.Join(a[len(a)-end:], "")
}

// words are the pieces of s, each a word with the space after it.
func words(s string) (out []string) {
	start, space := 0, false
	for i, r := range s {
		if space && !unicode.IsSpace(r) {
			out = append(out, s[start:i])
			start = i
		}
		space = unicode.IsSpace(r)
	}
	return append(out, s[start:])
}
