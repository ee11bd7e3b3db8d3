package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The names of metrics in what is shipped for Prometheus and Grafana. What is no
// name of ours begins otherwise, or is a label.
var (
	name   = regexp.MustCompile(`\b(?:gatehouse|mcp|process|go)_[a-z0-9_]+`)
	labels = []string{"mcp_method_name"}
)

// TestShippedNamesExist: dashboard and alerts ask for nothing that is not there,
// and nothing of ours is left out of both.
func TestShippedNamesExist(t *testing.T) {
	families, err := filled().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, f := range families {
		shown[f.GetName()] = false
	}
	for _, file := range []string{"dashboard.json", "alerts.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "packaging", "monitoring", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range name.FindAllString(string(content), -1) {
			if slices.Contains(labels, found) {
				continue
			}
			family := found
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				family = strings.TrimSuffix(family, suffix)
			}
			if _, ok := shown[family]; !ok {
				t.Errorf("%s asks for %s, which is not there", file, found)
			}
			shown[family] = true
		}
	}
	for family, yes := range shown {
		if ours := strings.HasPrefix(family, "gatehouse_") || strings.HasPrefix(family, "mcp_"); ours && !yes {
			t.Errorf("%s is neither in the dashboard nor in an alert", family)
		}
	}
}
