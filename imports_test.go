package main_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// direction says which of our own packages each of them may import, besides
// those below itself. An arrow that turns back is how one package comes to know
// everything.
var direction = map[string][]string{
	".":                                 {"federation/cli"},
	"federation/cli":                    {"federation", "upstream", "gate"},
	"federation/console":                {"federation/control", "federation", "upstream", "gate"},
	"federation/control":                {"federation", "federation/caller", "federation/catalog", "federation/config", "federation/metrics", "federation/plan", "federation/state", "upstream", "gate"},
	"federation":                        {"federation/caller", "federation/catalog", "federation/config", "federation/metrics", "federation/plan", "federation/state", "federation/trace", "upstream", "gate"},
	"federation/state":                  {"federation/catalog", "upstream", "gate"},
	"federation/caller":                 {"federation/config", "upstream", "gate"},
	"federation/catalog":                {"gate"},
	"federation/config":                 {"upstream", "gate"},
	"federation/plan":                   {"federation/config", "upstream", "gate"},
	"federation/clientfile":             {"federation/config", "gate"},
	"federation/demo":                   {"upstream/upstreamtest", "gate"},
	"federation/metrics":                {"gate"},
	"federation/trace":                  {"upstream", "gate"},
	"federation/trace/tracetest":        {},
	"federation/probe":                  {"federation/catalog", "upstream", "gate"},
	"upstream":                          {"gate"},
	"upstream/wire":                     {"gate"},
	"upstream/credential":               {"upstream/wire", "gate"},
	"upstream/vault":                    {"upstream/credential", "gate"},
	"upstream/upstreamtest":             {"gate"},
	"upstream/upstreamtest/conformance": {"upstream/upstreamtest", "gate"},
	"upstream/upstreamtest/authserver":  {"upstream/upstreamtest/leak", "gate"},
	"upstream/upstreamtest/leak":        {},
	"gate":                              {},
	"gate/rawjson":                      {},
	"gate/ledger":                       {"gate"},
	"gate/gatetest":                     {"gate"},
}

// standardOnly may import nothing but the standard library, not even our own.
var standardOnly = []string{"gate", "gate/rawjson"}

// fences says where a third-party module may be imported at all.
var fences = map[string][]string{
	"github.com/mark3labs/mcp-go": {"federation", "upstream/wire"},
	"go.etcd.io/bbolt":            {"federation/state", "gate/ledger"},
	"github.com/jackc/pgx":        {"federation/state", "gate/ledger"},
	"github.com/BurntSushi/toml":  {"federation/config"},
	"golang.org/x/oauth2":         {"upstream/credential", "federation/caller"},
	"github.com/coreos/go-oidc":   {"federation/caller"},
	"github.com/cenkalti/backoff": {"upstream"},
	"filippo.io/age":              {"upstream/vault"},
	"github.com/spf13/cobra":      {"federation/cli"},
	"github.com/santhosh-tekuri":  {"federation/catalog"},
	"github.com/prometheus":       {"federation"},
	"go.opentelemetry.io":         {"federation/trace"},
}

func TestImportsGoOneWay(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" || d.Name() == "e2e" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if complaint := judge(pkg, imported); complaint != "" {
				t.Errorf("%s imports %s: %s", file, imported, complaint)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// judge says what is wrong with one import, "" when nothing is.
func judge(pkg, imported string) string {
	own, ours := strings.CutPrefix(imported, "gatehouse/")
	if !strings.Contains(strings.Split(imported, "/")[0], ".") && !ours {
		return ""
	}
	if slices.Contains(standardOnly, pkg) {
		return "only the standard library may be imported here"
	}
	if !ours {
		for module, rooms := range fences {
			if (imported == module || strings.HasPrefix(imported, module+"/")) && !slices.ContainsFunc(rooms, func(room string) bool { return within(pkg, room) }) {
				return "this module stays within " + strings.Join(rooms, ", ")
			}
		}
		return ""
	}
	allowed, known := direction[pkg]
	if !known {
		return "package " + pkg + " has no place in the drawing; give it one in direction"
	}
	if within(own, pkg) || slices.ContainsFunc(allowed, func(a string) bool {
		return own == a || within(own, a) && a != "federation" || a == "federation" && pkg == "federation/cli" && within(own, a)
	}) {
		return ""
	}
	return "the arrow does not go this way"
}

// within reports whether a package is room or lies below it.
func within(pkg, room string) bool {
	return room != "." && (pkg == room || strings.HasPrefix(pkg, room+"/")) || pkg == room
}

func TestTheDrawingNamesRealPackages(t *testing.T) {
	for pkg := range direction {
		if entries, err := os.ReadDir(path.Clean(pkg)); err != nil || len(entries) == 0 {
			t.Errorf("direction names %s, which is no package", pkg)
		}
	}
}
