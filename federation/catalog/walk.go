package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
)

// How the keywords of all dialects together hold subschemas. A property that is
// *named* like a keyword is no keyword: walking by these tables never looks for
// keywords among names.
var (
	oneSchema = keywords("not", "if", "then", "else", "additionalProperties", "additionalItems", "contains",
		"propertyNames", "unevaluatedProperties", "unevaluatedItems", "contentSchema")
	listOfSchemas  = keywords("allOf", "anyOf", "oneOf", "prefixItems")
	namedSchemas   = keywords("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
	schemaOrList   = keywords("items")
	namedOrStrings = keywords("dependencies")
	references     = keywords("$ref", "$dynamicRef", "$recursiveRef")
)

func keywords(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// A subschema is one schema inside another, with how it is reached.
type subschema struct {
	keyword string
	key     string // the name or index under the keyword, "" for one schema
	schema  any
}

// subschemas lists what obj holds at the places where a schema belongs, in no
// particular order.
func subschemas(obj map[string]any) []subschema {
	var out []subschema
	for k, v := range obj {
		switch {
		case oneSchema[k]:
			out = append(out, subschema{k, "", v})
		case listOfSchemas[k], schemaOrList[k]:
			if list, ok := v.([]any); ok {
				for i, s := range list {
					out = append(out, subschema{k, strconv.Itoa(i), s})
				}
			} else if schemaOrList[k] {
				out = append(out, subschema{k, "", v})
			}
		case namedSchemas[k], namedOrStrings[k]:
			named, _ := v.(map[string]any)
			for name, s := range named {
				if _, strings := s.([]any); !strings || !namedOrStrings[k] {
					out = append(out, subschema{k, name, s})
				}
			}
		}
	}
	return out
}

// collect returns every schema object of doc, those included that only a local
// reference makes a schema, and how many of the latter there are.
func collect(doc map[string]any) (all []map[string]any, odd int, err error) {
	seen := make(map[uintptr]bool)
	var targets []map[string]any
	add := func(v any) bool {
		obj, ok := v.(map[string]any)
		if !ok {
			return false
		}
		at := reflect.ValueOf(obj).Pointer()
		if seen[at] {
			return false
		}
		seen[at] = true
		all = append(all, obj)
		return true
	}
	drain := func(from int) error {
		for i := from; i < len(all); i++ {
			if len(all) > maxSubschemas {
				return fmt.Errorf("it has more than %d subschemas", maxSubschemas)
			}
			for _, s := range subschemas(all[i]) {
				add(s.schema)
			}
			if ref, ok := all[i]["$ref"].(string); ok {
				if target, ok := lookup(doc, ref).(map[string]any); ok {
					targets = append(targets, target)
				}
			}
		}
		return nil
	}
	add(doc)
	if err := drain(0); err != nil {
		return nil, 0, err
	}
	for i := 0; i < len(targets); i++ {
		from := len(all)
		if !add(targets[i]) {
			continue
		}
		if odd++; odd > maxOddReferences {
			return nil, 0, errors.New("too many of its references point to places where no schema belongs")
		}
		if err := drain(from); err != nil {
			return nil, 0, err
		}
	}
	return all, odd, nil
}

// lookup resolves a reference of the form "#", "#/…" in doc by RFC 6901. It
// returns nil for every other reference and for one that leads nowhere.
func lookup(doc map[string]any, ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	path, err := url.PathUnescape(path)
	if err != nil || path != "" && path[0] != '/' {
		return nil
	}
	if path == "" {
		return doc
	}
	var v any = doc
	for _, token := range strings.Split(path, "/")[1:] {
		v = child(v, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
		if v == nil {
			return nil
		}
	}
	return v
}

func child(v any, token string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[token]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
