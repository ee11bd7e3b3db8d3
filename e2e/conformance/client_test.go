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
// gatehouse call work by way of the driver. The authorization scenarios want a
// person to log in; TestAsOAuthClient runs them.
func TestAsClient(t *testing.T) {
	driver := rig.Build(t, "./driver")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			found := map[string][]check{}
			for _, scenario := range clientScenarios(t, revision) {
				found[scenario] = runClient(t, driver, scenario, revision)
			}
			judge(t, "client", revision, found)
		})
	}
}

func clientScenarios(t *testing.T, revision string) []string {
	t.Helper()
	out, err := suite(t, nil, "list", "--client", "--spec-version", revision).Output()
	if err != nil {
		t.Fatalf("listing the scenarios: %v", err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(string(out), -1) {
		if !strings.HasPrefix(m[1], "auth/") {
			names = append(names, m[1])
		}
	}
	if len(names) < 4 {
		t.Fatalf("the suite lists %q for %s:\n%s", names, revision, out)
	}
	return names
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
