package wire

import (
	"bytes"

	"gatehouse/gate/rawjson"
)

// A walker steps through the members of an object, or the elements of an
// array, that rawjson.Check has accepted. It relies on that and checks nothing
// again, which makes it a fraction of the cost of a second parse.
type walker struct {
	b []byte
	i int
}

// walk begins inside the object or array b.
func walk(b []byte) walker { return walker{b: b, i: bytes.IndexAny(b, "{[") + 1} }

// member returns the next member: its name, decoded, and its raw value. ok is
// false after the last.
func (w *walker) member() (key, value []byte, ok bool) {
	if !w.more() {
		return nil, nil, false
	}
	start := w.i
	w.i = stringEnd(w.b, w.i)
	key = w.b[start+1 : w.i-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = decodedKey(w.b[start:w.i])
	}
	w.i = spaceEnd(w.b, w.i) + 1 // the colon
	return key, w.take(), true
}

// element returns the next element of an array. ok is false after the last.
func (w *walker) element() (value []byte, ok bool) {
	if !w.more() {
		return nil, false
	}
	return w.take(), true
}

// more moves to the next name or element and reports whether there is one.
func (w *walker) more() bool {
	w.i = spaceEnd(w.b, w.i)
	if w.b[w.i] == ',' {
		w.i = spaceEnd(w.b, w.i+1)
	}
	return w.b[w.i] != '}' && w.b[w.i] != ']'
}

func (w *walker) take() []byte {
	start := spaceEnd(w.b, w.i)
	w.i = valueEnd(w.b, start)
	return w.b[start:w.i]
}

// decodedKey decodes a name that holds escapes. Half a surrogate pair equals no
// name that anybody looks for, so the raw form stands in for it.
func decodedKey(raw []byte) []byte {
	s, err := rawjson.String(raw)
	if err != nil {
		return raw
	}
	return []byte(s)
}

func spaceEnd(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the place after the closing quote of the string at i.
func stringEnd(b []byte, i int) int {
	for i++; ; {
		i += bytes.IndexByte(b[i:], '"')
		// The quote is escaped when an odd number of backslashes stands before it.
		j := i
		for b[j-1] == '\\' {
			j--
		}
		if (i-j)%2 == 0 {
			return i + 1
		}
		i++
	}
}

// valueEnd returns the place after the value at i. Depth is counted, not
// recursed into.
func valueEnd(b []byte, i int) int {
	depth := 0
	for {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
		default:
			i = scalarEnd(b, i)
		}
		if depth == 0 {
			return i
		}
	}
}

// scalarEnd returns the place after the number or literal at i.
func scalarEnd(b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return i
		}
		i++
	}
	return i
}
