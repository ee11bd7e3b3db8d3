package credential

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseReference(t *testing.T) {
	for _, good := range []string{"env:TOKEN", "env:_x1", "file:/run/secrets/a b", "vault:company-client", "vault:a.b_c"} {
		r, err := ParseReference(good)
		if err != nil || r.String() != good || r.IsZero() {
			t.Errorf("%q: %v, %v", good, r, err)
		}
		text, _ := r.MarshalText()
		var again Reference
		if err := again.UnmarshalText(text); err != nil || again != r {
			t.Errorf("%q does not survive its text form: %v", good, err)
		}
	}
	for _, bad := range []string{"", "Kp7MarkedSecretQz3", "${HUNTER2}", "$Kp7MarkedSecretQz3", "env:", "env:1X", "env:Kp7MarkedSecretQz3-x", "env:A B", "file:", "file:Kp7MarkedSecretQz3",
		"file:./Kp7MarkedSecretQz3", "file:/a\nKp7MarkedSecretQz3", "vault:", "vault:-Kp7MarkedSecretQz3", "vault:Kp7MarkedSecretQz3/x", "vault:" + strings.Repeat("a", 129),
		"Env:Kp7MarkedSecretQz3", "https://Kp7MarkedSecretQz3", "sha256:Kp7MarkedSecretQz3"} {
		r, err := ParseReference(bad)
		if err == nil {
			t.Errorf("%q was read as %v", bad, r)
		} else if strings.Contains(err.Error(), "Kp7MarkedSecretQz3") {
			t.Errorf("the error repeats what may be the secret: %v", err)
		}
	}
	if _, err := ParseReference("Kp7MarkedSecretQz3"); !errors.Is(err, ErrLiteral) {
		t.Errorf("a literal is called %v", err)
	}
}

type keeper map[string]string

func (k keeper) Reveal(_ context.Context, name string) (Secret, error) {
	if v, ok := k[name]; ok {
		return SecretString(v), nil
	}
	return Secret{}, errors.New("vault:" + name + " is not in the vault")
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	environment := map[string]string{"GOOD": "Kp7MarkedSecretQz3", "EMPTY": "", "CRLF": "a\r\nX: Kp7MarkedSecretQz3", "NUL": "a\x00b", "TRAILING": "Kp7MarkedSecretQz3 "}
	r := &Resolver{
		Vault:     keeper{"good": "Kp7MarkedSecretQz3", "lines": "a\nb"},
		LookupEnv: func(name string) (string, bool) { v, ok := environment[name]; return v, ok },
	}
	for _, test := range []struct{ ref, want, problem string }{
		{"env:GOOD", "Kp7MarkedSecretQz3", ""},
		{"env:UNSET", "", "env:UNSET: the variable UNSET is not set"},
		{"env:EMPTY", "", "env:EMPTY: the variable EMPTY is empty"},
		{"env:CRLF", "", "env:CRLF: holds a line end or another control character, which no header can carry"},
		{"env:NUL", "", "env:NUL: holds a line end or another control character, which no header can carry"},
		{"env:TRAILING", "", "env:TRAILING: begins or ends with a space; the other side would read another value"},
		{write("plain", "Kp7MarkedSecretQz3", 0o600), "Kp7MarkedSecretQz3", ""},
		{write("newline", "Kp7MarkedSecretQz3\n", 0o400), "Kp7MarkedSecretQz3", ""},
		{write("crlf", "Kp7MarkedSecretQz3\r\n", 0o600), "Kp7MarkedSecretQz3", ""},
		{write("two", "Kp7MarkedSecretQz3\n\n", 0o600), "", "holds a line end or another control character, which no header can carry"},
		{write("empty", "\n", 0o600), "", "is empty"},
		{write("group", "Kp7MarkedSecretQz3", 0o640), "", "has mode 0640, open to others; chmod 600 " + dir + "/group"},
		{write("world", "Kp7MarkedSecretQz3", 0o604), "", "has mode 0604, open to others; chmod 600 " + dir + "/world"},
		{write("large", strings.Repeat("x", maxSecret+1), 0o600), "", "is larger than 64 KiB and no credential"},
		{"file:" + dir, "", "is not a regular file"},
		{"file:" + dir + "/absent", "", "no such file or directory"},
		{"vault:good", "Kp7MarkedSecretQz3", ""},
		{"vault:absent", "", "vault:absent is not in the vault"},
		{"vault:lines", "", "vault:lines: holds a line end or another control character, which no header can carry"},
	} {
		t.Run(strings.ReplaceAll(test.ref, "/", "_"), func(t *testing.T) {
			ref, err := ParseReference(test.ref)
			if err != nil {
				t.Fatal(err)
			}
			s, err := r.Resolve(t.Context(), ref)
			if s.Reveal() != test.want {
				t.Errorf("got %q, want %q", s.Reveal(), test.want)
			}
			if test.problem == "" {
				if err != nil {
					t.Errorf("error %v", err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonUnresolved || !strings.HasSuffix(e.Text, test.problem) {
				t.Errorf("error %v, want %s", err, test.problem)
			}
			if strings.Contains(err.Error(), "Kp7MarkedSecretQz3") {
				t.Errorf("the value is in the error: %v", err)
			}
		})
	}
	if _, err := (&Resolver{}).Resolve(t.Context(), Reference{Vault, "good"}); err == nil {
		t.Error("without a vault a vault: reference resolved")
	}
	if _, err := r.Resolve(t.Context(), Reference{}); err == nil {
		t.Error("the zero reference resolved")
	}
	several, err := r.ResolveText(t.Context(), Reference{Vault, "lines"})
	if err != nil || several.Reveal() != "a\nb" {
		t.Errorf("a text of several lines: %q, %v", several.Reveal(), err)
	}
}
