package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Patterns are written for ECMA-262. Go's engine cannot run all of them, reads
// a few differently, and is the only one here that never backtracks. A pattern
// that it cannot run the way it is meant is left to the server: having no
// opinion on it is better than refusing what the server would accept.

// translatePattern writes an ECMA-262 pattern for Go's regexp, or reports false.
func translatePattern(p string) (string, bool) {
	var b strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\' && i+1 < len(p):
			i++
			skip, ok := translateEscape(&b, p[i:], class)
			if !ok {
				return "", false
			}
			i += skip
		case c == '[' && class && strings.HasPrefix(p[i:], "[:"):
			return "", false // a POSIX class here, two characters there
		case c == '[' && !class:
			class = true
			b.WriteByte(c)
		case c == ']' && class:
			class = false
			b.WriteByte(c)
		case c == '.' && !class:
			b.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		case c == '(' && strings.HasPrefix(p[i:], "(?") && !ecmaGroup(p[i:]):
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), true
}

// ecmaGroup reports whether a group that starts with "(?" is one that both
// sides know, or that Go refuses anyway. Python's named groups are let through:
// they mean what Go takes them for.
func ecmaGroup(p string) bool {
	return strings.HasPrefix(p, "(?:") || strings.HasPrefix(p, "(?<") || strings.HasPrefix(p, "(?P<") ||
		strings.HasPrefix(p, "(?=") || strings.HasPrefix(p, "(?!")
}

// ecmaSpace are the members of \s, as the inside of a class.
const ecmaSpace = `\t\n\v\f\r \x{a0}\x{feff}\p{Z}`

// translateEscape writes the escape whose second character begins p, and says
// how many more characters of p it took.
func translateEscape(b *strings.Builder, p string, class bool) (skip int, ok bool) {
	switch c := p[0]; c {
	case 's':
		if class {
			b.WriteString(ecmaSpace)
		} else {
			b.WriteString("[" + ecmaSpace + "]")
		}
	case 'S':
		if class {
			return 0, false
		}
		b.WriteString("[^" + ecmaSpace + "]")
	case 'u', 'x':
		n := 4
		if c == 'x' {
			n = 2
		}
		if len(p) <= n || strings.Trim(p[1:1+n], "0123456789abcdefABCDEF") != "" {
			return 0, false
		}
		if n == 4 && (p[1] == 'd' || p[1] == 'D') && p[2] >= '8' {
			return 0, false // half a surrogate pair; Go matches whole characters
		}
		fmt.Fprintf(b, `\x{%s}`, p[1:1+n])
		return n, true
	case 'd', 'D', 'w', 'W', 'b', 'B', 'p', 'P', 't', 'n', 'v', 'f', 'r':
		if class && c == 'b' {
			b.WriteString(`\x08`)
		} else {
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	default:
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 {
			return 0, false // a back reference, or an escape the two sides read differently
		}
		b.WriteByte('\\')
		b.WriteByte(c)
	}
	return 0, true
}

func compilePattern(p string) (*regexp.Regexp, bool) {
	translated, ok := translatePattern(p)
	if !ok {
		return nil, false
	}
	re, err := regexp.Compile(translated)
	return re, err == nil
}

// A checkedPattern counts what it matches against its validator's budget.
type checkedPattern struct {
	source string
	re     *regexp.Regexp
	v      *validator
}

func (p *checkedPattern) String() string { return p.source }

// MatchString implements jsonschema.Regexp.
func (p *checkedPattern) MatchString(s string) bool {
	p.v.charge(len(s) / 16)
	return p.re.MatchString(s)
}

// An uncheckedPattern has no opinion.
type uncheckedPattern string

func (p uncheckedPattern) String() string { return string(p) }

// MatchString implements jsonschema.Regexp.
func (uncheckedPattern) MatchString(string) bool { return true }

// pattern is the compiler's regexp engine. It accepts everything.
func (v *validator) pattern(p string) (jsonschema.Regexp, error) {
	if re, ok := compilePattern(p); ok {
		return &checkedPattern{p, re, v}, nil
	}
	return uncheckedPattern(p), nil
}

// unmatchable lists the patterns that Go cannot run, sorted.
func unmatchable(all []map[string]any) []string {
	var out []string
	note := func(p string) {
		if _, ok := compilePattern(p); !ok && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, obj := range all {
		if p, ok := obj["pattern"].(string); ok {
			note(p)
		}
		if named, ok := obj["patternProperties"].(map[string]any); ok {
			for p := range named {
				note(p)
			}
		}
	}
	slices.Sort(out)
	return out
}

// loosen takes from our own copy of a schema what would turn a pattern without
// opinion into a refusal: negations of it, choices by it, and the question which
// properties are left over when names cannot be matched.
func loosen(all []map[string]any) {
	names := false
	for _, obj := range all {
		named, _ := obj["patternProperties"].(map[string]any)
		for p := range named {
			if _, ok := compilePattern(p); !ok {
				delete(named, p)
				delete(obj, "additionalProperties")
				names = true
			}
		}
	}
	for _, obj := range all {
		for _, keyword := range []string{"not", "if", "then", "else", "maxContains"} {
			delete(obj, keyword)
		}
		if one, ok := obj["oneOf"]; ok {
			delete(obj, "oneOf")
			if _, taken := obj["anyOf"]; !taken {
				obj["anyOf"] = one
			}
		}
		if names {
			delete(obj, "unevaluatedProperties")
		}
	}
}
