package rawjson

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical appends the RFC 8785 form of b to dst. What Check refuses is refused
// here as well, in the same pass.
//
// One departure, on purpose: RFC 8785 writes every number as the nearest
// double, so 9007199254740993 and 9007199254740992 would share a digest. A
// number whose value a double does not carry keeps its literal instead.
func Canonical(dst, b []byte) ([]byte, error) {
	c := canonizer{scanner{data: b}}
	out, end, err := c.value(dst, skipSpace(b, 0), 0)
	if err != nil {
		return dst, err
	}
	if end = skipSpace(b, end); end != len(b) {
		return dst, &Error{end, Trailing, "unexpected bytes after the value"}
	}
	return out, nil
}

type canonizer struct{ scanner }

// value appends the form of the value at i and returns where it ends. Its
// recursion is bounded by MaxDepth.
func (c *canonizer) value(dst []byte, i, depth int) ([]byte, int, error) {
	if i >= len(c.data) {
		return nil, 0, c.fail(i, "unexpected end")
	}
	start := i
	var err error
	switch c.data[i] {
	case '{', '[':
		if depth == MaxDepth {
			return nil, 0, &Error{i, TooDeep, fmt.Sprintf("more than %d levels", MaxDepth)}
		}
		if c.data[i] == '{' {
			return c.object(dst, i+1, depth+1)
		}
		return c.array(dst, i+1, depth+1)
	case '"':
		end, escaped, err := c.str(i)
		if err != nil {
			return nil, 0, err
		}
		return appendText(dst, c.data[i+1:end-1], escaped), end, nil
	case 't':
		i, err = c.literal(i, "true")
	case 'f':
		i, err = c.literal(i, "false")
	case 'n':
		i, err = c.literal(i, "null")
	default:
		if i, err = c.number(i); err == nil {
			return appendNumber(dst, string(c.data[start:i])), i, nil
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return append(dst, c.data[start:i]...), i, nil
}

func (c *canonizer) array(dst []byte, i, depth int) ([]byte, int, error) {
	dst = append(dst, '[')
	if i = skipSpace(c.data, i); i < len(c.data) && c.data[i] == ']' {
		return append(dst, ']'), i + 1, nil
	}
	for {
		var err error
		if dst, i, err = c.value(dst, i, depth); err != nil {
			return nil, 0, err
		}
		more, next, err := c.next(i, ']')
		if err != nil {
			return nil, 0, err
		}
		if i = next; !more {
			return append(dst, ']'), i, nil
		}
		dst = append(dst, ',')
	}
}

type canonicalMember struct {
	at   int // where its name stands
	key  []uint16
	text []byte // name, colon and value, finished
}

func (c *canonizer) object(dst []byte, i, depth int) ([]byte, int, error) {
	var members []canonicalMember
	if i = skipSpace(c.data, i); i < len(c.data) && c.data[i] == '}' {
		return append(dst, "{}"...), i + 1, nil
	}
	for more := true; more; {
		if i >= len(c.data) || c.data[i] != '"' {
			return nil, 0, c.fail(i, "object key expected")
		}
		at := i
		end, escaped, err := c.str(i)
		if err != nil {
			return nil, 0, err
		}
		name := c.data[i+1 : end-1]
		text := append(appendText(nil, name, escaped), ':')
		if escaped {
			name, _ = unescape(nil, name)
		}
		if i = skipSpace(c.data, end); i >= len(c.data) || c.data[i] != ':' {
			return nil, 0, c.fail(i, "colon expected")
		}
		if text, i, err = c.value(text, skipSpace(c.data, i+1), depth); err != nil {
			return nil, 0, err
		}
		if more, i, err = c.next(i, '}'); err != nil {
			return nil, 0, err
		}
		members = append(members, canonicalMember{at, utf16.Encode([]rune(string(name))), text})
	}
	// RFC 8785 section 3.2.3: members are sorted by the UTF-16 code units of their names.
	slices.SortFunc(members, func(x, y canonicalMember) int { return slices.Compare(x.key, y.key) })
	dst = append(dst, '{')
	for n, m := range members {
		if n > 0 {
			if slices.Equal(m.key, members[n-1].key) {
				return nil, 0, &Error{max(m.at, members[n-1].at), DuplicateKey, "duplicate key in an object"}
			}
			dst = append(dst, ',')
		}
		dst = append(dst, m.text...)
	}
	return append(dst, '}'), i, nil
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
