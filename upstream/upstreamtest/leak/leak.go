// Package leak lets the tests show that their secrets are found nowhere.
//
// Every secret of a test bears one mark, and what a test leaves behind is kept
// when KeepVariable names a folder. .ci/leaks then searches that folder, and all
// that the tests printed, for the mark in every form in which it can be written.
package leak

import (
	"crypto/rand"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Mark is part of every secret of the tests and of nothing else. Letters and
// digits alone look the same in JSON, in a url and in either alphabet of base64.
const Mark = "Kp7MarkedSecretQz3"

// KeepVariable is the environment variable that names the folder to keep things in.
const KeepVariable = "GATEHOUSE_KEEP"

// Secret makes a secret that starts with a kind and a dash and is unlike any other.
func Secret(kind string) string { return kind + "-" + Mark + "-" + rand.Text() }

// Token makes a caller's token, in the form of those that gatehouse makes.
func Token() string { return "gh_" + Mark + rand.Text() }

// Kept reports whether what tests leave behind is kept.
func Kept() bool { return os.Getenv(KeepVariable) != "" }

// Keep copies what is in dir when the test is over, except files of the names
// given: those that hold a secret because the operator put it there. Call it
// before anything starts that writes to dir, so that it has ended by then.
func Keep(t testing.TB, dir string, except ...string) {
	t.Helper()
	if !Kept() {
		return
	}
	t.Cleanup(func() {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || slices.Contains(except, d.Name()) {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return write(t, strings.TrimPrefix(path, dir), content)
		})
		if err != nil {
			t.Errorf("what the test leaves: %v", err)
		}
	})
}

// Write keeps a text, such as what a process has printed. Texts of one name go
// one behind the other.
func Write(t testing.TB, name, text string) {
	t.Helper()
	if !Kept() {
		return
	}
	if err := write(t, name, []byte(text)); err != nil {
		t.Errorf("what the test leaves: %v", err)
	}
}

func write(t testing.TB, name string, content []byte) error {
	f, err := create(t, name)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// Logger is a log with everything in it that ends in the folder, and goes nowhere
// when there is none.
func Logger(t testing.TB) *slog.Logger {
	t.Helper()
	var out io.Writer = io.Discard
	if Kept() {
		f, err := create(t, "debug.log")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		out = f
	}
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// create opens a file for a test under its name, which .ci/leaks knows tests by.
func create(t testing.TB, name string) (*os.File, error) {
	path := filepath.Join(os.Getenv(KeepVariable), filepath.FromSlash(t.Name()), strings.ReplaceAll(strings.Trim(name, "/"), " ", "_"))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}
