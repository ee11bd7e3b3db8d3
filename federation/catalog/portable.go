package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"gatehouse/gate/rawjson"
)

// The portable subset: what every model API that was looked at takes.
const (
	portableDepth = 12
	portableSize  = 16 << 10
)

var (
	portableRoot = keywords("type", "description", "properties", "required", "additionalProperties", "allOf", "anyOf", "oneOf", "not")

	// Members of a root that say nothing about values. Leaving them out changes
	// nothing that a model may send.
	rootNotes = keywords("$schema", "$id", "id", "$comment", "$anchor", "title", "examples", "default", "deprecated", "readOnly", "writeOnly")

	unportable = keywords("$dynamicRef", "$recursiveRef", "if", "then", "else", "patternProperties", "propertyNames",
		"dependentSchemas", "dependentRequired", "unevaluatedProperties")

	definitions = keywords("$defs", "definitions")
)

// portable returns an input schema in the portable subset, or the reason why it
// has no such form. Local references are replaced by what they refer to; all
// else stays in its order, numbers as written.
func portable(raw []byte) (out []byte, reason string) {
	in := inliner{root: raw, siblingsIgnored: legacyReferences(raw), open: make(map[string]bool), targets: make(map[string][]byte)}
	if err := in.schema(raw, true); err != nil {
		return nil, err.Error()
	}
	if depth := depthOf(in.out); depth > portableDepth {
		return nil, fmt.Sprintf("its schema nests %d levels deep, %d are portable", depth, portableDepth)
	}
	return in.out, ""
}

// legacyReferences reports whether the schema's dialect ignores what stands
// beside a $ref.
func legacyReferences(raw []byte) bool {
	members, err := rawjson.Object(raw)
	if err != nil {
		return false
	}
	dialect, _ := rawjson.Get(members, "$schema")
	return strings.Contains(string(dialect), "/draft-0")
}

type inliner struct {
	root            []byte
	siblingsIgnored bool
	open            map[string]bool   // references being replaced
	targets         map[string][]byte // what references refer to
	out             []byte
}

func (in *inliner) add(text string) error {
	in.out = append(in.out, text...)
	if len(in.out) > portableSize {
		return fmt.Errorf("its schema has more than %d bytes in portable form", portableSize)
	}
	return nil
}

// schema appends one schema. Its recursion ends: nesting was bounded when the
// schema was accepted, and no reference is replaced inside itself.
func (in *inliner) schema(raw []byte, root bool) error {
	if !rawjson.IsObject(raw) {
		return in.add(string(raw))
	}
	members, err := rawjson.Object(raw)
	if err != nil {
		return err
	}
	if ref, ok := rawjson.Get(members, "$ref"); ok {
		return in.reference(ref, members, root)
	}
	if err := in.add("{"); err != nil {
		return err
	}
	if err := in.members(members, root, false); err != nil {
		return err
	}
	return in.add("}")
}

// members appends the members of a schema that are passed on, with a comma in
// front when something went before.
func (in *inliner) members(members []rawjson.Member, root, more bool) error {
	for _, m := range members {
		switch {
		case m.Key == "$ref", definitions[m.Key], root && rootNotes[m.Key]:
			continue
		case unportable[m.Key]:
			return fmt.Errorf("its schema uses %s", m.Key)
		case root && !portableRoot[m.Key]:
			return fmt.Errorf("its schema has %q at its root", oneLine(m.Key, 40))
		case root && m.Key == "additionalProperties" && rawjson.IsObject(m.Value):
			return errors.New("its schema has an additionalProperties at its root that is no boolean")
		}
		sep := ""
		if more {
			sep = ","
		}
		more = true
		if err := in.add(sep + string(m.Name) + ":"); err != nil {
			return err
		}
		if err := in.value(m); err != nil {
			return err
		}
	}
	return nil
}

// value appends what stands under a keyword.
func (in *inliner) value(m rawjson.Member) error {
	switch {
	case oneSchema[m.Key], schemaOrList[m.Key] && rawjson.IsObject(m.Value):
		return in.schema(m.Value, false)
	case listOfSchemas[m.Key], schemaOrList[m.Key] && rawjson.IsArray(m.Value):
		return in.list(m.Value)
	case namedSchemas[m.Key]:
		return in.named(m.Value)
	}
	return in.add(string(m.Value))
}

func (in *inliner) list(raw []byte) error {
	elements, err := rawjson.Array(raw)
	if err != nil {
		return err
	}
	sep := "["
	for _, e := range elements {
		if err := in.add(sep); err != nil {
			return err
		}
		if err := in.schema(e, false); err != nil {
			return err
		}
		sep = ","
	}
	if len(elements) == 0 {
		return in.add("[]")
	}
	return in.add("]")
}

func (in *inliner) named(raw []byte) error {
	members, err := rawjson.Object(raw)
	if err != nil {
		return err
	}
	sep := "{"
	for _, m := range members {
		if err := in.add(sep + string(m.Name) + ":"); err != nil {
			return err
		}
		if err := in.schema(m.Value, false); err != nil {
			return err
		}
		sep = ","
	}
	if len(members) == 0 {
		return in.add("{}")
	}
	return in.add("}")
}

// reference appends what a $ref refers to. What stands beside it is joined by
// allOf, unless the dialect ignores it.
func (in *inliner) reference(ref []byte, members []rawjson.Member, root bool) error {
	if root {
		return errors.New("its schema has a $ref at its root")
	}
	pointer, err := rawjson.String(ref)
	if err != nil {
		return errors.New("its schema has a $ref that is no string")
	}
	if in.open[pointer] {
		return fmt.Errorf("its reference %q is recursive", oneLine(pointer, 80))
	}
	target, known := in.targets[pointer]
	if !known {
		target = rawLookup(in.root, pointer)
		in.targets[pointer] = target
	}
	if target == nil {
		return fmt.Errorf("its reference %q is not a plain path inside the schema", oneLine(pointer, 80))
	}
	in.open[pointer] = true
	defer delete(in.open, pointer)
	if in.siblingsIgnored || len(members) == 1 {
		return in.schema(target, false)
	}
	if _, taken := rawjson.Get(members, "allOf"); taken {
		return errors.New("its schema has an allOf beside a $ref")
	}
	if err := in.add(`{"allOf":[`); err != nil {
		return err
	}
	if err := in.schema(target, false); err != nil {
		return err
	}
	if err := in.add("]"); err != nil {
		return err
	}
	if err := in.members(members, false, true); err != nil {
		return err
	}
	return in.add("}")
}

// rawLookup is lookup on raw bytes.
func rawLookup(raw []byte, ref string) []byte {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return nil
	}
	for _, token := range strings.Split(path, "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch {
		case rawjson.IsObject(raw):
			members, err := rawjson.Object(raw)
			if err != nil {
				return nil
			}
			if raw, ok = rawjson.Get(members, token); !ok {
				return nil
			}
		case rawjson.IsArray(raw):
			elements, err := rawjson.Array(raw)
			i, bad := strconv.Atoi(token)
			if err != nil || bad != nil || i < 0 || i >= len(elements) {
				return nil
			}
			raw = elements[i]
		default:
			return nil
		}
	}
	return raw
}
