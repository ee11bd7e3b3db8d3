package rawjson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may nest. A deeper value is refused.
const MaxDepth = 512

// A Kind tells apart why bytes are not one strict JSON value.
type Kind uint8

// The kinds of errors.
const (
	Malformed    Kind = iota + 1 // not JSON
	DuplicateKey                 // an object has one key twice
	TooDeep                      // nested more than MaxDepth levels
	NotUTF8                      // invalid UTF-8 inside a string
	Trailing                     // something follows the value
	WrongType                    // valid JSON, but not the wanted kind of value
)

// An Error says where and why bytes are not one strict JSON value.
type Error struct {
	Offset int
	Kind   Kind
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("json: %s at byte %d", e.Text, e.Offset) }

// Check reports whether b is exactly one JSON value: valid UTF-8, no key twice
// in any object, at most MaxDepth levels, nothing but white space after it.
func Check(b []byte) error { return CheckTop(b, MaxDepth) }

// CheckSyntax is Check without the rule on duplicate keys.
func CheckSyntax(b []byte) error { return CheckTop(b, 0) }

// CheckTop is Check with the rule on duplicate keys for the outermost levels
// only: for an envelope whose content others judge piece by piece.
func CheckTop(b []byte, levels int) error {
	s := scanner{data: b, unique: levels}
	end, err := s.value(skipSpace(b, 0))
	if err != nil {
		return err
	}
	if end = skipSpace(b, end); end != len(b) {
		return &Error{end, Trailing, "unexpected bytes after the value"}
	}
	return nil
}

// A frame is one open object or array.
type frame struct {
	object bool
	unique bool                // no key may stand in it twice
	keys   int                 // where this object's keys begin in scanner.keys
	set    map[string]struct{} // the same keys, once there are too many to compare one by one
}

// manyKeys is how many keys of one object are compared one by one. Beyond it a
// map takes over, so that a hostile object costs linear time.
const manyKeys = 24

type scanner struct {
	data   []byte
	unique int // how many levels, from the outermost, no key may stand twice in
	depth  int // levels already open around what is scanned
	keys   [][]byte
}

// value checks the value that begins at i and returns where it ends. It keeps
// its own stack, so depth costs heap and not goroutine stack.
func (s *scanner) value(i int) (int, error) {
	var fixed [16]frame
	open := fixed[:0]
	b := s.data
	for {
		// A value begins at i.
		if i >= len(b) {
			return 0, s.fail(i, "unexpected end")
		}
		var err error
		switch c := b[i]; c {
		case '{', '[':
			if s.depth+len(open) == MaxDepth {
				return 0, &Error{i, TooDeep, fmt.Sprintf("more than %d levels", MaxDepth)}
			}
			open = append(open, frame{object: c == '{', unique: s.depth+len(open) < s.unique, keys: len(s.keys)})
			i = skipSpace(b, i+1)
			if i < len(b) && b[i] == c+2 { // '{'+2 is '}', '['+2 is ']'
				i++
				open = open[:len(open)-1]
				break
			}
			if c == '{' {
				if i, err = s.key(&open[len(open)-1], i); err != nil {
					return 0, err
				}
			}
			continue
		case '"':
			if i, _, err = s.str(i); err != nil {
				return 0, err
			}
		case 't':
			i, err = s.literal(i, "true")
		case 'f':
			i, err = s.literal(i, "false")
		case 'n':
			i, err = s.literal(i, "null")
		default:
			i, err = s.number(i)
		}
		if err != nil {
			return 0, err
		}
		// A value has ended at i: close what ends with it, or go to the next.
		next := false
		for !next {
			if len(open) == 0 {
				return i, nil
			}
			top := &open[len(open)-1]
			i = skipSpace(b, i)
			switch {
			case i >= len(b):
				return 0, s.fail(i, "unexpected end")
			case b[i] == ',':
				i = skipSpace(b, i+1)
				if top.object {
					if i, err = s.key(top, i); err != nil {
						return 0, err
					}
				}
				next = true
			case top.object && b[i] == '}' || !top.object && b[i] == ']':
				i++
				s.keys = s.keys[:top.keys]
				open = open[:len(open)-1]
			default:
				return 0, s.fail(i, "unexpected character")
			}
		}
	}
}

