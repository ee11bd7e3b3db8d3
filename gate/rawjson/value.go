package rawjson

import (
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// A Member is one member of an object. Name and Value are parts of the input.
type Member struct {
	Key   string // the name, decoded
	Name  []byte // the name as written, with its quotes
	Value []byte // the value as written, without space around it
}

// Object returns the members of b in order. All of b is checked as by
// CheckSyntax, and no key may stand twice at this level; deeper levels are not
// looked at for duplicates.
func Object(b []byte) ([]Member, error) { return object(b, 1) }

// UniqueObject is Object with the rule on duplicate keys at every depth.
func UniqueObject(b []byte) ([]Member, error) { return object(b, MaxDepth) }

func object(b []byte, unique int) ([]Member, error) {
	s := scanner{data: b}
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return nil, s.notA(i, "object")
	}
	members := make([]Member, 0, 8)
	f := frame{object: true, unique: true}
	inner := scanner{data: b, depth: 1, unique: unique}
	i = skipSpace(b, i+1)
	for first := true; ; first = false {
		if first && i < len(b) && b[i] == '}' {
			break
		}
		name := i
		start, err := s.key(&f, i)
		if err != nil {
			return nil, err
		}
		end, err := inner.value(start)
		if err != nil {
			return nil, err
		}
		nameEnd, escaped, _ := s.str(name)
		key := b[name+1 : nameEnd-1]
		if escaped {
			key, _ = unescape(nil, key)
		}
		members = append(members, Member{Key: intern(key), Name: b[name:nameEnd], Value: b[start:end]})
		i = skipSpace(b, end)
		if i < len(b) && b[i] == '}' {
			break
		}
		if i >= len(b) || b[i] != ',' {
			return nil, s.fail(i, "comma expected")
		}
		i = skipSpace(b, i+1)
	}
	if i = skipSpace(b, i+1); i != len(b) {
		return nil, &Error{i, Trailing, "unexpected bytes after the value"}
	}
	return members, nil
}

// Array returns the elements of b in order. All of b is checked as by CheckSyntax.
func Array(b []byte) ([][]byte, error) {
	s := scanner{data: b, depth: 1}
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return nil, s.notA(i, "array")
	}
	var elements [][]byte
	i = skipSpace(b, i+1)
	for first := true; ; first = false {
		if first && i < len(b) && b[i] == ']' {
			break
		}
		end, err := s.value(i)
		if err != nil {
			return nil, err
		}
		elements = append(elements, b[i:end])
		i = skipSpace(b, end)
		if i < len(b) && b[i] == ']' {
			break
		}
		if i >= len(b) || b[i] != ',' {
			return nil, s.fail(i, "comma expected")
		}
		i = skipSpace(b, i+1)
	}
	if i = skipSpace(b, i+1); i != len(b) {
		return nil, &Error{i, Trailing, "unexpected bytes after the value"}
	}
	return elements, nil
}

func (s *scanner) notA(i int, what string) error {
	if err := CheckSyntax(s.data); err != nil {
		return err
	}
	return &Error{i, WrongType, "not an " + what}
}

// Get returns the value of the member named key.
func Get(members []Member, key string) ([]byte, bool) {
	for i := range members {
		if members[i].Key == key {
			return members[i].Value, true
		}
	}
	return nil, false
}

// GetObject returns the members of the object that is the member named key, nil
// when there is none.
func GetObject(members []Member, key string) []Member {
	raw, _ := Get(members, key)
	if !IsObject(raw) {
		return nil
	}
	inner, err := Object(raw)
	if err != nil {
		return nil
	}
	return inner
}

// GetText returns the string that is the member named key, "" when there is none.
func GetText(members []Member, key string) string {
	raw, _ := Get(members, key)
	if !IsString(raw) {
		return ""
	}
	s, err := String(raw)
	if err != nil {
		return ""
	}
	return s
}

// Describe names what kind of value raw, a valid value, is: "an object", "null".
func Describe(raw []byte) string {
	switch {
	case IsObject(raw):
		return "an object"
	case IsArray(raw):
		return "an array"
	case IsString(raw):
		return "a string"
	case IsNumber(raw):
		return "a number"
	case IsNull(raw):
		return "null"
	}
	return "a boolean"
}

// IsObject reports whether raw, a valid value, is an object.
func IsObject(raw []byte) bool { return first(raw) == '{' }

// IsArray reports whether raw, a valid value, is an array.
func IsArray(raw []byte) bool { return first(raw) == '[' }

// IsString reports whether raw, a valid value, is a string.
func IsString(raw []byte) bool { return first(raw) == '"' }

// IsNull reports whether raw, a valid value, is null.
func IsNull(raw []byte) bool { return first(raw) == 'n' }

// IsNumber reports whether raw, a valid value, is a number.
func IsNumber(raw []byte) bool {
	c := first(raw)
	return c == '-' || '0' <= c && c <= '9'
}

func first(raw []byte) byte {
	if i := skipSpace(raw, 0); i < len(raw) {
		return raw[i]
	}
	return 0
}

// ErrSurrogate says that a string holds half of a surrogate pair, which no
// Unicode text can hold.
var ErrSurrogate = errors.New("json: unpaired surrogate in a string")

// String decodes the JSON string raw. ErrSurrogate when it is no Unicode text.
func String(raw []byte) (string, error) {
	s := scanner{data: raw}
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '"' {
		return "", s.notA(i, "string")
	}
	end, escaped, err := s.str(i)
	if err != nil {
		return "", err
	}
	if rest := skipSpace(raw, end); rest != len(raw) {
		return "", &Error{rest, Trailing, "unexpected bytes after the value"}
	}
	if !escaped {
		return string(raw[i+1 : end-1]), nil
	}
	text, paired := unescape(nil, raw[i+1:end-1])
	if !paired {
		return "", ErrSurrogate
	}
	return string(text), nil
}

// unescape appends the text between a string's quotes to dst. An unpaired
// surrogate becomes U+FFFD and paired is false.
func unescape(dst, b []byte) (text []byte, paired bool) {
	paired = true
	for i := 0; i < len(b); {
		if b[i] != '\\' {
			dst = append(dst, b[i])
			i++
			continue
		}
		switch c := b[i+1]; c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, size, ok := escapedRune(b[i:])
			paired = paired && ok
			dst = utf8.AppendRune(dst, r)
			i += size
			continue
		default:
			dst = append(dst, c)
		}
		i += 2
	}
	return dst, paired
}

// escapedRune reads the \u escape at the start of b, both halves of a pair.
// An unpaired surrogate gives U+FFFD and false.
func escapedRune(b []byte) (r rune, size int, ok bool) {
	r, _ = hex4(b[2:])
	if !utf16.IsSurrogate(r) {
		return r, 6, true
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if low, ok := hex4(b[8:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, 12, true
			}
		}
	}
	return utf8.RuneError, 6, false
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
