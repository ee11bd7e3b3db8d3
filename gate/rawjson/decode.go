package rawjson

import (
	"encoding/json"
	"fmt"
)

// Decode is Check and decoding in one pass: objects become map[string]any,
// arrays []any, numbers json.Number with every digit, strings text in which half
// a surrogate pair is U+FFFD. Depth is how many levels the value has, 0 for a
// scalar.
func Decode(b []byte) (value any, depth int, err error) {
	d := decoder{scanner: scanner{data: b}}
	value, end, err := d.decode(skipSpace(b, 0), 0)
	if err != nil {
		return nil, 0, err
	}
	if end = skipSpace(b, end); end != len(b) {
		return nil, 0, &Error{end, Trailing, "unexpected bytes after the value"}
	}
	return value, d.deepest, nil
}

type decoder struct {
	scanner
	deepest int
}

// decode reads the value at i. Its recursion is bounded by MaxDepth.
func (d *decoder) decode(i, depth int) (any, int, error) {
	if i >= len(d.data) {
		return nil, 0, d.fail(i, "unexpected end")
	}
	switch c := d.data[i]; c {
	case '{', '[':
		if depth++; depth > MaxDepth {
			return nil, 0, &Error{i, TooDeep, fmt.Sprintf("more than %d levels", MaxDepth)}
		}
		d.deepest = max(d.deepest, depth)
		if c == '{' {
			return d.object(i+1, depth)
		}
		return d.array(i+1, depth)
	case '"':
		text, end, err := d.text(i)
		return text, end, err
	case 't':
		end, err := d.literal(i, "true")
		return true, end, err
	case 'f':
		end, err := d.literal(i, "false")
		return false, end, err
	case 'n':
		end, err := d.literal(i, "null")
		return nil, end, err
	}
	end, err := d.number(i)
	if err != nil {
		return nil, 0, err
	}
	return json.Number(d.data[i:end]), end, nil
}

func (d *decoder) object(i, depth int) (any, int, error) {
	members := map[string]any{}
	i = skipSpace(d.data, i)
	if i < len(d.data) && d.data[i] == '}' {
		return members, i + 1, nil
	}
	for {
		if i >= len(d.data) || d.data[i] != '"' {
			return nil, 0, d.fail(i, "object key expected")
		}
		key, end, err := d.text(i)
		if err != nil {
			return nil, 0, err
		}
		if _, twice := members[key]; twice {
			return nil, 0, &Error{i, DuplicateKey, fmt.Sprintf("duplicate key %q", clip([]byte(key)))}
		}
		if i = skipSpace(d.data, end); i >= len(d.data) || d.data[i] != ':' {
			return nil, 0, d.fail(i, "colon expected")
		}
		if members[key], i, err = d.decode(skipSpace(d.data, i+1), depth); err != nil {
			return nil, 0, err
		}
		more, next, err := d.next(i, '}')
		if err != nil || !more {
			return members, next, err
		}
		i = next
	}
}

func (d *decoder) array(i, depth int) (any, int, error) {
	elements := []any{}
	i = skipSpace(d.data, i)
	if i < len(d.data) && d.data[i] == ']' {
		return elements, i + 1, nil
	}
	for {
		element, end, err := d.decode(i, depth)
		if err != nil {
			return nil, 0, err
		}
		elements = append(elements, element)
		more, next, err := d.next(end, ']')
		if err != nil || !more {
			return elements, next, err
		}
		i = next
	}
}

func (d *decoder) text(i int) (string, int, error) {
	end, escaped, err := d.str(i)
	if err != nil {
		return "", 0, err
	}
	inner := d.data[i+1 : end-1]
	if escaped {
		inner, _ = unescape(make([]byte, 0, len(inner)), inner)
	}
	return string(inner), end, nil
}
