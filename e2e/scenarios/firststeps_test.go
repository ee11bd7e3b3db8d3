package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/rig"
)

// What the first commands print as the next step works when it is pasted.

func TestDemoPrintsWhatWorks(t *testing.T) {
	demo := exec.Command(rig.Binary(t), "serve", "--demo")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	demo.Stdout, demo.Stderr = log, log
	if err := demo.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		demo.Process.Signal(os.Interrupt)
		if err := demo.Wait(); err != nil {
			t.Errorf("serve --demo ended with %v", err)
		}
	})
	said := await(t, log.Name(), regexp.MustCompile(`(?m)^  .* call mcp_demo_.*$`))

	t.Run("curl", func(t *testing.T) {
		if _, err := exec.LookPath("curl"); err != nil {
			t.Skip("no curl on this machine")
		}
		if r := paste(t, said, "  curl ", ""); r.Code != 0 || !strings.Contains(r.Stdout, `"name":"mcp_demo_`) {
			t.Errorf("exit code %d, %s%s", r.Code, r.Stdout, r.Stderr)
		}
	})
	t.Run("call", func(t *testing.T) {
		for answer, code := range map[string]int{"approve\n": 0, "deny\n": 1} {
			r := paste(t, said, " call mcp_demo_", answer)
			if r.Code != code || !strings.Contains(r.Stdout, "Approve this tool call?") {
				t.Errorf("%q: exit code %d, want %d:\n%s%s", answer, r.Code, code, r.Stdout, r.Stderr)
			}
		}
	})
}

func TestInitPrintsWhatWorks(t *testing.T) {
	dir := t.TempDir()
	binary := rig.Binary(t)
	if r := rig.Run(t, "", binary, "init", "--dir", dir); r.Code != 0 || !strings.Contains(r.Stdout, "gh_") {
		t.Fatalf("init: %+v", r)
	}
	config := filepath.Join(dir, "gatehouse.toml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	// The ports it writes may be taken on this machine.
	gateway, upstream := rig.FreePort(t), rig.FreePort(t)
	ports := strings.NewReplacer(":8620", fmt.Sprintf(":%d", gateway), ":8621", fmt.Sprintf(":%d", upstream))
	if err := os.WriteFile(config, []byte(ports.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := rig.Run(t, "", binary, "--config", config, "check"); r.Code != 0 {
		t.Fatalf("check of what init wrote: %+v", r)
	}
	rig.Start(t, "demo-upstream", upstream, nil, binary, "demo-upstream", "--listen", fmt.Sprintf("127.0.0.1:%d", upstream))
	daemon := rig.Start(t, "serve", gateway, nil, binary, "--config", config, "serve")

	said := daemon.Output()
	for limit := time.Now().Add(10 * time.Second); !strings.Contains(said, "import --all") && time.Now().Before(limit); said = daemon.Output() {
		time.Sleep(20 * time.Millisecond)
	}
	imported := paste(t, said, " import --all", "")
	if imported.Code != 0 || !strings.Contains(imported.Stdout, "0 enabled; enable with:") {
		t.Fatalf("import: %+v", imported)
	}
	_, enable, _ := strings.Cut(imported.Stdout, "enable with:")
	if r := paste(t, enable, " tools enable mcp_demo_", ""); r.Code != 0 {
		t.Fatalf("enable: %+v", r)
	}
	if r := rig.Run(t, "", binary, "--config", config, "tools", "list"); !regexp.MustCompile(`(?m)^mcp_demo_\w+ +enabled`).MatchString(r.Stdout) {
		t.Errorf("after the steps as printed:\n%s", r.Stdout)
	}
}

// paste runs the line of text that contains mark, on a terminal that types what
// is given.
func paste(t *testing.T, text, mark, types string) rig.Result {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, mark) {
			if types == "" {
				return rig.Run(t, "", "sh", "-c", line)
			}
			return rig.Run(t, types, "script", "-qec", line, "/dev/null")
		}
	}
	t.Fatalf("no line with %q in:\n%s", mark, text)
	return rig.Result{}
}

// await waits until a file contains what is wanted, and returns the file.
func await(t *testing.T, path string, want *regexp.Regexp) string {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(30 * time.Millisecond) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want.Match(text) {
			return string(text)
		}
		if time.Now().After(limit) {
			t.Fatalf("%s did not appear in:\n%s", want, text)
		}
	}
}
