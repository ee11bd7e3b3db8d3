package catalog

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validationBudget is how many steps one validation may take. A step is about a
// subschema applied to a value; the largest honest calls take some thousands.
// Without it a schema of a few hundred bytes, or a few megabytes of arguments,
// would keep a core busy for as long as they like.
const validationBudget = 250_000

var errTooCostly = errors.New("checking takes more steps than are allowed")

// A validator is a compiled schema. It keeps count of the steps of the one
// validation that runs at a time.
type validator struct {
	unchecked []string // patterns on which we have no opinion

	mu     sync.Mutex
	schema *jsonschema.Schema // nil: nothing can be checked
	left   int
}

const schemaURL = "mem:///schema"

// noLoader refuses to load anything.
type noLoader struct{}

var errOutside = errors.New("outside the schema")

func (noLoader) Load(string) (any, error) { return nil, errOutside }

// compile compiles doc, which passed decodeSchema and is used up by it. The
// error is a reason for an operator. It never panics.
func compile(doc map[string]any) (*validator, error) {
	all, _, err := collect(doc)
	if err != nil {
		return nil, err
	}
	if err := checkNumbers(doc, ""); err != nil {
		return nil, err
	}
	for _, obj := range all {
		for keyword := range references {
			if ref, ok := obj[keyword].(string); ok && strings.Contains(ref, "://json-schema.org/") {
				return nil, outside(ref)
			}
		}
		if f, ok := obj["format"]; ok {
			if _, ok := f.(string); !ok {
				return nil, errors.New("one of its formats is not a string")
			}
		}
	}
	v := &validator{unchecked: unmatchable(all)}
	if v.schema, err = v.build(doc, all); err != nil {
		return nil, schemaReason(err)
	}
	if len(v.unchecked) > 0 {
		loosen(all)
		// What is left may refer to a place that was taken away; then there is
		// nothing we can check.
		v.schema, _ = v.build(doc, all)
	}
	return v, nil
}

// build compiles doc. Every schema object gets a format that does nothing but
// count: the library asks formats before it descends, which makes them the one
// place where a validation can be stopped. Formats are annotations here, so the
// place is free.
func (v *validator) build(doc map[string]any, all []map[string]any) (schema *jsonschema.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			schema, err = nil, fmt.Errorf("the compiler gave up: %v", p)
		}
	}()
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(v.pattern)
	c.AssertFormat()
	known := make(map[string]bool)
	for _, obj := range all {
		if len(obj) == 0 {
			continue
		}
		step, element := cost(obj)
		name := fmt.Sprintf("step-%d-%d", step, element)
		obj["format"] = name
		if !known[name] {
			known[name] = true
			c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(value any) error {
				v.charge(step + element*size(value))
				return nil
			}})
		}
	}
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// cost is what applying obj costs once, and for each element of the value,
// beyond what its subschemas count for themselves.
func cost(obj map[string]any) (step, element int) {
	step = 1
	for _, s := range subschemas(obj) {
		n := 1
		if sub, ok := s.schema.(map[string]any); ok {
			if values, ok := sub["enum"].([]any); ok {
				n += len(values) / 8
			}
		}
		step += n
		switch s.keyword {
		case "items", "contains", "additionalItems", "additionalProperties", "patternProperties", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties":
			element += n
		}
	}
	if obj["uniqueItems"] == true {
		element++
	}
	return step, element
}

func size(value any) int {
	switch value := value.(type) {
	case map[string]any:
		return len(value)
	case []any:
		return len(value)
	}
	return 0
}

func (v *validator) charge(steps int) {
	if v.left -= steps; v.left < 0 {
		panic(errTooCostly)
	}
}

// check validates a decoded value. It returns a *jsonschema.ValidationError, or
// another error when the validation did not come to its end.
func (v *validator) check(value any, depth int) (err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.schema == nil {
		return nil
	}
	v.left = validationBudget / (4 + depth) * 4 // the library copies the whole path for each error
	defer func() {
		switch p := recover(); {
		case p == nil:
		case p == any(errTooCostly):
			err = errTooCostly
		default:
			err = fmt.Errorf("the validator gave up: %v", p)
		}
	}()
	return v.schema.Validate(value)
}

// endless reports whether the schema refers to itself so that not even an empty
// object is judged.
func (v *validator) endless() bool {
	var e *jsonschema.ValidationError
	return errors.As(v.check(map[string]any{}, 1), &e) && circular(e)
}

func outside(ref string) error {
	return fmt.Errorf("it refers to %q, which is outside the schema; nothing is fetched", oneLine(ref, 120))
}

// schemaReason puts a compiler's error into words for an operator.
func schemaReason(err error) error {
	var load *jsonschema.LoadURLError
	var invalid *jsonschema.SchemaValidationError
	var nowhere *jsonschema.JSONPointerNotFoundError
	var pointer *jsonschema.InvalidJsonPointerError
	var anchor *jsonschema.AnchorNotFoundError
	switch {
	case errors.As(err, &load):
		return outside(strings.TrimPrefix(load.URL, "mem:///"))
	case errors.As(err, &nowhere):
		return fmt.Errorf("its reference %q leads nowhere", oneLine(fragment(nowhere.URL), 120))
	case errors.As(err, &pointer):
		return fmt.Errorf("its reference %q is no JSON pointer", oneLine(fragment(pointer.URL), 120))
	case errors.As(err, &anchor):
		return fmt.Errorf("its reference %q leads nowhere", oneLine(fragment(anchor.Reference), 120))
	case errors.As(err, &invalid):
		return invalidSchema(invalid)
	}
	return fmt.Errorf("it does not compile: %s", oneLine(strings.ReplaceAll(err.Error(), "mem:///", ""), 200))
}

func invalidSchema(e *jsonschema.SchemaValidationError) error {
	at := strings.TrimPrefix(fragment(e.URL), "#")
	var found *jsonschema.ValidationError
	if !errors.As(e.Err, &found) {
		return fmt.Errorf("it is no valid schema at %q", oneLine(at, 120))
	}
	p := problems(found)[0]
	return fmt.Errorf("it is no valid schema: %s %s", oneLine(at+p.pointer, 120), oneLine(p.rule, 160))
}

func fragment(url string) string {
	if i := strings.IndexByte(url, '#'); i >= 0 {
		return url[i:]
	}
	return url
}
