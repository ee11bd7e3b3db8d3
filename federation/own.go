package federation

import (
	"strconv"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// performOwn answers one of our own tools. It spends the permit like any other.
func (g *Gateway) performOwn(inv *invocation, permit *gate.Permit) (reply, gate.Outcome) {
	order, err := permit.Spend()
	if err != nil {
		return failed(inv, permit, err)
	}
	r := reply{verdict: gate.OK, record: permit.Record()}
	switch order.Tool.Name {
	case catalog.StatusTool:
		r.result = textResult(g.status(inv.caller), false)
	case catalog.FindTool:
		r.result = g.find(inv, order.Arguments)
	default:
		r.verdict = gate.ToolError
		r.result = textResult("this tool answers nothing by itself", true)
	}
	return r, gate.Outcome{Verdict: r.verdict}
}

// findLimit is how many hits a search gives unless it asks otherwise.
const findLimit = 5

// find answers gatehouse_find: the names that fit, with the definition only
// where it was asked for, because a model pays for every character.
func (g *Gateway) find(inv *invocation, arguments []byte) []rawjson.Member {
	members, _ := rawjson.Object(arguments) // judged against the tool's schema already
	words, _ := rawjson.String(valueOr(members, "words", `""`))
	limit, err := strconv.Atoi(string(valueOr(members, "limit", "")))
	if err != nil {
		limit = findLimit
	}
	withSchema := string(valueOr(members, "schemas", "false")) == "true"
	snapshot := g.Catalog.Snapshot()
	hits := snapshot.Find(inv.caller, words, min(max(limit, 1), catalog.MaxHits))
	out := []byte(`{"tools":[`)
	for i, hit := range hits {
		if i > 0 {
			out = append(out, ',')
		}
		if withSchema {
			out = append(out, snapshot.Served(inv.caller, inv.era, hit.Name)...)
			continue
		}
		out = rawjson.AppendString(append(out, `{"name":`...), string(hit.Name))
		out = rawjson.AppendString(append(out, `,"description":`...), clipText(hit.Description))
		out = append(out, '}')
	}
	out = append(out, "]}"...)
	result := textResult(string(out), false)
	return append(result, member("structuredContent", out))
}

func valueOr(members []rawjson.Member, key, otherwise string) []byte {
	if value, ok := rawjson.Get(members, key); ok {
		return value
	}
	return []byte(otherwise)
}

// clipText keeps the first two hundred characters of a description.
func clipText(s string) string {
	const most = 200
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
