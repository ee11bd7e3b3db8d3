package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

const exampleFile = "../../config.example.toml"

func TestExampleLoads(t *testing.T) {
	c, problems := Load(exampleFile)
	if c == nil || len(problems) > 0 {
		t.Fatalf("the manual has problems:\n%s", problems.Error())
	}
}

// commentedKey is a line that would be configuration without its "# ".
var commentedKey = regexp.MustCompile(`(?m)^# (\[\[?[a-z_.]+\]\]?|["a-z_.]+ = .*)$`)

// The manual with every key switched on loads as well, so no example in it is
// wrong, and it holds every key that the format has.
func TestExampleHoldsEveryKey(t *testing.T) {
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	text := commentedKey.ReplaceAllString(string(data), "$1")
	text = strings.Replace(text, "trust_zone = \"external_eu\"\n", "", 1) // shown again as a list
	c, problems := Parse("config.example.toml", []byte(text))
	if c == nil || len(problems) > 0 {
		t.Fatalf("the manual with everything switched on has problems:\n%s", problems.Error())
	}
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, reflect.TypeFor[file](), []any{tree}, "")
}

// wantKeys wants every key of the struct t in at least one of the trees.
func wantKeys(t *testing.T, typ reflect.Type, trees []any, at string) {
	for key, index := range keysOf(typ) {
		var inner []any
		for _, tree := range trees {
			if v, ok := tree.(map[string]any)[key]; ok {
				inner = append(inner, v)
			}
		}
		if len(inner) == 0 {
			t.Errorf("%s%s is not in the manual", at, key)
			continue
		}
		field := typ.FieldByIndex(index).Type
		switch {
		case reflect.PointerTo(field).Implements(reflect.TypeFor[decodable]()):
		case field.Kind() == reflect.Slice:
			wantKeys(t, field.Elem(), elements(inner), at+key+".")
		case field.Kind() == reflect.Map && field.Elem().Kind() == reflect.Struct:
			if reflect.PointerTo(field.Elem()).Implements(reflect.TypeFor[decodable]()) {
				break
			}
			var named []any
			for _, m := range inner {
				for _, v := range m.(map[string]any) {
					named = append(named, v)
				}
			}
			wantKeys(t, field.Elem(), named, at+key+".<name>.")
		default:
			wantKeys(t, field, inner, at+key+".")
		}
	}
}

func elements(arrays []any) []any {
	var out []any
	for _, a := range arrays {
		list, _ := tables(a)
		for _, e := range list {
			out = append(out, e)
		}
	}
	return out
}
