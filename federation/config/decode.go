package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// table is embedded in every struct that stands for a TOML table. It knows how
// the operator would call the table and where it begins.
type table struct {
	present bool
	line    int
	at      path
	subject string // `server "crm"`
}

func (t *table) base() *table { return t }

type tabled interface{ base() *table }

// field is embedded in every leaf: a value that was given, or not, or given in
// a way that has already been reported.
type field struct {
	given bool
	bad   bool
	line  int
	key   string // as messages call it
}

func (f *field) leaf() *field { return f }

// ok reports whether the value was given and can be used.
func (f field) ok() bool { return f.given && !f.bad }

// decodable is a leaf. Decode returns what is wanted when raw is not that; the
// answer never quotes raw, which may be a secret in the wrong place.
type decodable interface {
	leaf() *field
	decode(raw any) (wrong string)
}

// decoder fills the structs of schema.go from a parsed tree and collects every
// problem on the way.
type decoder struct {
	lines    lines
	problems Problems
}

func (d *decoder) add(line int, key, format string, args ...any) {
	d.problems = append(d.problems, Problem{Line: line, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) warn(line int, key, format string, args ...any) {
	d.problems = append(d.problems, Problem{Line: line, Key: key, Warning: true, Text: fmt.Sprintf(format, args...)})
}

// wrong reports a leaf and marks it, so that nobody reports it again.
func (d *decoder) wrong(t *table, f *field, format string, args ...any) {
	f.bad = true
	d.add(f.line, t.dotted(f.key), "%s: %s %s", t.subject, f.key, fmt.Sprintf(format, args...))
}

// dotted is the key of the whole file, without indexes.
func (t *table) dotted(key string) string {
	var parts []string
	for p := range strings.SplitSeq(string(t.at), "\x00") {
		if p != "" && p[0] != '#' {
			parts = append(parts, p)
		}
	}
	return strings.Join(append(parts, key), ".")
}

func (d *decoder) document(tree map[string]any, f *file) {
	f.table = table{present: true, line: 1}
	d.table(tree, reflect.ValueOf(f).Elem())
}

// table fills one struct; its embedded table is set already.
func (d *decoder) table(tree map[string]any, into reflect.Value) {
	t := into.Addr().Interface().(tabled).base()
	fields := keysOf(into.Type())
	for _, key := range sortedKeys(tree) {
		i, known := fields[key]
		if !known {
			d.unknown(t, key, fields)
			continue
		}
		d.value(t, key, tree[key], into.FieldByIndex(i))
	}
}

func (d *decoder) value(t *table, key string, raw any, into reflect.Value) {
	at := t.at.key(key)
	if leaf, ok := into.Addr().Interface().(decodable); ok {
		f := leaf.leaf()
		*f = field{given: true, line: d.lines.of(at), key: key}
		if wrong := leaf.decode(raw); wrong != "" {
			d.wrong(t, f, "%s", wrong)
		}
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		tree, ok := raw.(map[string]any)
		if !ok {
			d.add(d.lines.of(at), t.dotted(key), "%s must be a table, not %s", t.inner(key), kindOf(raw))
			return
		}
		*into.Addr().Interface().(tabled).base() = table{true, d.lines.of(at), at, t.inner(key)}
		d.table(tree, into)
	case reflect.Slice:
		d.array(t, key, raw, into)
	case reflect.Map:
		d.named(t, key, raw, into)
	}
}

// array fills an array of tables: [[server]].
func (d *decoder) array(t *table, key string, raw any, into reflect.Value) {
	at := t.at.key(key)
	elements, ok := tables(raw)
	if !ok {
		d.add(d.lines.of(at), t.dotted(key), "%s must be written [[%s]], one table for each, not %s", t.inner(key), t.dotted(key), kindOf(raw))
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(elements), len(elements)))
	for i, tree := range elements {
		element := into.Index(i)
		*element.Addr().Interface().(tabled).base() =
			table{true, d.lines.of(at.index(i)), at.index(i), elementSubject(t.inner(key), i, tree)}
		d.table(tree, element)
	}
}

// tables returns the elements of an array that holds tables and nothing else.
func tables(raw any) ([]map[string]any, bool) {
	if elements, ok := raw.([]map[string]any); ok {
		return elements, true
	}
	list, ok := raw.([]any)
	elements := make([]map[string]any, len(list))
	for i := range list {
		isTable := false
		elements[i], isTable = list[i].(map[string]any)
		ok = ok && isTable
	}
	return elements, ok
}

// named fills a table whose keys the operator chooses: [delegation.<name>].
func (d *decoder) named(t *table, key string, raw any, into reflect.Value) {
	at := t.at.key(key)
	tree, ok := raw.(map[string]any)
	if !ok {
		d.add(d.lines.of(at), t.dotted(key), "%s must be a table, not %s", t.inner(key), kindOf(raw))
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range sortedKeys(tree) {
		element := reflect.New(into.Type().Elem()).Elem()
		outer := &table{true, d.lines.of(at), at, t.inner(key)}
		if _, isLeaf := element.Addr().Interface().(decodable); !isLeaf {
			outer.subject = strings.TrimSuffix(t.inner(key), "s")
		}
		d.value(outer, name, tree[name], element)
		into.SetMapIndex(reflect.ValueOf(name), element)
	}
}

// inner is how messages call a table inside t.
func (t *table) inner(key string) string {
	switch {
	case t.subject == "":
		return key
	case t.subject == "delegation", strings.HasSuffix(t.subject, " grant"):
		return fmt.Sprintf("%s %q", t.subject, key)
	}
	return t.subject + ": " + key
}

// elementSubject calls a table of an array by its own name, or by its number.
func elementSubject(kind string, i int, tree map[string]any) string {
	for _, key := range []string{"id", "name"} {
		if name, ok := tree[key].(string); ok && name != "" {
			return fmt.Sprintf("%s %q", kind, clip(name))
		}
	}
	return fmt.Sprintf("%s number %d", kind, i+1)
}

// clip keeps a message on one line and readable.
func clip(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}

func (d *decoder) unknown(t *table, key string, fields map[string][]int) {
	line := d.lines.of(t.at.key(key))
	subject := ""
	if t.subject != "" {
		subject = t.subject + ": "
	}
	hint := misplaced[t.dotted(key)]
	if hint == "" {
		if near := nearest(key, sortedKeys(fields)); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		} else {
			hint = "known here: " + strings.Join(sortedKeys(fields), ", ")
		}
	}
	d.add(line, t.dotted(key), "%sno such key %q; %s", subject, clip(key), hint)
}

// misplaced answers keys that people bring along from other systems.
var misplaced = map[string]string{
	"servers":            `did you mean [[server]], one table for each?`,
	"mcpServers":         `gatehouse import-config turns such a file into [[server]] tables`,
	"callers":            `did you mean [[caller]], one table for each?`,
	"state.postgres":     `this version keeps its state in the one file that "path" names`,
	"server.command":     `a server over stdio is not started by us; put an HTTP bridge in front of it and give its url`,
	"server.args":        `a server over stdio is not started by us; put an HTTP bridge in front of it and give its url`,
	"server.env":         `a server over stdio is not started by us; put an HTTP bridge in front of it and give its url`,
	"server.headers":     `a key in a header is [server.auth] mode = "header"; nothing else is sent along`,
	"server.token":       `did you mean [server.auth] with mode = "bearer" and credential = "env:NAME"?`,
	"server.auth.token":  `did you mean "credential"?`,
	"server.auth.type":   `did you mean "mode"?`,
	"server.auth.secret": `did you mean "credential"?`,
	"server.tls_verify":  `the check of certificates cannot be switched off; name a private CA with ca_file`,
	"server.insecure":    `the check of certificates cannot be switched off; name a private CA with ca_file`,
}

// keysOf maps a struct's keys to its fields.
func keysOf(t reflect.Type) map[string][]int {
	keys := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("toml"); key != "" {
			keys[key] = f.Index
		}
	}
	return keys
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// kindOf names a TOML type without giving the value away.
func kindOf(raw any) string {
	switch raw.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case map[string]any:
		return "a table"
	case []any, []map[string]any:
		return "a list"
	default:
		return "a date or time"
	}
}
