// Package conformance runs the official conformance suite against the gateway,
// in both revisions of the protocol: straight at it, and through it at an
// upstream that is known to pass on its own.
package conformance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// limit bounds one run of the suite; it takes some seconds.
const limit = 5 * time.Minute

// A check is one line of a scenario's checks.json.
type check struct {
	ID           string `json:"id"`
	Status       string `json:"status"` // SUCCESS, FAILURE, WARNING, SKIPPED or INFO
	ErrorMessage string `json:"errorMessage"`
}

// passes reports whether nothing about the check speaks against the server. A
// warning is a broken SHOULD, which needs a reason like a broken MUST.
func (c check) passes() bool { return c.Status != "FAILURE" && c.Status != "WARNING" }

// suite is the command line of the suite's own program.
func suite(t *testing.T, nodeOptions []string, args ...string) *exec.Cmd {
	t.Helper()
	command := append(nodeOptions, rig.Module("@modelcontextprotocol/conformance", "dist/index.js"))
	cmd := exec.Command(rig.Node(t), append(command, args...)...)
	cmd.Dir = t.TempDir()
	return cmd
}

// scenarios lists the suite's server scenarios of a revision.
func scenarios(t *testing.T, revision string) []string {
	t.Helper()
	out, err := suite(t, nil, "list", "--server", "--spec-version", revision).Output()
	if err != nil {
		t.Fatalf("listing the scenarios: %v", err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(string(out), -1) {
		names = append(names, m[1])
	}
	if len(names) < 30 {
		t.Fatalf("the suite lists %d scenarios for %s:\n%s", len(names), revision, out)
	}
	return names
}

// run runs every scenario of a revision against url. With a token, it is added
// to what the suite sends there.
func run(t *testing.T, url, token, revision string) map[string][]check {
	t.Helper()
	var options []string
	if token != "" {
		options = []string{"--import=" + filepath.Join(rig.Root, "node", "token.mjs")}
	}
	results := t.TempDir()
	cmd := suite(t, options, "server", "--url", url, "--suite", "all", "--spec-version", revision, "--output-dir", results)
	cmd.Env = append(os.Environ(), "GATEHOUSE_URL="+url, "GATEHOUSE_TOKEN="+token)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	out, _ := cmd.CombinedOutput() // exits with 1 when any check fails; the files say which
	found := map[string][]check{}
	for _, scenario := range scenarios(t, revision) {
		paths, err := filepath.Glob(filepath.Join(results, "server-"+scenario+"-2*", "checks.json"))
		if err != nil || len(paths) != 1 {
			t.Errorf("scenario %s left %d results", scenario, len(paths))
			continue
		}
		text, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		var checks []check
		if err := json.Unmarshal(text, &checks); err != nil {
			t.Fatalf("%s: %v", paths[0], err)
		}
		found[scenario] = checks
	}
	if t.Failed() {
		t.Logf("the suite said:\n%s", tail(string(out), 4000))
	}
	return found
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}

// judge compares what the suite found with the reasons: a check that fails needs
// one, and one that is listed must fail.
func judge(t *testing.T, route, revision string, found map[string][]check) {
	t.Helper()
	listed := reasons(t, route, revision)
	passed := 0
	for scenario, checks := range found {
		t.Run(scenario, func(t *testing.T) {
			broken := map[string]bool{} // by id: a scenario may make one check several times
			for _, c := range checks {
				broken[c.ID] = broken[c.ID] || !c.passes()
				if !c.passes() && listed[scenario] == "" && listed[scenario+":"+c.ID] == "" {
					t.Errorf("%s: %s: %s", c.ID, c.Status, c.ErrorMessage)
				}
			}
			whole := true
			for id, isBroken := range broken {
				whole = whole && !isBroken
				if !isBroken && listed[scenario+":"+id] != "" {
					t.Errorf("%s passes now; take it off reasons.txt", id)
				}
			}
			if whole && listed[scenario] != "" {
				t.Error("passes now; take it off reasons.txt")
			}
			if len(checks) == 0 {
				t.Error("checked nothing")
			}
			if whole {
				passed++
			}
		})
	}
	for name := range listed {
		scenario, id, _ := strings.Cut(name, ":")
		if _, ok := found[scenario]; !ok {
			t.Errorf("reasons.txt lists %s, which the suite does not have in %s", scenario, revision)
		}
		if id != "" && !has(found[scenario], id) {
			t.Errorf("reasons.txt lists the check %s of %s, which was not made", id, scenario)
		}
	}
	t.Logf("%s, %s: %d of %d scenarios pass whole", route, revision, passed, len(found))
}

func has(checks []check, id string) bool {
	for _, c := range checks {
		if c.ID == id {
			return true
		}
	}
	return false
}