// key reads a member's name and its colon and returns where the value begins.
func (s *scanner) key(f *frame, i int) (int, error) {
	if i >= len(s.data) || s.data[i] != '"' {
		return 0, s.fail(i, "object key expected")
	}
	end, escaped, err := s.str(i)
	if err != nil {
		return 0, err
	}
	if f.unique {
		name := s.data[i+1 : end-1]
		if escaped {
			name, _ = unescape(nil, name)
		}
		if s.seen(f, name) {
			return 0, &Error{i, DuplicateKey, fmt.Sprintf("duplicate key %q", clip(name))}
		}
	}
	i = skipSpace(s.data, end)
	if i >= len(s.data) || s.data[i] != ':' {
		return 0, s.fail(i, "colon expected")
	}
	return skipSpace(s.data, i+1), nil
}

// seen notes name among the keys of f and reports whether it was there before.
func (s *scanner) seen(f *frame, name []byte) bool {
	if f.set != nil {
		if _, ok := f.set[string(name)]; ok {
			return true
		}
		f.set[string(name)] = struct{}{}
		return false
	}
	mine := s.keys[f.keys:]
	for _, k := range mine {
		if bytes.Equal(k, name) {
			return true
		}
	}
	if s.keys == nil {
		s.keys = make([][]byte, 0, 8) // most values need one allocation and no growing
	}
	s.keys = append(s.keys, name)
	if len(mine) >= manyKeys {
		f.set = make(map[string]struct{}, 4*manyKeys)
		for _, k := range s.keys[f.keys:] {
			f.set[string(k)] = struct{}{}
		}
	}
	return false
}

// str checks the string whose opening quote is at i and returns the place after
// its closing quote, and whether it holds an escape.
func (s *scanner) str(i int) (end int, escaped bool, err error) {
	b := s.data
	for i++; ; {
		i = plain(b, i)
		if i >= len(b) {
			return 0, false, s.fail(i, "unexpected end inside a string")
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped, nil
		case c == '\\':
			escaped = true
			n := escapeLen(b[i:])
			if n == 0 {
				return 0, false, s.fail(i, "invalid escape")
			}
			i += n
		case c < 0x20:
			return 0, false, s.fail(i, "control character inside a string")
		default:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				return 0, false, &Error{i, NotUTF8, "invalid UTF-8"}
			}
			i += size
		}
	}
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns the first place at or after i whose byte is not plain text of a
// string: a quote, a backslash, a control character, the start of a rune. Most
// of what passes here is long strings, so it looks at 32 bytes at a time and
// then at eight.
func plain(b []byte, i int) int {
	for i+32 <= len(b) {
		if special(b[i:])|special(b[i+8:])|special(b[i+16:])|special(b[i+24:]) != 0 {
			break
		}
		i += 32
	}
	for ; i+8 <= len(b); i += 8 {
		if found := special(b[i:]); found != 0 {
			// The lowest mark is exact; a borrow can only disturb higher bytes.
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return i
		}
	}
	return i
}

// special marks, among the first eight bytes of b, those that are not plain text.
func special(b []byte) uint64 {
	w := binary.LittleEndian.Uint64(b)
	quote := w ^ lows*'"'
	slash := w ^ lows*'\\'
	return (w | (w - lows*0x20) | ((quote - lows) &^ quote) | ((slash - lows) &^ slash)) & highs
}

// escapeLen returns the length of the escape at the start of b, 0 when it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

// next goes past the comma after an element, or past the end of its container.
func (s *scanner) next(i int, end byte) (more bool, next int, err error) {
	i = skipSpace(s.data, i)
	switch {
	case i < len(s.data) && s.data[i] == ',':
		return true, skipSpace(s.data, i+1), nil
	case i < len(s.data) && s.data[i] == end:
		return false, i + 1, nil
	}
	return false, 0, s.fail(i, "unexpected character")
}

func (s *scanner) literal(i int, word string) (int, error) {
	if !bytes.HasPrefix(s.data[i:], []byte(word)) {
		return 0, s.fail(i, "unexpected character")
	}
	return i + len(word), nil
}

// number checks a number by RFC 8259 section 6.
func (s *scanner) number(i int) (int, error) {
	b, start := s.data, i
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && '1' <= b[i] && b[i] <= '9':
		i = digits(b, i)
	default:
		return 0, s.fail(start, "unexpected character")
	}
	if i < len(b) && b[i] == '.' {
		j := digits(b, i+1)
		if j == i+1 {
			return 0, s.fail(i, "digit expected after the decimal point")
		}
		i = j
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		j := digits(b, i)
		if j == i {
			return 0, s.fail(i, "digit expected in the exponent")
		}
		i = j
	}
	return i, nil
}

func digits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func (s *scanner) fail(i int, text string) error {
	if i >= len(s.data) {
		text = "unexpected end"
	}
	return &Error{i, Malformed, text}
}

// clip keeps an error's quotation short.
func clip(b []byte) []byte {
	if len(b) > 64 {
		return b[:64]
	}
	return b
}
