package gate

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// clipText makes foreign text fit for a line of the record or of an error:
// everything that is not plainly visible becomes one space, and no more than
// limit characters remain.
func clipText(s string, limit int) string {
	var b strings.Builder
	space, n := false, 0
	for _, r := range s {
		if !visible(r) || r == ' ' || r == utf8.RuneError {
			space = b.Len() > 0
			continue
		}
		if n += 1; space {
			n++
		}
		if n > limit {
			b.WriteString("…")
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// visible reports whether r shows as itself and only as itself: no control
// character, no direction mark, nothing of zero width, no blank but the space.
func visible(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= ' ' && r != 0x7f
	}
	return unicode.IsPrint(r) && !unicode.Is(blank, r)
}

// blank lists what Unicode calls printable although it shows as nothing, or
// only alters how its neighbour looks.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian variation selectors
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille blank
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // halfwidth Hangul filler
		{Lo: 0xfffd, Hi: 0xfffd, Stride: 1}, // stands for something else
	},
	R32: []unicode.Range32{
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // musical null notehead
		{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}, // variation selectors
	},
}
