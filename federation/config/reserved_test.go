package config

import (
	"fmt"
	"strings"
	"testing"
)

// Nobody is named like what the record puts in a caller's place.
func TestReservedCallerNames(t *testing.T) {
	for name, reserved := range map[string]bool{"operator": true, "Operator": true, "watch": true, "SIGHUP": true, "signal": true, "console": true, "token": true, "oidc": true,
		"operators": false, "watcher": false} {
		_, problems := Parse("gatehouse.toml", fmt.Appendf(nil, "[[caller]]\nname = %q\ntoken = \"sha256:%s\"\n", name, strings.Repeat("ab", 32)))
		found := false
		for _, p := range problems.Errors() {
			found = found || p.Line == 2 && strings.Contains(p.Text, "stands in the record")
		}
		if found != reserved {
			t.Errorf("%q: %v", name, problems.Errors())
		}
	}
}
