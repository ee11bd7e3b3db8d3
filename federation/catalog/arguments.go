package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// maxNumber bounds a number literal and its exponent. The validator turns
// numbers into exact fractions, which for 1e1000000 takes a third of a million
// digits; nothing an API means looks like that.
const maxNumber = 4096

// A checker checks arguments against a tool's input schema. The schema is
// compiled when the first call needs it, and not for each of ten thousand tools
// that nobody calls; that it does compile was seen at import.
type checker struct {
	schema  []byte
	compile func() (*validator, error)
}

func newChecker(schema []byte) *checker {
	return &checker{schema: schema, compile: sync.OnceValues(func() (*validator, error) {
		doc, err := decodeSchema(schema)
		if err != nil {
			return nil, err
		}
		return compile(doc)
	})}
}

// Check implements gate.ArgumentChecker.
func (c *checker) Check(raw []byte) error {
	args, depth, err := decodeArguments(raw)
	if err != nil {
		return err
	}
	v, err := c.compile()
	if err != nil {
		return &gate.ArgumentError{Rule: "the tool's schema cannot be used, so no call of it can be checked"}
	}
	var invalid *jsonschema.ValidationError
	switch err := v.check(args, depth); {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return argumentError(problems(invalid))
	case errors.Is(err, errTooCostly):
		return &gate.ArgumentError{Rule: "these take too long to check; send fewer or smaller values"}
	}
	return &gate.ArgumentError{Rule: "these cannot be checked against the tool's schema"}
}

// decodeArguments reads raw in one strict pass, which is most of what a large
// call costs here.
func decodeArguments(raw []byte) (args map[string]any, depth int, err error) {
	if raw == nil {
		return map[string]any{}, 1, nil
	}
	value, depth, err := rawjson.Decode(raw)
	if err != nil {
		rule := "must be one strict JSON object"
		var e *rawjson.Error
		if errors.As(err, &e) {
			switch e.Kind {
			case rawjson.DuplicateKey:
				rule = "must not name a member twice: " + e.Text
			case rawjson.TooDeep:
				rule = fmt.Sprintf("must not nest deeper than %d levels", rawjson.MaxDepth)
			default:
				rule += ": " + e.Error()
			}
		}
		return nil, 0, &gate.ArgumentError{Rule: oneLine(rule, 300)}
	}
	args, ok := value.(map[string]any)
	if !ok {
		return nil, 0, &gate.ArgumentError{Rule: "must be an object, is " + rawjson.Describe(raw)}
	}
	return args, depth, checkNumbers(args, "")
}

// checkNumbers refuses numbers that are too large to reckon with exactly. Depth
// was bounded before.
func checkNumbers(v any, at string) error {
	switch v := v.(type) {
	case json.Number:
		if _, exponent, ok := strings.Cut(strings.ToLower(string(v)), "e"); len(v) <= maxNumber {
			if !ok {
				return nil
			}
			if n, err := strconv.Atoi(exponent); err == nil && n <= maxNumber && n >= -maxNumber {
				return nil
			}
		}
		return &gate.ArgumentError{Pointer: at, Rule: fmt.Sprintf("must be a number of at most %d digits and an exponent within %d", maxNumber, maxNumber)}
	case map[string]any:
		for k, e := range v {
			if err := checkNumbers(e, at+"/"+pointerToken(k)); err != nil {
				return err
			}
		}
	case []any:
		for i, e := range v {
			switch e.(type) {
			case json.Number, map[string]any, []any:
				if err := checkNumbers(e, at+"/"+strconv.Itoa(i)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func pointerToken(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// argumentError names the first problem and up to four more, so that a model
// need not find them one call at a time.
func argumentError(found []problem) *gate.ArgumentError {
	e := &gate.ArgumentError{Pointer: found[0].pointer, Rule: found[0].rule}
	for i, p := range found[1:] {
		if i == 4 {
			e.Rule += fmt.Sprintf("; and %d more", len(found)-5)
			break
		}
		e.Rule += "; " + p.String()
	}
	return e
}

// A problem is one rule that a value breaks.
type problem struct{ pointer, rule string }

func (p problem) String() string {
	if p.pointer == "" {
		return p.rule
	}
	return p.pointer + " " + p.rule
}

// problems flattens a validation error to what is wrong where, in order of
// place. There is always at least one.
func problems(e *jsonschema.ValidationError) []problem {
	var out []problem
	flatten(e, &out)
	slices.SortFunc(out, func(a, b problem) int {
		if c := strings.Compare(a.pointer, b.pointer); c != 0 {
			return c
		}
		return strings.Compare(a.rule, b.rule)
	})
	out = slices.Compact(out)
	if len(out) == 0 {
		out = append(out, problem{rule: "is not what the schema allows"})
	}
	return out
}

func flatten(e *jsonschema.ValidationError, out *[]problem) {
	at := pointerOf(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*out = append(*out, problem{at + "/" + pointerToken(name), "is required"})
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			*out = append(*out, problem{at + "/" + pointerToken(name), "is required together with " + quote(k.Prop)})
		}
	case *kind.Dependency:
		for _, name := range k.Missing {
			*out = append(*out, problem{at + "/" + pointerToken(name), "is required together with " + quote(k.Prop)})
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*out = append(*out, problem{at + "/" + pointerToken(name), "is not a known property; leave it out"})
		}
	case *kind.FalseSchema:
		*out = append(*out, problem{at, "is not allowed; leave it out"})
	case *kind.AnyOf:
		*out = append(*out, problem{at, "must match one of several forms: " + alternatives(e.Causes, at)})
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			*out = append(*out, problem{at, "must match exactly one of several forms, and matches more than one"})
		} else {
			*out = append(*out, problem{at, "must match one of several forms: " + alternatives(e.Causes, at)})
		}
	case *kind.PropertyNames:
		rule := "is not an allowed property name"
		if len(e.Causes) > 0 {
			rule += ": it " + problems(e.Causes[0])[0].rule
		}
		*out = append(*out, problem{at + "/" + pointerToken(k.Property), rule})
	case *kind.Contains, *kind.MinContains:
		*out = append(*out, problem{at, ruleOf(e.ErrorKind)})
	default:
		if len(e.Causes) == 0 {
			*out = append(*out, problem{at, ruleOf(e.ErrorKind)})
		}
		for _, cause := range e.Causes {
			flatten(cause, out)
		}
	}
}

// alternatives names what keeps a value from matching each of the forms.
func alternatives(causes []*jsonschema.ValidationError, at string) string {
	var forms []string
	for i, cause := range causes {
		if i == 3 {
			forms = append(forms, fmt.Sprintf("or %d more", len(causes)-i))
			break
		}
		p := problems(cause)[0]
		p.pointer = strings.TrimPrefix(p.pointer, at)
		forms = append(forms, fmt.Sprintf("(%c) %s", 'a'+i, p))
	}
	return strings.Join(forms, ", ")
}

func pointerOf(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(pointerToken(t))
	}
	return b.String()
}

// circular reports whether e says that the schema refers to itself without end.
func circular(e *jsonschema.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(e.Causes, circular)
}
