package catalog

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gatehouse/gate"
)

const headerKeyword = "x-mcp-header"

// paramHeaders reads the x-mcp-header bindings of an input schema (MCP
// 2026-07-28, server/tools). An annotation anywhere but on a property that is
// reached from the root through "properties" alone is an error, wherever a
// schema can stand: below items, in a composition, in a definition, or at the
// end of a reference. A property that is merely named x-mcp-header is none.
func paramHeaders(doc map[string]any) ([]gate.ParamHeader, error) {
	b := bindings{placed: make(map[uintptr]bool), names: make(map[string]string)}
	if _, ok := doc[headerKeyword]; ok {
		return nil, errors.New(headerKeyword + " stands at the root, not on a property")
	}
	if err := b.properties(doc, nil); err != nil {
		return nil, err
	}
	all, _, err := collect(doc)
	if err != nil {
		return nil, err
	}
	for _, obj := range all {
		if _, ok := obj[headerKeyword]; ok && !b.placed[reflect.ValueOf(obj).Pointer()] {
			return nil, fmt.Errorf("%s %s stands where it is not reached through properties alone", headerKeyword, value(obj[headerKeyword]))
		}
	}
	slices.SortFunc(b.headers, func(x, y gate.ParamHeader) int { return strings.Compare(x.Name, y.Name) })
	return b.headers, nil
}

type bindings struct {
	headers []gate.ParamHeader
	placed  map[uintptr]bool  // schemas whose annotation is where it belongs
	names   map[string]string // lower-case header name -> property path
}

func (b *bindings) properties(obj map[string]any, path []string) error {
	named, _ := obj["properties"].(map[string]any)
	for name, s := range named {
		property, ok := s.(map[string]any)
		if !ok {
			continue
		}
		at := append(slices.Clone(path), name)
		if header, ok := property[headerKeyword]; ok {
			if err := b.bind(header, property["type"], at); err != nil {
				return err
			}
			b.placed[reflect.ValueOf(property).Pointer()] = true
		}
		if err := b.properties(property, at); err != nil {
			return err
		}
	}
	return nil
}

func (b *bindings) bind(header, kind any, path []string) error {
	where := quote(strings.Join(path, "."))
	name, ok := header.(string)
	if !ok || !httpToken(name) {
		return fmt.Errorf("%s of %s is %s, not an HTTP token", headerKeyword, where, value(header))
	}
	primitive, ok := primitiveType(kind)
	if !ok {
		return fmt.Errorf("%s of %s is on a property of type %s, not string, integer or boolean", headerKeyword, where, value(kind))
	}
	if other, taken := b.names[strings.ToLower(name)]; taken {
		first, second := min(other, where), max(other, where)
		return fmt.Errorf("%s %q is used twice, for %s and %s", headerKeyword, name, first, second)
	}
	b.names[strings.ToLower(name)] = where
	b.headers = append(b.headers, gate.ParamHeader{Name: name, Path: path, Type: primitive})
	return nil
}

// primitiveType is the one type that can travel in a header; null beside it
// means that the header may be absent.
func primitiveType(kind any) (string, bool) {
	if kinds, ok := kind.([]any); ok {
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(k any) bool { return k == "null" })
		if len(kinds) != 1 {
			return "", false
		}
		kind = kinds[0]
	}
	switch kind {
	case "string", "integer", "boolean":
		return kind.(string), true
	}
	return "", false
}

func httpToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) < 0
}
