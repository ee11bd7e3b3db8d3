package catalog

import "gatehouse/gate"

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
