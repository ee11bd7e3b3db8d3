package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"gatehouse/gate/rawjson"
)

// Bounds on a schema. Those on subschemas and odd references keep compiling
// linear in practice: the compiler looks every subschema up in a list, and
// copies its tables for each reference to a place where no subschema belongs.
const (
	maxSchema        = 128 << 10
	maxSchemaDepth   = 64
	maxSubschemas    = 4096
	maxOddReferences = 32
)

// dialects are the values of $schema that we can compile, without the scheme
// and an empty fragment.
var dialects = map[string]bool{
	"json-schema.org/draft/2020-12/schema": true,
	"json-schema.org/draft/2019-09/schema": true,
	"json-schema.org/draft-07/schema":      true,
	"json-schema.org/draft-06/schema":      true,
	"json-schema.org/draft-04/schema":      true,
}

// checkSchema judges a schema as it was received: usable as it stands or not at
// all. The unchecked patterns are those that Go cannot match.
func checkSchema(raw []byte) (unchecked []string, err error) {
	doc, err := decodeSchema(raw)
	if err != nil {
		return nil, err
	}
	v, err := compile(doc)
	if err != nil {
		return nil, err
	}
	if v.endless() {
		return nil, errors.New("it refers to itself without end, so that no value is ever valid")
	}
	return v.unchecked, nil
}

// checkInputSchema is checkSchema with the rules for the arguments of a tool.
func checkInputSchema(raw []byte) (unchecked []string, err error) {
	if !rawjson.IsObject(raw) {
		return nil, fmt.Errorf("it is %s, not an object", rawjson.Describe(raw))
	}
	if t := rootType(raw); t != `"object"` {
		if t == "" {
			return nil, errors.New(`it has no "type": "object" at its root`)
		}
		return nil, fmt.Errorf(`the type at its root is %s, not "object"`, oneLine(t, 40))
	}
	return checkSchema(raw)
}

// rootType is the raw value of the root's type, or "".
func rootType(raw []byte) string {
	members, err := rawjson.Object(raw)
	if err != nil {
		return ""
	}
	t, _ := rawjson.Get(members, "type")
	return string(t)
}

// decodeSchema checks the bounds that must hold before anything may recurse
// into the schema, and decodes it with its numbers as written.
func decodeSchema(raw []byte) (map[string]any, error) {
	switch {
	case len(raw) > maxSchema:
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", len(raw), maxSchema)
	case !rawjson.IsObject(raw):
		return nil, fmt.Errorf("it is %s, not an object", rawjson.Describe(raw))
	}
	if err := rawjson.Check(raw); err != nil {
		var e *rawjson.Error
		if !errors.As(err, &e) || e.Kind != rawjson.TooDeep {
			return nil, fmt.Errorf("it is not strict JSON: %v", err)
		}
	}
	if depth := depthOf(raw); depth > maxSchemaDepth {
		return nil, fmt.Errorf("it nests %d levels deep, the limit is %d", depth, maxSchemaDepth)
	}
	if !bytes.Equal(raw, rawjson.FixSurrogates(raw)) {
		return nil, errors.New("it holds half a surrogate pair, which strict clients refuse")
	}
	doc, err := decodeNumbers(raw)
	if err != nil {
		return nil, fmt.Errorf("it is not strict JSON: %v", err)
	}
	if dialect, ok := doc["$schema"].(string); ok {
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(dialect, "#"), "https://"), "http://")
		if !dialects[name] {
			return nil, fmt.Errorf("its dialect %q is not one of 2020-12, 2019-09, draft-07, draft-06, draft-04", oneLine(dialect, 100))
		}
	}
	return doc, nil
}

func decodeNumbers(raw []byte) (map[string]any, error) {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return doc, d.Decode(&doc)
}

// depthOf counts the levels of objects and arrays in valid JSON.
func depthOf(raw []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest
}
