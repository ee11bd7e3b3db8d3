package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const testdata = "../../testdata/config"

// Every file of bad holds one mistake. Its first line says which message that
// mistake gives, and it may give no other.
func TestBadFiles(t *testing.T) {
	for name, data := range readDir(t, "bad") {
		t.Run(name, func(t *testing.T) {
			first, _, _ := strings.Cut(string(data), "\n")
			want, ok := strings.CutPrefix(first, "# want: ")
			if !ok {
				t.Fatalf("first line %q does not say what is wanted", first)
			}
			c, problems := Parse("gatehouse.toml", data)
			if c != nil {
				t.Errorf("a configuration with errors was handed out")
			}
			if got := problems.Errors().Error(); got != want {
				t.Errorf("errors:\n got %s\nwant %s", got, want)
			}
			if strings.Contains(problems.Error(), "hunter2") {
				t.Errorf("the secret is in the message: %s", problems.Error())
			}
		})
	}
}

// Every file of good loads; the comments at its top say which warnings it gives.
func TestGoodFiles(t *testing.T) {
	for name, data := range readDir(t, "good") {
		t.Run(name, func(t *testing.T) {
			var want []string
			for line := range strings.Lines(string(data)) {
				if w, ok := strings.CutPrefix(line, "# warning: "); ok {
					want = append(want, strings.TrimSuffix(w, "\n"))
				}
			}
			c, problems := Parse("gatehouse.toml", data)
			if c == nil {
				t.Fatalf("does not load: %s", problems.Error())
			}
			if got := problems.Error(); got != strings.Join(want, "\n") {
				t.Errorf("warnings:\n got %s\nwant %s", got, strings.Join(want, "\n"))
			}
		})
	}
}

func readDir(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata, dir, "*.toml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	files := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(p), ".toml")] = b
	}
	return files
}
