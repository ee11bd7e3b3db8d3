package catalog

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// ruleOf says what is wanted, in words that a model can act on.
func ruleOf(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "must be " + typeNames(k.Want) + ", is " + article(k.Got)
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + value(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + quote(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %s, has %d", count(k.Want, "character"), k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %s, has %d", count(k.Want, "character"), k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %s, has %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %s, has %d", count(k.Want, "item"), k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %s, has %d", count(k.Want, "member"), k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %s, has %d", count(k.Want, "member"), k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %s too many", count(k.Count, "item"))
	case *kind.UniqueItems:
		return fmt.Sprintf("must not repeat an item, but items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "must contain at least one item of the wanted kind"
	case *kind.MinContains:
		return fmt.Sprintf("must contain at least %s of the wanted kind", count(k.Want, "item"))
	case *kind.MaxContains:
		return fmt.Sprintf("must contain at most %s of that kind", count(k.Want, "item"))
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be greater than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.Not:
		return "is of a form that is not allowed"
	case *kind.RefCycle:
		return "cannot be checked, because the schema refers to itself without end"
	}
	return "is not what the schema allows"
}

func typeNames(want []string) string {
	names := make([]string, len(want))
	for i, t := range want {
		names[i] = article(t)
	}
	return strings.Join(names, " or ")
}

func article(name string) string {
	switch name {
	case "null":
		return "null"
	case "array", "object", "integer":
		return "an " + name
	}
	return "a " + name
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func quote(s string) string { return fmt.Sprintf("%q", oneLine(s, 120)) }

func value(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "a certain value"
	}
	return oneLine(strings.TrimSuffix(b.String(), "\n"), 120)
}

func values(vs []any) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > 300 || i == 20 {
			fmt.Fprintf(&b, "… (%d in all)", len(vs))
			break
		}
		b.WriteString(value(v))
	}
	return b.String()
}

// number writes a bound as a decimal where that is exact.
func number(r *big.Rat) string {
	if r.IsInt() {
		return clipNumber(r.Num().String())
	}
	if n, exact := r.FloatPrec(); exact {
		return clipNumber(r.FloatString(n))
	}
	return clipNumber(r.RatString())
}

func clipNumber(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
