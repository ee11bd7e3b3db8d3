package leak

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a test leaves is found under the test's name, without the files that hold
// what the operator put there.
func TestWhatIsLeftIsKept(t *testing.T) {
	folder, secret := t.TempDir(), Secret("client")
	t.Setenv(KeepVariable, folder)
	t.Run("part", func(t *testing.T) {
		dir := t.TempDir()
		Keep(t, dir, "vault.age")
		for name, text := range map[string]string{"state": "one", "deep/ledger": "two", "vault.age": secret} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		Write(t, "the output", "three ")
		Write(t, "the output", "four")
		Logger(t).Debug("five")
	})
	for name, want := range map[string]string{"state": "one", "deep/ledger": "two", "the_output": "three four", "debug.log": "five"} {
		text, err := os.ReadFile(filepath.Join(folder, t.Name(), "part", name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s holds %q, want %q: %v", name, text, want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, t.Name(), "part", "vault.age")); err == nil {
		t.Error("the operator's secret is kept")
	}
}

func TestSecretsBearTheMark(t *testing.T) {
	a, b := Secret("client"), Secret("client")
	if a == b || !strings.HasPrefix(a, "client-"+Mark) || !strings.HasPrefix(Token(), "gh_"+Mark) {
		t.Errorf("%q and %q", a, b)
	}
}
