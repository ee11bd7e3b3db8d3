package rawjson

import "bytes"

// A Walker steps through the members of an object, or the elements of an
// array, that Check has accepted. It relies on that and checks nothing
// again, which makes it a fraction of the cost of a second parse.
type Walker struct {
	b []byte
	i int
}

// Walk begins inside the object or array b.
func Walk(b []byte) Walker { return Walker{b: b, i: bytes.IndexAny(b, "{[") + 1} }

// Member returns the next member: its name, decoded, and its raw value. ok is
// false after the last.
func (w *Walker) Member() (key, value []byte, ok bool) {
	if !w.more() {
		return nil, nil, false
	}
	start := w.i
	w.i = stringEnd(w.b, w.i)
	key = w.b[start+1 : w.i-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = decodedKey(w.b[start:w.i])
	}
	w.i = skipSpace(w.b, w.i) + 1 // the colon
	return key, w.take(), true
}

// Element returns the next element of an array. ok is false after the last.
func (w *Walker) Element() (value []byte, ok bool) {
	if !w.more() {
		return nil, false
	}
	return w.take(), true
}

// more moves to the next name or element and reports whether there is one.
func (w *Walker) more() bool {
	w.i = skipSpace(w.b, w.i)
	if w.b[w.i] == ',' {
		w.i = skipSpace(w.b, w.i+1)
	}
	return w.b[w.i] != '}' && w.b[w.i] != ']'
}

func (w *Walker) take() []byte {
	start := skipSpace(w.b, w.i)
	w.i = valueEnd(w.b, start)
	return w.b[start:w.i]
}

// decodedKey decodes a name that holds escapes. Half a surrogate pair equals no
// name that anybody looks for, so the raw form stands in for it.
func decodedKey(raw []byte) []byte {
	s, err := String(raw)
	if err != nil {
		return raw
	}
	return []byte(s)
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

// Split returns the members of the object b, which Check has accepted alone or
// as part of something larger. It checks nothing again.
func Split(b []byte) []Member {
	members := make([]Member, 0, 8)
	for w := Walk(b); w.more(); {
		start := w.i
		w.i = stringEnd(w.b, start)
		name := w.b[start:w.i]
		key := name[1 : len(name)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key, _ = unescape(nil, key)
		}
		w.i = skipSpace(w.b, w.i) + 1 // the colon
		members = append(members, Member{Key: intern(key), Name: name, Value: w.take()})
	}
	return members
}

// common are the names that nearly every message holds; for them a key costs no
// allocation.
var common = func() map[string]string {
	m := map[string]string{}
	for _, name := range []string{"jsonrpc", "id", "method", "params", "result", "error", "name", "arguments", "_meta",
		"progressToken", "content", "isError", "structuredContent", "resultType", "cursor",
		"io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities",
		"io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/serverInfo"} {
		m[name] = name
	}
	return m
}()

func intern(key []byte) string {
	if s, ok := common[string(key)]; ok {
		return s
	}
	return string(key)
}
