package catalog

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"gatehouse/gate"
)

var (
	idPattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}\z`)
	namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}\z`)
)

// For ids that the configuration admits, a local name belongs to one tool: the
// id ends at the first underscore after the prefix, and the rest is the remote
// name, letter for letter.
func FuzzLocalNameBelongsToOneTool(f *testing.F) {
	for _, s := range [][2]string{{"a", "b_c"}, {"a-b", "c"}, {"docs", "_y"}, {"x-", "y\n"}, {"a", "é"}, {"a", strings.Repeat("z", 59)}, {"a", ""}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, id, remote string) {
		if !idPattern.MatchString(id) {
			return
		}
		name, err := localName(gate.ServerID(id), gate.RemoteName(remote), nil)
		fits := namePattern.MatchString("mcp_"+id+"_"+remote) && remote != ""
		if (err == nil) != fits {
			t.Fatalf("%q of %q: name %q, %v; fits: %v", remote, id, name, err, fits)
		}
		if err != nil {
			return
		}
		gotID, gotRemote, ok := strings.Cut(strings.TrimPrefix(string(name), "mcp_"), "_")
		if !ok || gotID != id || gotRemote != remote {
			t.Fatalf("%q splits into %q and %q, made of %q and %q", name, gotID, gotRemote, id, remote)
		}
	})
}

func TestNamesAreABijection(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab_-.C é\n")
	word := func(n int, from []rune) string {
		out := make([]rune, r.IntN(n)+1)
		for i := range out {
			out[i] = from[r.IntN(len(from))]
		}
		return string(out)
	}
	for range 300 {
		settings := make(map[gate.ServerID]*ServerSettings)
		keys := make(map[toolKey]bool)
		for range r.IntN(4) + 1 {
			id := gate.ServerID(word(3, []rune("ab0")))
			s := &ServerSettings{ID: id, Alias: make(map[gate.RemoteName]string)}
			settings[id] = s
			for range r.IntN(12) {
				remote := gate.RemoteName(word(4, letters))
				keys[toolKey{id, remote}] = true
				if r.IntN(3) == 0 {
					s.Alias[remote] = word(3, letters)
				}
			}
		}
		var list []toolKey
		for k := range keys {
			list = append(list, k)
		}
		names := nameTools(list, settings)
		owners := make(map[gate.LocalName][]toolKey)
		for _, k := range list {
			n, ok := names[k]
			if !ok || n.reason == "" && !namePattern.MatchString(string(n.name)) {
				t.Fatalf("%v is named %+v", k, n)
			}
			if n.name != "" {
				owners[n.name] = append(owners[n.name], k)
			}
		}
		for name, tools := range owners {
			for _, k := range tools {
				if usable := names[k].reason == ""; usable != (len(tools) == 1) {
					t.Fatalf("%q is wanted by %v; usable for %v: %v", name, tools, k, usable)
				}
			}
		}
	}
}
