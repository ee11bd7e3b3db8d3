package config

import (
	"os"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

// Whatever is in the file, loading ends and each problem stands on a line that
// the file has. The place of every key that the parser knows is found.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile(exampleFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(example))
	f.Add("a.'b' = '''x'''\n[[\"c d\"]]\ne = [1, {f = \"\"\"\\\"\"\"\"}]\n[c.\"\\u0067\"]\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, problems := Parse("fuzz.toml", []byte(text))
		for _, p := range problems {
			if p.Line < 0 || p.Line > 1+strings.Count(text, "\n") {
				t.Errorf("problem on line %d: %s", p.Line, p)
			}
			if strings.Contains(p.String(), "\n") {
				t.Errorf("problem of several lines: %q", p)
			}
		}
		var tree map[string]any
		if _, err := toml.Decode(text, &tree); err == nil {
			at := indexLines([]byte(text))
			wantLines(t, at, tree, "")
		}
	})
}

func wantLines(t *testing.T, at lines, tree map[string]any, p path) {
	for key, v := range tree {
		if _, ok := at[string(p.key(key))]; !ok {
			t.Errorf("no line for %q", p.key(key))
		}
		if inner, ok := v.(map[string]any); ok {
			wantLines(t, at, inner, p.key(key))
		}
	}
}
