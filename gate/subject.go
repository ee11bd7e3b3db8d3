package gate

import "time"

// A Caller is who asks, as the operator declared them. Values are immutable
// once they are in use.
type Caller struct {
	Name   CallerName
	Admin  bool   // without it no remote tool is offered
	Zone   Zone   // where results travel; the zero value is the least trusted
	Groups Groups // the zero value includes nothing

	Dialect    Dialect
	NameBudget int // longest tool name the caller's host accepts, 0: no limit of its own
	NamePrefix int // how many characters that host puts in front of a name
	Surface    Surface

	CallsPerMinute  int // 0: no limit
	ConcurrentCalls int // 0: no limit

	AuthenticatedBy string // "token" or "oidc", for the record
}

// Groups narrows a caller to some groups of tools. The zero value includes no
// group at all; "no narrowing" must be asked for with EveryGroup.
type Groups struct {
	every bool
	names map[string]bool
}

// EveryGroup narrows nothing.
func EveryGroup() Groups { return Groups{every: true} }

// OnlyGroups includes the named groups and no other; without names, none.
func OnlyGroups(names ...string) Groups {
	g := Groups{names: make(map[string]bool, len(names))}
	for _, n := range names {
		g.names[n] = true
	}
	return g
}

// Include reports whether tools of group are among them.
func (g Groups) Include(group string) bool { return g.every || g.names[group] }

// Every reports whether g narrows nothing.
func (g Groups) Every() bool { return g.every }

// Names lists the included groups in no particular order; nil when every group is.
func (g Groups) Names() []string {
	if g.every {
		return nil
	}
	names := make([]string, 0, len(g.names))
	for n := range g.names {
		names = append(names, n)
	}
	return names
}

// A Dialect says what a caller's model API accepts as a tool's schema.
type Dialect uint8

// The dialects. Full is JSON Schema as the upstream wrote it; Portable is the
// subset that every known model API takes.
const (
	Full Dialect = iota
	Portable
)

// A Surface says how a caller meets the catalogue: every tool in tools/list, or
// only our own tools, through which the others are found and called.
type Surface uint8

// The surfaces.
const (
	Everything Surface = iota
	Find
)

// Availability says whether a tool may be offered at all. The zero value is no.
type Availability uint8

// What an import, an operator or the configuration made of a tool.
const (
	Disabled       Availability = iota // nobody enabled it
	Enabled                            // enabled at the very definition now in the catalogue
	Changed                            // enabled once, at another definition or another url
	Vanished                           // the server no longer lists it
	Skipped                            // the server lists it, the rules do not allow it
	ServerDisabled                     // the server's table says enabled = false, or is gone
	Unsupplied                         // the server has no data class or no url
)

var availabilityNames = [...]string{"disabled", "enabled", "changed", "vanished", "skipped", "server_disabled", "unsupplied"}

func (a Availability) String() string {
	if int(a) >= len(availabilityNames) {
		return "unknown"
	}
	return availabilityNames[a]
}

// MarshalText implements encoding.TextMarshaler.
func (a Availability) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// A Tool is what the gate has to know of one tool. Values are immutable: a
// snapshot that says something else holds another Tool.
type Tool struct {
	Name       LocalName
	Server     ServerID
	ServerName string // what the operator calls the server
	Origin     string // scheme://host[:port] of the upstream; empty for our own tools
	Remote     RemoteName
	Group      string // mcp_<id>
	Definition Digest // of everything the server said about the tool, RFC 8785
	Own        bool   // a gatehouse_* tool, answered in this process
	FindOnly   bool   // exists only for callers whose surface is Find

	Availability   Availability
	Class          Class
	ApprovalWaived bool   // the server's table says requires_approval = false in so many words
	Unportable     string // why the portable dialect cannot carry it; empty when it can

	// Arguments checks a call's arguments. A tool without a checker takes none.
	Arguments ArgumentChecker

	// ParamHeaders are the schema's x-mcp-header bindings (MCP 2026-07-28, server/tools).
	ParamHeaders []ParamHeader

	// Structured says that the definition has an output schema, to which clients
	// hold structured content unless the result is an error.
	Structured bool

	ServerCallsPerMinute  int // of all callers together, 0: no limit
	ServerConcurrentCalls int // of all callers together, 0: no limit

	// ApprovalMemory is how long a person's yes also covers further calls of the
	// same caller with the same arguments; 0: every call is asked about.
	ApprovalMemory time.Duration
}

// A ParamHeader binds one argument to the request header Mcp-Param-<Name>.
type ParamHeader struct {
	Name string
	Path []string // property names from the root of the arguments
	Type string   // "string", "integer" or "boolean"
}

// An ArgumentChecker says whether raw is a JSON object without duplicate keys
// that the tool's schema accepts. It returns an *ArgumentError when it is not.
// It must be safe for concurrent use and must not keep raw.
type ArgumentChecker interface {
	Check(raw []byte) error
}

// An ArgumentError says which argument breaks which rule.
type ArgumentError struct {
	Pointer string // RFC 6901, "" is the whole object
	Rule    string // what is wanted, in words a model can act on
}

func (e *ArgumentError) Error() string {
	if e.Pointer == "" {
		return "arguments: " + e.Rule
	}
	return "argument " + e.Pointer + ": " + e.Rule
}

// A Snapshot is one consistent state of catalogue and configuration.
type Snapshot interface {
	// Tool returns the tool of that name, whatever its availability, or nil.
	Tool(LocalName) *Tool
	// Generation counts snapshots; it is for the record only.
	Generation() uint64
}
