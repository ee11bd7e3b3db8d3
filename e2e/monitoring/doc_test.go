// Package monitoring has a real Prometheus scrape the gatehouse binary, load the
// alert rules and answer every expression of the dashboard.
package monitoring

import (
	"os/exec"
	"path/filepath"
	"testing"

	"gatehouse/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// file is one of those that are shipped.
func file(name string) string {
	return filepath.Join(rig.Root, "..", "packaging", "monitoring", name)
}

// tool is a program of Debian's package prometheus.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("no %s; apt-get install -y --no-install-recommends prometheus", name)
	}
	return path
}

// TestAlerts runs the tests of the rules: every alert comes when it should, and
// stays away when it should.
func TestAlerts(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", file("alerts.yaml")},
		{"test", "rules", filepath.Join(rig.Root, "monitoring", "alerts_test.yaml")},
	} {
		if r := rig.Run(t, "", append([]string{promtool}, args...)...); r.Code != 0 {
			t.Errorf("promtool %q: %s%s", args, r.Stdout, r.Stderr)
		}
	}
}
