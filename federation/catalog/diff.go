package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// A Difference says how a tool differs from what an operator enabled. Its texts
// are safe to print.
type Difference struct {
	Name    gate.LocalName `json:"name"`
	Server  gate.ServerID  `json:"server"`
	Remote  string         `json:"remote_name"`
	Old     gate.Digest    `json:"old,omitzero"` // of the enabled definition
	New     gate.Digest    `json:"new,omitzero"`
	Note    string         `json:"note,omitempty"` // what to know beside the changes
	Changes []FieldChange  `json:"changes"`
}

// The kinds of FieldChange.
const (
	Added   = "added"
	Removed = "removed"
	Altered = "changed"
)

// A FieldChange is one difference. A text is shown as such, every other value
// as JSON.
type FieldChange struct {
	Field string `json:"field"` // "description", "inputSchema.properties.bcc", "url", …
	Kind  string `json:"kind"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// Diff says how a tool differs from what was enabled.
func (c *Catalog) Diff(name gate.LocalName) (Difference, error) {
	c.mu.Lock()
	e, settings := c.current.Load().byName[name], (*ServerSettings)(nil)
	if e != nil {
		settings = c.settings[e.tool.Server]
	}
	c.mu.Unlock()
	if e == nil {
		return Difference{}, fmt.Errorf("%q: %w; `gatehouse tools list` shows all names", string(name), ErrNoTool)
	}
	d := Difference{Name: name, Server: e.tool.Server, Remote: oneLine(string(e.tool.Remote), maxRemoteName), Changes: []FieldChange{}}
	if e.rec == nil {
		d.Note = "it is our own tool"
		return d, nil
	}
	r := e.rec
	d.New = r.Digest
	if r.Pin == nil {
		d.Note = "nobody enabled it, so there is nothing to compare it with"
		return d, nil
	}
	d.Old, d.Note = r.Pin.Digest, e.detail
	if settings != nil {
		d.Changes = append(d.Changes, placeChanges(r.Pin, settings)...)
	}
	if r.Pin.Digest != r.Digest {
		d.Changes = append(d.Changes, changes(r.Pin.Definition, r.Definition)...)
	}
	return d, nil
}

func placeChanges(pin *StoredPin, s *ServerSettings) []FieldChange {
	var out []FieldChange
	if pin.URL != s.URL {
		out = append(out, FieldChange{"url", Altered, plainURL(pin.URL), plainURL(s.URL)})
	}
	if pin.Identity != s.identity() {
		out = append(out, FieldChange{Field: "authentication", Kind: Altered})
	}
	return out
}

// plainURL leaves out the parts of a url that may hold a secret.
func plainURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return oneLine(u.String(), 300)
}

// memberOrder puts first what a model reads.
var memberOrder = []string{"name", "description", "title", "inputSchema", "outputSchema", "annotations"}

// changes compares two definitions of one tool.
func changes(old, new []byte) []FieldChange {
	was, err1 := rawjson.Object(old)
	is, err2 := rawjson.Object(new)
	if err1 != nil || err2 != nil {
		return []FieldChange{{Field: "definition", Kind: Altered}}
	}
	var out []FieldChange
	for _, key := range unionKeys(was, is) {
		a, hadIt := rawjson.Get(was, key)
		b, hasIt := rawjson.Get(is, key)
		switch {
		case hadIt && hasIt && equalJSON(a, b):
		case key == "inputSchema" || key == "outputSchema" || key == "annotations":
			out = append(out, valueChanges(key, decode(a, hadIt), decode(b, hasIt), key != "annotations")...)
		default:
			out = append(out, valueChange(fieldName(key), decode(a, hadIt), decode(b, hasIt)))
		}
	}
	return out
}

func unionKeys(a, b []rawjson.Member) []string {
	seen := make(map[string]bool)
	for _, m := range slices.Concat(a, b) {
		seen[m.Key] = true
	}
	var out []string
	for _, k := range memberOrder {
		if seen[k] {
			out = append(out, k)
			delete(seen, k)
		}
	}
	rest := make([]string, 0, len(seen))
	for k := range seen {
		rest = append(rest, k)
	}
	slices.Sort(rest)
	return append(out, rest...)
}

func equalJSON(a, b []byte) bool {
	x, err1 := rawjson.Canonical(nil, a)
	y, err2 := rawjson.Canonical(nil, b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// absent stands for a member that is not there.
type absent struct{}

func decode(raw []byte, present bool) any {
	if !present {
		return absent{}
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

// valueChanges compares two values; objects member by member, and with schema
// set, lists of names and of alternatives by what they hold.
func valueChanges(field string, old, new any, schema bool) []FieldChange {
	if same(old, new) {
		return nil
	}
	was, ok1 := old.(map[string]any)
	is, ok2 := new.(map[string]any)
	if ok1 && ok2 {
		return objectChanges(field, was, is, schema)
	}
	a, ok1 := old.([]any)
	b, ok2 := new.([]any)
	if ok1 && ok2 && schema {
		return listChanges(field, a, b)
	}
	return []FieldChange{valueChange(field, old, new)}
}

func objectChanges(field string, was, is map[string]any, schema bool) []FieldChange {
	keys := make([]string, 0, len(was)+len(is))
	for k := range was {
		keys = append(keys, k)
	}
	for k := range is {
		if _, both := was[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var out []FieldChange
	for _, k := range keys {
		a, b := any(absent{}), any(absent{})
		if v, ok := was[k]; ok {
			a = v
		}
		if v, ok := is[k]; ok {
			b = v
		}
		out = append(out, valueChanges(field+"."+fieldName(k), a, b, schema)...)
	}
	return out
}

// listChanges compares required, enum and type lists as sets, and lists of
// schemas by their places.
func listChanges(field string, a, b []any) []FieldChange {
	if !slices.ContainsFunc(slices.Concat(a, b), isObject) {
		var out []FieldChange
		for _, v := range a {
			if !holds(b, v) {
				out = append(out, valueChange(field, v, absent{}))
			}
		}
		for _, v := range b {
			if !holds(a, v) {
				out = append(out, valueChange(field, absent{}, v))
			}
		}
		if out != nil {
			return out
		}
		return []FieldChange{valueChange(field, a, b)} // another order
	}
	var out []FieldChange
	for i := range max(len(a), len(b)) {
		x, y := any(absent{}), any(absent{})
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		out = append(out, valueChanges(fmt.Sprintf("%s[%d]", field, i), x, y, true)...)
	}
	return out
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

func holds(list []any, v any) bool {
	return slices.ContainsFunc(list, func(e any) bool { return same(e, v) })
}

func same(a, b any) bool {
	_, gone1 := a.(absent)
	_, gone2 := b.(absent)
	if gone1 || gone2 {
		return gone1 && gone2
	}
	return equalJSON(encodeJSON(a), encodeJSON(b))
}

func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func valueChange(field string, old, new any) FieldChange {
	c := FieldChange{Field: field, Kind: Altered, Old: shown(old), New: shown(new)}
	if _, gone := old.(absent); gone {
		c.Kind = Added
	} else if _, gone := new.(absent); gone {
		c.Kind = Removed
	}
	return c
}

func shown(v any) string {
	switch v := v.(type) {
	case absent:
		return ""
	case string:
		text, _ := visible(v)
		return text
	}
	text, _ := visible(string(encodeJSON(v)))
	return text
}

// fieldName is a name in a path: quoted when it is not a plain word.
func fieldName(k string) string {
	if k != "" && strings.IndexFunc(k, func(r rune) bool { return !nameRune(r) && r != '$' }) < 0 {
		return k
	}
	return fmt.Sprintf("%q", oneLine(k, 80))
}

// briefly names the fields of changes in one line.
func briefly(all []FieldChange) string {
	var b strings.Builder
	for i, c := range all {
		text := c.Field
		if c.Kind != Altered {
			text += " " + c.Kind
		}
		if b.Len()+len(text) > 140 {
			fmt.Fprintf(&b, " and %d more", len(all)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	return b.String()
}
