package conformance

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/e2e/rig"
)

// The suite's client mode, where its servers want us to log in: gatehouse login
// against the suite's authorization server, then import and call.
func TestAsOAuthClient(t *testing.T) {
	driver := rig.Build(t, "./authdriver")
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			found := map[string][]check{}
			for _, scenario := range authScenarios(t, revision) {
				found[scenario] = runClient(t, driver, scenario, revision)
			}
			judge(t, "login", revision, found)
		})
	}
}

func authScenarios(t *testing.T, revision string) []string {
	t.Helper()
	out, err := suite(t, nil, "list", "--client", "--spec-version", revision).Output()
	if err != nil {
		t.Fatalf("listing the scenarios: %v", err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(string(out), -1) {
		if strings.HasPrefix(m[1], "auth/") {
			names = append(names, m[1])
		}
	}
	if len(names) < 10 {
		t.Fatalf("the suite lists %q for %s:\n%s", names, revision, out)
	}
	return names
}
