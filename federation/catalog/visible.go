package catalog

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with every character that hides, reorders or moves text
// written as an escape, and how many there were. Line breaks and tabs stay: they
// are layout, and descriptions are full of them. The result is meant for models
// and people alike, so that both read the same text.
func visible(s string) (string, int) {
	if strings.IndexFunc(s, suspicious) < 0 {
		return s, 0
	}
	var b strings.Builder
	hidden := 0
	prev := rune(0)
	for i, r := range s {
		switch {
		case !suspicious(r), r == '\r' && strings.HasPrefix(s[i+1:], "\n"), r == emojiStyle && pictured(prev):
			b.WriteRune(r)
		default:
			hidden++
			b.WriteString(escapeRune(r))
		}
		prev = r
	}
	return b.String(), hidden
}

// Visible returns s with every character that hides, reorders or moves text
// written as an escape; line breaks and tabs stay.
func Visible(s string) string {
	s, _ = visible(s)
	return s
}

// oneLine is visible for places that have one line: line breaks and tabs are
// escaped too, and the text is cut after limit characters.
func oneLine(s string, limit int) string {
	s, _ = visible(s)
	s = spaceEscapes.Replace(s)
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

var spaceEscapes = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

func escapeRune(r rune) string {
	if r > 0xFFFF {
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// emojiStyle is the variation selector that asks for a coloured picture. After
// a symbol it is ordinary writing; anywhere else it can only carry hidden data.
const emojiStyle = 0xFE0F

func pictured(prev rune) bool {
	return unicode.Is(unicode.So, prev) || unicode.Is(unicode.Sk, prev) || unicode.Is(unicode.Sm, prev) ||
		unicode.Is(unicode.Po, prev) || prev >= '0' && prev <= '9'
}

// suspicious covers controls (except line breaks and tabs), format characters
// (bidirectional marks, zero widths, tags), line separators, and letters or
// marks that are drawn as nothing.
func suspicious(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case 0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0:
		return true
	}
	if r < 0x20 || r >= 0x7F && r < 0xA0 {
		return true
	}
	if r < 0xAD {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || unicode.Is(unicode.Variation_Selector, r) ||
		r == 0x2065 || r >= 0xFFF0 && r <= 0xFFF8 || r >= 0xE0000 && r <= 0xE0FFF
}
