package catalog

import (
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"gatehouse/gate"
)

// maxLocalName is what every model API accepts; roomyName leaves place for the
// prefix that a host puts in front.
const (
	maxLocalName = 64
	roomyName    = 46
)

const localNamePrefix = "mcp_"

func groupOf(id gate.ServerID) string { return localNamePrefix + string(id) }

// localName gives a tool its local name, or the reason why it has none. Names
// are never rewritten: two different remote names can only share a local one
// through an alias.
func localName(id gate.ServerID, remote gate.RemoteName, alias map[gate.RemoteName]string) (gate.LocalName, error) {
	part, aliased := alias[remote]
	if !aliased {
		part = string(remote)
	}
	name := groupOf(id) + "_" + part
	for _, r := range part {
		if !nameRune(r) {
			return "", nameError(aliased, fmt.Sprintf("%s is not one of A-Z a-z 0-9 _ -", describeRune(r)), name)
		}
	}
	if part == "" {
		return "", nameError(aliased, "nothing follows the server's id", name)
	}
	if len(name) > maxLocalName {
		return "", nameError(aliased, fmt.Sprintf("that is %d characters, %d fit", len(name), maxLocalName), name)
	}
	return gate.LocalName(name), nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}

func describeRune(r rune) string {
	if r == utf8.RuneError || suspicious(r) || r == '\n' || r == '\t' || r == ' ' {
		return fmt.Sprintf("U+%04X", r)
	}
	return fmt.Sprintf("%q (U+%04X)", string(r), r)
}

func nameError(aliased bool, why, name string) error {
	if aliased {
		return fmt.Errorf("its alias makes the name %q: %s; choose another alias", oneLine(name, 140), why)
	}
	return fmt.Errorf("its name would be %q: %s; give it an alias under [server.alias]", oneLine(name, 140), why)
}

// A naming is a listed tool and the name it wants.
type naming struct {
	server  gate.ServerID
	remote  gate.RemoteName
	name    gate.LocalName
	aliased bool
}

// collisions returns, for every tool whose name another one wants as well, the
// reason why it is left out. All who collide are left out: which of them the
// callers mean is not ours to guess.
func collisions(wanted []naming) map[naming]string {
	by := make(map[gate.LocalName][]naming, len(wanted))
	for _, n := range wanted {
		by[n.name] = append(by[n.name], n)
	}
	var reasons map[naming]string
	for name, tools := range by {
		if len(tools) < 2 {
			continue
		}
		sort.Slice(tools, func(i, j int) bool {
			if tools[i].server != tools[j].server {
				return tools[i].server < tools[j].server
			}
			return tools[i].remote < tools[j].remote
		})
		if reasons == nil {
			reasons = make(map[naming]string)
		}
		for i, n := range tools {
			var others []string
			for j, o := range tools {
				if i != j {
					others = append(others, o.describe(n.server))
				}
			}
			reasons[n] = fmt.Sprintf("the name %q is also that of %s; all of them are left out, choose another alias",
				string(name), strings.Join(others, ", "))
		}
	}
	return reasons
}

func (n naming) describe(from gate.ServerID) string {
	text := fmt.Sprintf("%q", oneLine(string(n.remote), 80))
	if n.aliased {
		text += " (by its alias)"
	}
	if n.server != from {
		text += fmt.Sprintf(" of server %q", string(n.server))
	}
	return text
}

// A localNaming is the local name of a tool, or why it has none of its own.
type localNaming struct {
	name   gate.LocalName
	reason string
}

// A toolKey is a tool's place: it is what pins and routes bind to, never the
// local name.
type toolKey struct {
	server gate.ServerID
	remote gate.RemoteName
}

// nameTools names tools that are listed together.
func nameTools(keys []toolKey, settings map[gate.ServerID]*ServerSettings) map[toolKey]localNaming {
	out := make(map[toolKey]localNaming, len(keys))
	wanted := make([]naming, 0, len(keys))
	for _, k := range keys {
		var alias map[gate.RemoteName]string
		if s := settings[k.server]; s != nil {
			alias = s.Alias
		}
		name, err := localName(k.server, k.remote, alias)
		if err != nil {
			out[k] = localNaming{reason: err.Error()}
			continue
		}
		_, aliased := alias[k.remote]
		out[k] = localNaming{name: name}
		wanted = append(wanted, naming{k.server, k.remote, name, aliased})
	}
	for n, reason := range collisions(wanted) {
		out[toolKey{n.server, n.remote}] = localNaming{name: n.name, reason: reason}
	}
	return out
}
