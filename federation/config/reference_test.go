package config

import (
	stdflag "flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = stdflag.Bool("update", false, "write docs/configuration.md")

const referenceFile = "../../docs/configuration.md"

// The reference is made of the types, which know the keys and what values they
// take, and of the manual, which knows what they mean.
func TestReferenceIsCurrent(t *testing.T) {
	manual, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	want, missing := referencePage(string(manual))
	for _, m := range missing {
		t.Errorf("%s: the manual says nothing about it", m)
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/configuration.md is not what types and manual say; write it with: go test ./federation/config -run Reference -update")
	}
}

const referenceHead = `# Configuration reference

Made from the types that read the file and from
[config.example.toml](../config.example.toml), which says the same in the order
in which one would write it. A test fails when this page is out of date.

A key that is left out means the stricter choice; unknown keys are errors.
Nothing is needed but a ` + "`[[caller]]` and a `[[server]]`" + `.

| value | written as |
|---|---|
| string | ` + "`\"text\"`" + ` |
| duration | ` + "`\"500ms\"`, `\"20s\"`, `\"5m\"`, `\"12h\"`, `\"90d\"`" + ` |
| size | ` + "`\"512KiB\"`, `\"2MiB\"`" + ` |
| reference | ` + "`\"env:NAME\"`, `\"file:/path\"`, `\"vault:name\"`" + `: where a secret is, never the secret |
`

// referencePage writes the page, and names the keys that the manual leaves unsaid.
func referencePage(manual string) (page string, missing []string) {
	said := readManual(manual)
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, table := range tablesOf(reflect.TypeFor[file](), "", false) {
		if len(table.keys) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", table.heading())
		if intro := said[table.path]; len(intro) > 0 {
			fmt.Fprintf(&b, "%s\n\n", strings.Join(intro, " "))
		}
		b.WriteString("| key | value | meaning |\n|---|---|---|\n")
		for _, k := range table.keys {
			text := said[table.path+"."+k.name]
			switch {
			case len(text) > 0:
			case table.path == "oidc.rule":
				text = []string{"as for `[[caller]]`"}
			case table.path == "listen.tls" || table.path == "server.alias":
				text = []string{"as above"}
			default:
				missing = append(missing, table.path+"."+k.name)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.name, k.kind, strings.Join(text, "<br>"))
		}
	}
	return b.String(), missing
}

type referenceTable struct {
	path string
	list bool
	keys []referenceKey
}

type referenceKey struct{ name, kind string }

func (t referenceTable) heading() string {
	if t.list {
		return "`[[" + t.path + "]]`"
	}
	return "`[" + t.path + "]`"
}

// tablesOf lists the table of a struct and those below it, in the order of the
// types. A table of two keys that stands within a line counts as keys.
func tablesOf(typ reflect.Type, path string, list bool) []referenceTable {
	table := referenceTable{path: path, list: list}
	var below []referenceTable
	keys := keysOf(typ)
	names := sortedKeys(keys)
	slices.SortStableFunc(names, func(a, b string) int { return slices.Compare(keys[a], keys[b]) })
	for _, name := range names {
		field := typ.FieldByIndex(keys[name]).Type
		inner := strings.TrimPrefix(path+"."+name, ".")
		kind := kindOfField(field)
		switch {
		case kind != "":
			table.keys = append(table.keys, referenceKey{name, kind})
		case field.Kind() == reflect.Slice:
			below = append(below, tablesOf(field.Elem(), inner, true)...)
		case field.Kind() == reflect.Map && kindOfField(field.Elem()) != "":
			below = append(below, referenceTable{path: inner, keys: []referenceKey{{"<name>", kindOfField(field.Elem())}}})
		case field.Kind() == reflect.Map:
			below = append(below, tablesOf(field.Elem(), inner+".<name>", false)...)
		default:
			below = append(below, tablesOf(field, inner, false)...)
		}
	}
	return append([]referenceTable{table}, below...)
}

// kindOfField is what a key's value looks like, empty for a table.
func kindOfField(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[text]():
		return "string"
	case reflect.TypeFor[flag]():
		return "`true` or `false`"
	case reflect.TypeFor[number]():
		return "integer"
	case reflect.TypeFor[words]():
		return "list of strings"
	case reflect.TypeFor[wordOrWords]():
		return "string or list of strings"
	case reflect.TypeFor[span]():
		return "duration"
	case reflect.TypeFor[size]():
		return "size"
	case reflect.TypeFor[secretText]():
		return "string or reference"
	case reflect.TypeFor[reference]():
		return "reference"
	}
	return ""
}

var (
	manualTable = regexp.MustCompile(`^(?:# )?\[\[?([a-z_.]+)\]\]?$`)
	manualKey   = regexp.MustCompile(`^(?:# )?("?[a-z_.]+"?) = (.*)$`)
	manualItem  = regexp.MustCompile(`^ *("[^"]+") {2,}`)
	manualNamed = regexp.MustCompile(`^delegation\.[a-z]+(\.grants\.[a-z]+)?$`)
)

// readManual collects what the manual says before or behind each key and before
// each table, by the path of the key or table.
func readManual(manual string) map[string][]string {
	said := map[string][]string{}
	var block, shared []string
	table, mode, between := "", "", false
	for line := range strings.Lines(manual) {
		line = strings.TrimRight(line, "\n")
		switch m := manualKey.FindStringSubmatch(line); {
		case m != nil:
			key, value, behind := m[1], m[2], ""
			if i := strings.Index(value, " # "); i >= 0 {
				value, behind = strings.TrimSpace(value[:i]), strings.TrimSpace(value[i+3:])
			}
			if key == "mode" {
				mode = strings.Trim(value, `"`)
			}
			if strings.HasPrefix(key, `"`) {
				key = "<name>"
			}
			path := table + "." + key
			if len(block) > 0 {
				shared = block
			}
			switch {
			case behind != "" && table == "server.auth":
				said[path] = append(said[path], cell("`"+mode+"`: "+behind))
			case behind != "":
				said[path] = append(said[path], cell(behind))
			case said[path] == nil && shared != nil && table != "oidc.rule":
				said[path] = paragraphs(shared)
			}
			block, between = nil, false
		case manualTable.MatchString(line):
			table = pathOf(manualTable.FindStringSubmatch(line)[1])
			if len(block) > 0 && said[table] == nil {
				said[table] = paragraphs(block)
			}
			block, shared, mode, between = nil, nil, "", false
		case strings.HasPrefix(line, "# ---"):
			block, shared, between = nil, nil, false
		case strings.HasPrefix(line, "# "):
			if between {
				block = nil
			}
			block, shared, between = append(block, line[2:]), nil, false
		default:
			between, shared = true, nil // an empty line ends what is said, unless a table follows
		}
	}
	return said
}

// pathOf puts <name> where the manual shows an example of a name.
func pathOf(table string) string {
	if !manualNamed.MatchString(table) {
		return table
	}
	if parts := strings.Split(table, "."); len(parts) > 2 {
		return "delegation.<name>.grants.<name>"
	}
	return "delegation.<name>"
}

// paragraphs joins lines to one cell each; a line that is set in or quoted at
// its start stands for itself, as in a list of values.
func paragraphs(lines []string) []string {
	var out []string
	open := false
	for _, line := range lines {
		item := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, `"`) && strings.Contains(line, "   ")
		if open && !item {
			out[len(out)-1] += " " + cell(line)
		} else {
			out = append(out, cell(manualItem.ReplaceAllString(line, "$1: ")))
		}
		open = !item
	}
	return out
}

// cell makes text safe for a table of Markdown.
func cell(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`).Replace(s)
}
