package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"gatehouse/federation/config"
)

// TestLocate finds the state of files that would not load.
func TestLocate(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"": filepath.Join(dir, "gatehouse.db"),
		"[state]\npath = \"other.db\"\nnonsense = 1\n":     filepath.Join(dir, "other.db"),
		"[state]\npath = \"/var/lib/../x.db\"\n[[server]]": "/var/x.db",
		"[state\npath = \"other.db\"\n":                    filepath.Join(dir, "gatehouse.db"),
		"[state]\npath = 7\n":                              filepath.Join(dir, "gatehouse.db"),
	} {
		path := filepath.Join(dir, "gatehouse.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := config.Locate(path); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := config.Locate(filepath.Join(dir, "none.toml")); got != filepath.Join(dir, "gatehouse.db") {
		t.Errorf("no file: got %s", got)
	}
}
