package conformance

import (
	"os"
	"strings"
	"testing"
)

// reasons reads reasons.txt: what cannot pass on a route and in a revision, as
// "scenario" or "scenario:check", and why.
func reasons(t *testing.T, route, revision string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 4 {
			t.Fatalf("reasons.txt:%d: want route, revision, scenario and a reason", i+1)
		}
		if !covers(fields[0], route) || fields[1] != "both" && fields[1] != revision {
			continue
		}
		if listed[fields[2]] != "" {
			t.Fatalf("reasons.txt:%d: %s is listed twice for %s, %s", i+1, fields[2], route, revision)
		}
		listed[fields[2]] = strings.Join(fields[3:], " ")
	}
	return listed
}

// covers reports whether a route of reasons.txt includes one of ours.
func covers(listed, route string) bool {
	switch listed {
	case "serving":
		return route == "straight" || covers("through", route)
	case "through":
		return route == "through-2025" || route == "through-2026"
	}
	return listed == route
}
