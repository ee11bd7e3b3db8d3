package control

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// versionKey is where a message of MCP 2026-07-28 tells its revision.
const versionKey = "io.modelcontextprotocol/protocolVersion"

// completeHeaders gives r the headers that HTTP wants of a message in MCP
// 2026-07-28 and puts body back. A client that speaks stdio has no headers to
// send, and does not know which arguments a tool wants mirrored in them.
func completeHeaders(r *http.Request, body []byte, s gate.Snapshot) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	message, err := rawjson.Object(body)
	if err != nil {
		return // the front says what is wrong with it
	}
	params := rawjson.GetObject(message, "params")
	version := rawjson.GetText(rawjson.GetObject(params, "_meta"), versionKey)
	if version == "" {
		return // an earlier revision, whose headers the bridge keeps
	}
	r.Header.Set("Mcp-Protocol-Version", headerValue(version))
	r.Header.Set("Mcp-Method", headerValue(rawjson.GetText(message, "method")))
	if rawjson.GetText(message, "method") != "tools/call" {
		return
	}
	name := rawjson.GetText(params, "name")
	r.Header.Set("Mcp-Name", headerValue(name))
	tool := s.Tool(gate.LocalName(name))
	if tool == nil {
		return
	}
	for _, binding := range tool.ParamHeaders {
		if value, ok := scalar(params, binding.Path); ok {
			r.Header.Set("Mcp-Param-"+binding.Name, headerValue(value))
		}
	}
}

// scalar is the argument at path in the words of a header; false when it is
// absent, null, or no scalar.
func scalar(params []rawjson.Member, path []string) (string, bool) {
	members := rawjson.GetObject(params, "arguments")
	for _, key := range path[:len(path)-1] {
		members = rawjson.GetObject(members, key)
	}
	last := path[len(path)-1]
	raw, ok := rawjson.Get(members, last)
	switch {
	case !ok, rawjson.IsNull(raw), rawjson.IsObject(raw), rawjson.IsArray(raw):
		return "", false
	case rawjson.IsString(raw):
		return rawjson.GetText(members, last), true
	}
	return string(raw), true
}

// headerValue is v as MCP 2026-07-28 writes it into a header: plain where that
// is safe, base64 between markers otherwise.
func headerValue(v string) string {
	plain := strings.TrimSpace(v) == v && !strings.HasPrefix(v, "=?base64?")
	for i := 0; plain && i < len(v); i++ {
		plain = v[i] >= ' ' && v[i] <= '~' || v[i] == '\t'
	}
	if plain {
		return v
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(v)) + "?="
}
