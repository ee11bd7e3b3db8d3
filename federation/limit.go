package federation

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gatehouse/gate/rawjson"
)

// limitResult keeps a result within so many bytes, in the order of reading:
// content first, then structured content, then what else the server added. Text
// is cut, anything else that does not fit is left out, and a note stands where
// something is missing. It reports whether anything is. A result that fits
// passes as the bytes it is.
//
// With promised, the tool has an output schema. No note can stand in for content
// that has to conform to it, and clients let only an error come without: what a
// model can still read is handed on as one.
func limitResult(members []rawjson.Member, limit int64, promised bool) ([]rawjson.Member, bool) {
	size := int64(0)
	for i := range members {
		size += int64(len(members[i].Value))
	}
	if limit <= 0 || size <= limit {
		return members, false
	}
	l := limiter{left: limit, limit: limit}
	out := make([]rawjson.Member, 0, len(members)+2)
	broken := false
	content := member("content", []byte("[]"))
	for i := range members {
		if m := &members[i]; m.Key == "content" {
			content = rawjson.Member{Key: m.Key, Name: m.Name, Value: l.content(m.Value)}
		}
	}
	for i := range members {
		switch m := &members[i]; m.Key {
		case "content":
		case "isError", "resultType":
			out = append(out, *m)
		case "structuredContent":
			switch note := l.structured(m.Value); {
			case note == nil:
				out = append(out, *m)
			case promised:
				broken = true
			default:
				out = append(out, member(m.Key, note))
			}
		default:
			if l.takes(len(m.Value)) {
				out = append(out, *m)
			} else {
				l.notes = append(l.notes, fmt.Sprintf("%q of %d bytes is left out", clipText(m.Key), len(m.Value)))
			}
		}
	}
	if broken {
		out = slices.DeleteFunc(out, func(m rawjson.Member) bool { return m.Key == "isError" })
		out = append(out, member("isError", []byte("true")))
		l.notes = append(l.notes, "the call was made, and stands as an error because clients refuse its result without that content")
	}
	if len(l.notes) > 0 {
		content.Value = before(textBlock(l.note(strings.Join(l.notes, "; "))), content.Value)
	}
	return append([]rawjson.Member{content}, out...), l.cut
}

// A limiter is what is left for one result.
type limiter struct {
	left, limit int64
	cut         bool
	notes       []string // what is missing and has no place of its own for a note
}

func (l *limiter) takes(n int) bool {
	if int64(n) > l.left {
		return false
	}
	l.left -= int64(n)
	return true
}

// note is how we speak in a result: in brackets, by our name, before what a
// server says.
func (l *limiter) note(what string) string {
	l.cut = true
	return fmt.Sprintf("[gatehouse: %s; this server's results are limited to %d bytes]", what, l.limit)
}

// content returns the blocks with those cut or replaced that do not fit.
func (l *limiter) content(raw []byte) []byte {
	blocks, err := rawjson.Array(raw)
	if err != nil {
		if l.takes(len(raw)) {
			return raw
		}
		return append(append([]byte{'['}, textBlock(l.note(fmt.Sprintf("content of %d bytes is left out", len(raw))))...), ']')
	}
	out := []byte{'['}
	missing, bytes := 0, 0
	for _, block := range blocks {
		fitted := l.block(block)
		if fitted == nil {
			missing, bytes = missing+1, bytes+len(block)
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, fitted...)
	}
	if missing > 0 {
		l.notes = append(l.notes, fmt.Sprintf("%d of %d content blocks, %d bytes, are left out", missing, len(blocks), bytes))
	}
	return append(out, ']')
}

// block returns a block as it is, or cut, or nil when it has to be left out.
func (l *limiter) block(raw []byte) []byte {
	if l.takes(len(raw)) {
		return raw
	}
	members, err := rawjson.Object(raw)
	if err != nil {
		return nil
	}
	kind, _ := rawjson.Get(members, "type")
	if string(kind) != `"text"` {
		return nil
	}
	value, _ := rawjson.Get(members, "text")
	text, err := rawjson.String(value)
	room := l.left - int64(len(raw)-len(value))
	if err != nil || room <= 0 {
		return nil
	}
	kept := text[:boundary(text, room)]
	l.left = 0
	if len(kept) < len(text) { // it may fit once it is written with fewer escapes
		kept = l.note(fmt.Sprintf("the last %d of %d bytes of this text are left out", len(text)-len(kept), len(text))) + "\n" + kept
	}
	out := []byte{'{'}
	for i := range members {
		m := &members[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, m.Name...), ':')
		if m.Key == "text" {
			out = rawjson.AppendString(out, kept)
		} else {
			out = append(out, m.Value...)
		}
	}
	return append(out, '}')
}

// boundary is the largest index up to room at which a character begins and that
// keeps the text, as JSON, within room.
func boundary(text string, room int64) (at int) {
	for i, r := range text {
		size := int64(utf8.RuneLen(r))
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
			size = 2
		case r < ' ':
			size = 6
		}
		if room -= size; room < 0 {
			return i
		}
	}
	return len(text)
}

// structured returns nil for structured content that fits, and else the note in
// its place: an object, since nothing else may stand there in every era.
func (l *limiter) structured(raw []byte) (note []byte) {
	if l.takes(len(raw)) {
		return nil
	}
	what := fmt.Sprintf("structured content of %d bytes is left out", len(raw))
	l.notes = append(l.notes, what)
	return append(rawjson.AppendString([]byte(`{"gatehouse/note":`), l.note(what)), '}')
}

func textBlock(text string) []byte {
	return append(rawjson.AppendString([]byte(`{"type":"text","text":`), text), '}')
}

// before puts a block in front of those of an array.
func before(block, array []byte) []byte {
	out := append([]byte{'['}, block...)
	if rest := array[1:]; len(rest) > 1 {
		out = append(out, ',')
		return append(out, rest...)
	}
	return append(out, ']')
}
