package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gatehouse/e2e/rig"
)

// The suite's client mode: its servers are upstreams, which gatehouse import and
// gatehouse call work by way of the driver.
func TestAsClient(t *testing.T) {
	drive(t, "client", "./driver", 4, func(scenario string) bool { return !isLogin(scenario) })
}

// The same where its servers want us to log in: gatehouse login against the
// suite's authorization server comes first.
func TestAsOAuthClient(t *testing.T) { drive(t, "login", "./authdriver", 10, isLogin) }

func isLogin(scenario string) bool { return strings.HasPrefix(scenario, "auth/") }

// drive runs the scenarios that are wanted, at least so many.
func drive(t *testing.T, mode, program string, least int, wanted func(scenario string) bool) {
	t.Helper()
	driver := rig.Build(t, program)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			out, err := suite(t, nil, "list", "--client", "--spec-version", revision).Output()
			if err != nil {
				t.Fatalf("listing the scenarios: %v", err)
			}
			found := map[string][]check{}
			for _, m := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(string(out), -1) {
				if wanted(m[1]) {
					found[m[1]] = runClient(t, driver, m[1], revision)
				}
			}
			if len(found) < least {
				t.Fatalf("the suite lists %d scenarios, fewer than %d:\n%s", len(found), least, out)
			}
			judge(t, mode, revision, found)
		})
	}
}

func runClient(t *testing.T, driver, scenario, revision string) []check {
	t.Helper()
	results := t.TempDir()
	cmd := suite(t, nil, "client", "--command", driver, "--scenario", scenario, "--spec-version", revision, "--output-dir", results)
	cmd.Env = append(os.Environ(), "GATEHOUSE="+rig.Binary(t))
	out, _ := cmd.CombinedOutput()
	var paths []string
	for _, depth := range []string{"*", "*/*"} { // a scenario's name may hold a slash
		found, err := filepath.Glob(filepath.Join(results, depth, "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) != 1 {
		t.Errorf("scenario %s left %d results:\n%s", scenario, len(paths), tail(string(out), 4000))
		return nil
	}
	text, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []check
	if err := json.Unmarshal(text, &checks); err != nil {
		t.Fatalf("%s: %v", paths[0], err)
	}
	for _, c := range checks {
		if !c.passes() {
			said, _ := os.ReadFile(filepath.Join(filepath.Dir(paths[0]), "stderr.txt"))
			t.Logf("%s: %s %s: %s\nthe driver said: %s", scenario, c.Status, c.ID, c.ErrorMessage, tail(string(said), 2000))
		}
	}
	return checks
}
