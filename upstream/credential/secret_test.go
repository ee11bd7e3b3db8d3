package credential

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const hidden = "Kp7MarkedSecretQz3-at-secret"

// holder is how secrets usually travel: inside something that is printed.
type holder struct {
	Name    string
	Secret  Secret
	Pointer *Secret
	private Secret
}

func TestSecretNeverPrints(t *testing.T) {
	s := SecretString(hidden)
	h := holder{"x", s, &s, s}
	var outputs []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%08.3f", "%T"} {
		for _, v := range []any{s, &s, h, &h, []Secret{s}, map[string]Secret{"k": s}, []any{h}, struct{ s Secret }{s}} {
			outputs = append(outputs, fmt.Sprintf(verb, v))
		}
	}
	outputs = append(outputs, fmt.Sprint(s), fmt.Sprintln(h), errors.Join(fmt.Errorf("x: %v", s)).Error())
	for _, marshal := range []func(any) ([]byte, error){json.Marshal, xml.Marshal, gobBytes, textOf} {
		for _, v := range []any{s, h, map[string]any{"k": s}} {
			b, err := marshal(v)
			outputs = append(outputs, string(b))
			if err != nil {
				outputs = append(outputs, err.Error())
			}
		}
	}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "secret", s, "pointer", &s, "holder", h, "list", []Secret{s})
	}
	outputs = append(outputs, log.String())
	for _, out := range outputs {
		for _, form := range []string{hidden, hidden[:7], fmt.Sprintf("%x", hidden), fmt.Sprintf("%X", hidden), fmt.Sprint([]byte(hidden))} {
			if strings.Contains(out, strings.Trim(form, "[]")) {
				t.Errorf("the secret is in %q", out)
			}
		}
	}
	if got := fmt.Sprintf("%v %s %#v %x", s, s, s, s); got != "[secret] [secret] [secret] [secret]" {
		t.Errorf("printed %q", got)
	}
}

// textOf is what encoders of TOML, YAML and flags ask for.
func textOf(v any) ([]byte, error) {
	if m, ok := v.(encoding.TextMarshaler); ok {
		return m.MarshalText()
	}
	return nil, nil
}

func gobBytes(v any) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(v)
	return b.Bytes(), err
}

// A process that dies of a panic with a secret in its hand does not print it.
func TestPanicShowsNoSecret(t *testing.T) {
	if mode := os.Getenv("CREDENTIAL_TEST_PANIC"); mode != "" {
		s := SecretString(os.Getenv("CREDENTIAL_TEST_VALUE"))
		if mode == "secret" {
			panic(s)
		}
		panic(holder{"x", s, &s, s})
	}
	for _, mode := range []string{"secret", "holder"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPanicShowsNoSecret$")
		cmd.Env = append(os.Environ(), "GOTRACEBACK=all", "CREDENTIAL_TEST_PANIC="+mode, "CREDENTIAL_TEST_VALUE="+hidden)
		out, err := cmd.CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("panic")) {
			t.Fatalf("the process did not panic: %s", out)
		}
		if bytes.Contains(out, []byte(hidden)) || bytes.Contains(out, fmt.Appendf(nil, "%x", hidden)) {
			t.Errorf("the secret is in the dump: %s", out)
		}
	}
}

func TestSecret(t *testing.T) {
	s := SecretString(hidden)
	if s.Reveal() != hidden || string(s.Bytes()) != hidden || s.Len() != len(hidden) || s.IsZero() {
		t.Error("the value is lost")
	}
	b := s.Bytes()
	clear(b)
	if s.Reveal() != hidden {
		t.Error("Bytes gave the value itself, not a copy")
	}
	clone := s
	clone.Wipe()
	if strings.Contains(s.Reveal(), "hunter") {
		t.Error("wiping a copy left the value")
	}
	var zero Secret
	if !zero.IsZero() || zero.Reveal() != "" || zero.Bytes() != nil || zero.Len() != 0 || !NewSecret(nil).IsZero() {
		t.Error("the zero Secret holds something")
	}
	zero.Wipe()
}
