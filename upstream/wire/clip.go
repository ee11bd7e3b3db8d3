package wire

import (
	"strings"
	"unicode"
)

// clipLength is how many characters of remote text anybody gets to see.
const clipLength = 200

// Clip makes remote text fit for errors, logs and pages: control, format and
// line-separating characters become one space, so that the text can neither
// begin a line of its own nor turn around what stands beside it; the result is
// trimmed and cut after 200 characters.
func Clip(s string) string {
	var b strings.Builder
	n, gap := 0, false
	for i, r := range s {
		if n == clipLength || i > 64*clipLength {
			break
		}
		if unprintable(r) {
			gap = true
			continue
		}
		if gap && n > 0 && n < clipLength-1 {
			b.WriteByte(' ')
			n++
		}
		gap = false
		if n == 0 && unicode.IsSpace(r) {
			continue
		}
		b.WriteRune(r)
		n++
	}
	return strings.TrimRightFunc(b.String(), unicode.IsSpace)
}

// unprintable reports whether r must not reach a terminal or a log: controls
// (C0, C1), format characters (bidirectional marks and isolates, zero-width,
// tags), line and paragraph separators.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
