package config

import (
	"fmt"

	"gatehouse/gate"
)

// comfortable is the longest local name that still fits under 64 characters
// behind the prefix of a host that is not declared (mcp__gatehouse__ and some).
const comfortable = 46

// NameWarnings says which of the names a caller's host would cut or refuse.
// Callers with a declared name_budget are measured by it; names beyond 46
// characters are pointed out for all others, once.
func (c *Config) NameWarnings(names []gate.LocalName) []string {
	var out []string
	undeclared := len(c.Callers) == 0
	for _, caller := range c.Callers {
		if caller.NameBudget == 0 {
			undeclared = true
			continue
		}
		for _, n := range names {
			if length := caller.NamePrefix + len(n); length > caller.NameBudget {
				out = append(out, fmt.Sprintf("%s: %d characters with the prefix of caller %q, whose host takes %d; give it a shorter name in [server.alias]",
					n, length, caller.Name, caller.NameBudget))
			}
		}
	}
	if !undeclared {
		return out
	}
	for _, n := range names {
		if len(n) > comfortable {
			out = append(out, fmt.Sprintf("%s: %d characters; a host that puts its own prefix in front may refuse more than %d: set the caller's name_budget and name_prefix, or a shorter name in [server.alias]",
				n, len(n), comfortable))
		}
	}
	return out
}

// nameBudgets warns about server ids that leave a caller no room: with the
// shortest possible tool the name would be too long already.
func (b *builder) nameBudgets() {
	for _, caller := range b.config.Callers {
		if caller.NameBudget == 0 {
			continue
		}
		for _, s := range b.config.Servers {
			room := caller.NameBudget - caller.NamePrefix - len("mcp_") - len(s.ID) - len("_")
			if room < 8 {
				b.warn(s.Line, "server.id", "server %q: caller %q has room for tool names of %d characters only (name_budget %d, name_prefix %d); a shorter id helps",
					s.ID, caller.Name, max(room, 0), caller.NameBudget, caller.NamePrefix)
			}
			for remote, local := range s.Alias {
				name := gate.LocalName("mcp_" + string(s.ID) + "_" + local)
				if caller.NamePrefix+len(name) > caller.NameBudget {
					b.warn(s.Line, "server.alias", "server %q: alias of %q: %s has %d characters with the prefix of caller %q, whose host takes %d",
						s.ID, remote, name, caller.NamePrefix+len(name), caller.Name, caller.NameBudget)
				}
			}
		}
	}
}
