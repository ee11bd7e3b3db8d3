package catalog

import (
	"bytes"
	"slices"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// A form is one tool as it is written into a page: a head of our own and, for
// the rest, pieces of the definition as it was received. Forms of ten thousand
// tools therefore cost little beside the definitions themselves.
type form struct {
	head []byte
	tail [][]byte
}

func (f *form) size() int {
	n := len(f.head)
	for _, t := range f.tail {
		n += len(t)
	}
	return n
}

func (f *form) appendTo(b []byte) []byte {
	b = append(b, f.head...)
	for _, t := range f.tail {
		b = append(b, t...)
	}
	return b
}

// originNote tells a model, in front of each description, whose words follow.
func originNote(server string) string {
	server, _ = visible(server)
	return `[via the external MCP server "` + server + `"] `
}

var (
	comma      = []byte(",")
	closeBrace = []byte("}")
)

// serve writes d for callers of one era: our name, the description with the
// origin in front, and every other member as it was received. input, when not
// nil, takes the place of the input schema.
func (d *definition) serve(name gate.LocalName, server string, era Era, input []byte) *form {
	f := &form{}
	f.head = append(f.head, `{"name":`...)
	f.head = rawjson.AppendString(f.head, string(name))
	f.head = append(f.head, `,"description":`...)
	text, _ := visible(d.description)
	f.head = rawjson.AppendString(f.head, originNote(server)+text)

	// In a compacted object a member ends where the comma before the next one
	// stands, so that neighbours that stay can be taken over in one piece.
	start, end := 0, 0
	flush := func() {
		if end > start {
			f.tail = append(f.tail, comma, d.raw[start:end])
		}
	}
	at := 1
	for _, m := range d.members {
		next := at + len(m.Name) + 1 + len(m.Value)
		replaced, keep := d.passOn(m, era, input)
		switch {
		case keep && replaced == nil && end > start && at == end+1:
			end = next
		case keep && replaced == nil:
			flush()
			start, end = at, next
		case keep:
			flush()
			start, end = 0, 0
			f.tail = append(f.tail, slices.Concat(comma, m.Name, []byte(":"), replaced))
		}
		at = next + 1
	}
	flush()
	f.tail = append(f.tail, closeBrace)
	return f
}

// passOn says whether a member is passed on, and as what when not as it is.
func (d *definition) passOn(m rawjson.Member, era Era, input []byte) (replaced []byte, keep bool) {
	if slices.Contains(d.dropped, m.Key) {
		return nil, false
	}
	switch m.Key {
	case "name", "description":
		return nil, false
	case "title":
		return visibleString(m.Value), true
	case "annotations":
		if shown := visibleTitle(m.Value); shown != nil {
			return rawjson.FixSurrogates(shown), true
		}
	case "inputSchema":
		return input, true
	case "outputSchema":
		// Before 2026 an output schema had to describe an object, and a strict
		// client refuses the whole page over one that does not.
		return nil, era == Era2026 || rootType(m.Value) == `"object"`
	case "execution":
		return nil, era != Era2026 // a member of 2025-11-25 only
	}
	if fixed := rawjson.FixSurrogates(m.Value); !bytes.Equal(fixed, m.Value) {
		return fixed, true
	}
	return nil, true
}

// visibleString returns the JSON string raw with hidden characters shown, or
// nil when there are none.
func visibleString(raw []byte) []byte {
	text, err := rawjson.String(rawjson.FixSurrogates(raw))
	if err != nil {
		return nil
	}
	shown, hidden := visible(text)
	if hidden == 0 && bytes.Equal(raw, rawjson.FixSurrogates(raw)) {
		return nil
	}
	return rawjson.AppendString(nil, shown)
}

// visibleTitle is visibleString for the title inside annotations.
func visibleTitle(raw []byte) []byte {
	members, err := rawjson.Object(raw)
	if err != nil {
		return nil
	}
	title, ok := rawjson.Get(members, "title")
	if !ok {
		return nil
	}
	shown := visibleString(title)
	if shown == nil {
		return nil
	}
	out := []byte("{")
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, m.Name...), ':')
		if m.Key == "title" {
			out = append(out, shown...)
		} else {
			out = append(out, m.Value...)
		}
	}
	return append(out, '}')
}
