package rawjson

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical appends the RFC 8785 form of b to dst. b must pass Check.
//
// One departure, on purpose: RFC 8785 writes every number as the nearest
// double, so 9007199254740993 and 9007199254740992 would share a digest. A
// number whose value a double does not carry keeps its literal instead.
func Canonical(dst, b []byte) ([]byte, error) {
	if err := Check(b); err != nil {
		return dst, err
	}
	dst, _ = canonical(dst, b, skipSpace(b, 0))
	return dst, nil
}

// canonical appends the form of the value at i and returns where it ends. Its
// recursion is bounded by MaxDepth, which Check enforced.
func canonical(dst, b []byte, i int) ([]byte, int) {
	switch b[i] {
	case '{':
		return canonicalObject(dst, b, i)
	case '[':
		dst = append(dst, '[')
		i = skipSpace(b, i+1)
		for n := 0; b[i] != ']'; n++ {
			if n > 0 {
				dst = append(dst, ',')
				i = skipSpace(b, i+1)
			}
			dst, i = canonical(dst, b, i)
			i = skipSpace(b, i)
		}
		return append(dst, ']'), i + 1
	case '"':
		s := scanner{data: b}
		end, escaped, _ := s.str(i)
		return appendText(dst, b[i+1:end-1], escaped), end
	case 't':
		return append(dst, "true"...), i + 4
	case 'f':
		return append(dst, "false"...), i + 5
	case 'n':
		return append(dst, "null"...), i + 4
	}
	s := scanner{data: b}
	end, _ := s.number(i)
	return appendNumber(dst, string(b[i:end])), end
}

type canonicalMember struct {
	key  []uint16
	text []byte // name, colon and value, finished
}

func canonicalObject(dst, b []byte, i int) ([]byte, int) {
	var members []canonicalMember
	s := scanner{data: b}
	i = skipSpace(b, i+1)
	for n := 0; b[i] != '}'; n++ {
		if n > 0 {
			i = skipSpace(b, i+1)
		}
		end, escaped, _ := s.str(i)
		name := b[i+1 : end-1]
		text := append(appendText(nil, name, escaped), ':')
		if escaped {
			name, _ = unescape(nil, name)
		}
		i = skipSpace(b, skipSpace(b, end)+1)
		text, i = canonical(text, b, i)
		i = skipSpace(b, i)
		members = append(members, canonicalMember{utf16.Encode([]rune(string(name))), text})
	}
	// RFC 8785 section 3.2.3: members are sorted by the UTF-16 code units of their names.
	slices.SortFunc(members, func(x, y canonicalMember) int { return slices.Compare(x.key, y.key) })
	dst = append(dst, '{')
	for n, m := range members {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.text...)
	}
	return append(dst, '}'), i + 1
}

// appendText appends a string given as the bytes between its quotes. Half a
// surrogate pair stays the escape it was, in lower case, so that two broken
// strings stay two.
func appendText(dst, b []byte, escaped bool) []byte {
	if !escaped {
		return append(append(append(dst, '"'), b...), '"')
	}
	dst = append(dst, '"')
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			dst = append(dst, b[i])
			i++
			continue
		}
		if b[i+1] != 'u' {
			dst = appendEscapedChar(dst, b[i+1])
			i += 2
			continue
		}
		r, size, ok := escapedRune(b[i:])
		if ok {
			dst = appendRune(dst, r)
		} else {
			dst = append(dst, bytes.ToLower(b[i:i+6])...)
		}
		i += size
	}
	return append(dst, '"')
}

// appendEscapedChar appends what a two-character escape means.
func appendEscapedChar(dst []byte, c byte) []byte {
	if c == '/' {
		return append(dst, '/')
	}
	return append(dst, '\\', c)
}

// AppendString appends s as a JSON string in the form of RFC 8785 section
// 3.2.2.2. Invalid UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendRune(dst, rune(c))
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = utf8.AppendRune(dst, utf8.RuneError)
			start = i + 1
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendRune appends one character of a string, escaped where RFC 8785 says so.
func appendRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if r < 0x20 {
		const hex = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
	}
	return utf8.AppendRune(dst, r)
}

// appendNumber appends lit as ECMAScript writes the double of the same value
// (RFC 8785 section 3.2.2.3), or as it stands when no double has that value.
func appendNumber(dst []byte, lit string) []byte {
	f, err := strconv.ParseFloat(lit, 64)
	if err != nil {
		return append(dst, lit...)
	}
	if f == 0 {
		if !zero(lit) { // too small for a double
			return append(dst, lit...)
		}
		return append(dst, '0')
	}
	text := ecmaNumber(f)
	if !sameDecimal(lit, text) {
		return append(dst, lit...)
	}
	return append(dst, text...)
}

func ecmaNumber(f float64) string {
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	// Go pads the exponent to two digits, ECMAScript does not.
	if n := len(text); text[n-2] == '0' && (text[n-3] == '-' || text[n-3] == '+') {
		text = text[:n-2] + text[n-1:]
	}
	return text
}

func zero(lit string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(lit), "e")
	return strings.Trim(mantissa, "-0.") == ""
}

// sameDecimal reports whether two literals denote the same number.
func sameDecimal(a, b string) bool {
	da, ea, oka := decimal(a)
	db, eb, okb := decimal(b)
	return oka && okb && da == db && ea == eb && strings.HasPrefix(a, "-") == strings.HasPrefix(b, "-")
}

// decimal splits a literal into its significant digits and the power of ten of
// the last of them. Not ok when the exponent is beyond any sense.
func decimal(lit string) (digits string, exponent int, ok bool) {
	mantissa, power, found := strings.Cut(strings.ToLower(strings.TrimPrefix(lit, "-")), "e")
	if found {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return "", 0, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	return short, exponent + len(digits) - len(short), true
}

// FixSurrogates returns b, valid JSON, with every unpaired surrogate escape
// replaced by \ufffd. It returns b itself when there is none.
func FixSurrogates(b []byte) []byte {
	var out []byte
	kept := 0
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\\')
		if n < 0 || i+n+1 >= len(b) {
			break
		}
		i += n
		if b[i+1] != 'u' {
			i += 2
			continue
		}
		_, size, ok := escapedRune(b[i:])
		if !ok {
			out = append(append(out, b[kept:i]...), `\ufffd`...)
			kept = i + size
		}
		i += size
	}
	if out == nil {
		return b
	}
	return append(out, b[kept:]...)
}
