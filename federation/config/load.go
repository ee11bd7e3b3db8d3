// Package config turns one TOML file into settings, and names every problem of
// the file at once: the line, the key, what is wrong and what is wanted.
//
// Loading reads that one file. It changes nothing, resolves no secret and never
// touches the network. Types are not coerced, unknown keys are errors at any
// depth, and a key that is left out means the stricter choice.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"gatehouse/gate"
)

// maxFile bounds what is read; a larger file is not a configuration.
const maxFile = 4 << 20

// Load reads the file at path. The Config is nil when any problem is an error.
func Load(path string) (*Config, Problems) {
	data, problems := Read(path)
	if problems != nil {
		return nil, problems
	}
	return Parse(path, data)
}

// Read returns the bytes of the file at path, for Parse.
func Read(path string) ([]byte, Problems) {
	fail := func(text string) ([]byte, Problems) {
		return nil, Problems{{File: path, Text: text}}
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("no such file; gatehouse init writes one")
	case err != nil:
		return fail("cannot be opened: " + cause(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fail("cannot be read: " + cause(err))
	}
	if len(data) > maxFile {
		return fail("is larger than 4 MiB and no configuration")
	}
	return data, nil
}

// cause leaves out the path that a *fs.PathError repeats.
func cause(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

// Parse is Load for bytes already read; path serves messages and relative paths.
func Parse(path string, data []byte) (*Config, Problems) {
	if p, ok := checkText(data); !ok {
		p.File = path
		return nil, Problems{p}
	}
	var tree map[string]any
	if _, err := toml.Decode(string(data), &tree); err != nil {
		return nil, Problems{syntaxProblem(path, err)}
	}
	d := &decoder{lines: indexLines(data)}
	var f file
	d.document(tree, &f)
	b := &builder{decoder: d, dir: directory(path), config: &Config{Path: path, Digest: gate.DigestOf(data)}}
	b.build(&f)

	slices.SortStableFunc(b.config.uses, func(a, b use) int { return cmp.Compare(a.line, b.line) })
	for i := range d.problems {
		d.problems[i].File = path
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	if len(d.problems.Errors()) > 0 {
		return nil, d.problems
	}
	return b.config, d.problems
}

// directory is where paths in the file at path start. It is absolute, so that two
// configurations that were read from different places can be compared.
func directory(path string) string {
	dir := filepath.Dir(path)
	if absolute, err := filepath.Abs(dir); err == nil {
		return absolute
	}
	return dir
}

// quoted finds what the parser quotes from the file. A secret that somebody
// wrote without quotation marks is where it would stumble.
var quoted = regexp.MustCompile(`"[^"]*"`)

func syntaxProblem(path string, err error) Problem {
	var parse toml.ParseError
	if errors.As(err, &parse) {
		text := parse.Message
		if text == "" {
			text = "this is not TOML"
		}
		return Problem{File: path, Line: parse.Position.Line, Key: parse.LastKey, Text: "not valid TOML: " + quoted.ReplaceAllString(text, `"…"`)}
	}
	return Problem{File: path, Text: "not valid TOML"}
}

// checkText finds the encodings that editors produce unasked, for which the
// TOML parser has no helpful word.
func checkText(data []byte) (Problem, bool) {
	switch {
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}), bytes.HasPrefix(data, []byte{0xfe, 0xff}):
		return Problem{Line: 1, Text: "the file is UTF-16; save it as UTF-8 without a byte order mark"}, false
	case bytes.HasPrefix(data, []byte{0xef, 0xbb, 0xbf}):
		return Problem{Line: 1, Text: "the file begins with a byte order mark; save it as UTF-8 without one"}, false
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return Problem{Line: lineOf(data, i), Text: "the file holds a NUL byte (UTF-16?); save it as UTF-8"}, false
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return Problem{Line: lineOf(data, i), Text: fmt.Sprintf("byte 0x%02x is not UTF-8; save the file as UTF-8", data[i])}, false
		}
		i += n
	}
	return Problem{}, true
}

func lineOf(data []byte, offset int) int { return 1 + bytes.Count(data[:offset], []byte{'\n'}) }

// Locate says where the state of the file at path is, also when the file has
// problems that keep it from loading: a command must find the daemon to tell it
// so. A file that is no TOML at all has its state in the default place.
func Locate(path string) (statePath string) {
	var f struct {
		State struct {
			Path string `toml:"path"`
		} `toml:"state"`
	}
	data, _ := Read(path)
	if _, err := toml.Decode(string(data), &f); err != nil || f.State.Path == "" {
		f.State.Path = defaultState
	}
	if filepath.IsAbs(f.State.Path) {
		return filepath.Clean(f.State.Path)
	}
	return filepath.Join(filepath.Dir(path), f.State.Path)
}
