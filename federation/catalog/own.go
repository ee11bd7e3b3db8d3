package catalog

import (
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// The names of our own tools.
const (
	StatusTool gate.LocalName = "gatehouse_status"
	FindTool   gate.LocalName = "gatehouse_find"
	CallTool   gate.LocalName = "gatehouse_call"
)

// MaxHits is the most results that gatehouse_find gives.
const MaxHits = 20

// An ownTool is a tool that this process answers. It is declared here and
// offered like any other.
type ownTool struct {
	name       gate.LocalName
	surface    gate.Surface // Find: listed only to callers that find their tools
	definition []byte
}

var ownTools = []*ownTool{
	declare(StatusTool, gate.Everything, "Gatehouse status",
		"Says which tools you may use through this gateway, how many others there are, and what would make them available.",
		`{"type":"object","properties":{},"additionalProperties":false}`,
		`{"readOnlyHint":true,"openWorldHint":false}`),
	declare(FindTool, gate.Everything, "Find a tool",
		"Searches the tools you may use, by words from their names, descriptions and parameters. The best match comes first.",
		`{"type":"object","properties":{`+
			`"words":{"type":"string","minLength":1,"maxLength":400,"description":"What the tool should do, in plain words."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":20,"default":5,"description":"How many tools to return at most."},`+
			`"schemas":{"type":"boolean","default":false,"description":"Whether to return each tool's input schema as well."}},`+
			`"required":["words"],"additionalProperties":false}`,
		`{"readOnlyHint":true,"openWorldHint":false}`),
	declare(CallTool, gate.Find, "Call a tool",
		"Calls a tool that gatehouse_find returned, by its full name. The call is judged, approved and recorded like any other call of that tool.",
		`{"type":"object","properties":{`+
			`"name":{"type":"string","minLength":1,"maxLength":64,"description":"The tool's name as gatehouse_find returned it."},`+
			`"arguments":{"type":"object","description":"The arguments of that tool, by its input schema."}},`+
			`"required":["name"],"additionalProperties":false}`,
		`{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`),
}

var ownByName = func() map[gate.LocalName]*ownTool {
	by := make(map[gate.LocalName]*ownTool, len(ownTools))
	for _, o := range ownTools {
		by[o.name] = o
	}
	return by
}()

func declare(name gate.LocalName, surface gate.Surface, title, description, schema, annotations string) *ownTool {
	b := rawjson.AppendString([]byte(`{"name":`), string(name))
	b = rawjson.AppendString(append(b, `,"title":`...), title)
	b = rawjson.AppendString(append(b, `,"description":`...), description)
	b = append(append(b, `,"inputSchema":`...), schema...)
	b = append(append(b, `,"annotations":`...), annotations...)
	return &ownTool{name, surface, append(b, '}')}
}

// entry makes the tool's entry. Our own tools tell nothing but what the listing
// tells, hence their class; nobody need approve that somebody looks at it. What
// gatehouse_call forwards is judged, and approved, as a call of its own.
func (o *ownTool) entry() *entry {
	t := &gate.Tool{Name: o.name, ServerName: "gatehouse", Remote: gate.RemoteName(o.name), Own: true, FindOnly: o.surface == gate.Find,
		Availability: gate.Enabled, Class: gate.PublicContent, ApprovalWaived: true}
	d, err := readDefinition(o.definition)
	if err != nil {
		panic("unreachable: our own definition cannot be read: " + err.Error())
	}
	t.Definition, _ = digestOf(o.definition)
	t.Arguments = newChecker(d.input)
	return &entry{tool: t}
}
