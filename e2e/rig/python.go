package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// pythonSDK are the releases of the Python SDK that the servers in python/ are for.
var pythonSDK = map[string]string{"v1": "mcp==1.30.0", "v2": "mcp==2.3.0"}

// Python starts the server python/<version>.py and returns its url. It installs
// the SDK into an environment that later runs find again, and skips the test
// where there is no Python or its packages cannot be had.
func Python(t *testing.T, version string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on this machine")
	}
	pin := pythonSDK[version]
	home := filepath.Join(Root, "..", ".e2e", pin)
	own := filepath.Join(home, "bin", "python")
	done := filepath.Join(home, "complete")
	if _, err := os.Stat(done); err != nil {
		for _, command := range [][]string{{python, "-m", "venv", home}, {own, "-m", "pip", "install", "-q", "--disable-pip-version-check", pin}} {
			if r := Run(t, "", command...); r.Code != 0 {
				t.Skipf("%q: %s%s", command, r.Stdout, r.Stderr)
			}
		}
		if err := os.WriteFile(done, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := FreePort(t)
	Start(t, "python "+pin, port, nil, own, filepath.Join(Root, "python", version+".py"), fmt.Sprint(port))
	return fmt.Sprintf("http://127.0.0.1:%d/mcp", port)
}
