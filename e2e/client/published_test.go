package client_test

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

// The published servers work on this machine without a gateway and without any
// other network.
func TestPublishedDirect(t *testing.T) {
	for _, s := range rig.Published {
		t.Run(s.ID, func(t *testing.T) {
			url, dir := s.Start(t)
			c := client.TypeScript(t, client.Options{URL: url, Answer: client.None})
			names := client.Names(c.List(t))
			for _, want := range s.Tools {
				if !slices.Contains(names, want) {
					t.Errorf("offers %q, want %q among them", names, want)
				}
			}
			r := c.Call(t, s.Tool, strings.ReplaceAll(s.Arguments, "{dir}", dir))
			if r.OK() != (s.Outcome == "ok") || !strings.Contains(r.Text(), s.Want) {
				t.Errorf("%s: %s", s.Tool, r)
			}
		})
	}
}

func TestPythonDirect(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		t.Run(version, func(t *testing.T) {
			c := client.TypeScript(t, client.Options{URL: rig.Python(t, version), Answer: client.None})
			if r := c.Call(t, "count_letters", `{"text":"banana","letter":"a"}`); !r.OK() || r.Text() != "3" {
				t.Errorf("count_letters: %s", r)
			}
		})
	}
}
