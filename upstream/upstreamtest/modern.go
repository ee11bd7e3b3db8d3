package upstreamtest

import (
	"encoding/base64"
	"net/http"
	"strings"

	"gatehouse/gate/rawjson"
)

const metaPrefix = "io.modelcontextprotocol/"

func (s *Server) answerModern(x *Exchange) {
	if x.HTTPMethod != http.MethodPost || x.Method == "" {
		x.Writer.Header().Set("Allow", "POST")
		x.Raw(http.StatusMethodNotAllowed, "text/plain", "POST only")
		return
	}
	if x.ID == nil {
		x.Accept()
		return
	}
	if !s.checkModern(x) {
		return
	}
	const hints = `"resultType":"complete","ttlMs":0,"cacheScope":"private",`
	switch x.Method {
	case "server/discover":
		x.Result(`{` + hints + `"supportedVersions":["` + ModernVersion + `"],"capabilities":{"tools":{}},` +
			`"_meta":{"` + metaPrefix + `serverInfo":{"name":"played","version":"1.0"}}}`)
	case "tools/list":
		s.list(x, hints)
	case "tools/call":
		s.call(x)
	default:
		x.Error(http.StatusNotFound, -32601, "method not found")
	}
}

// checkModern holds the request to what revision 2026-07-28 demands of it.
func (s *Server) checkModern(x *Exchange) bool {
	version, _ := rawjson.String(x.Meta(metaPrefix + "protocolVersion"))
	switch {
	case version != "" && version != ModernVersion || x.Method == "initialize":
		x.ErrorData(http.StatusBadRequest, -32022, "unsupported protocol version",
			`{"supported":["`+ModernVersion+`"],"requested":`+quote(version)+`}`)
	case version == "" || !rawjson.IsObject(x.Meta(metaPrefix+"clientCapabilities")):
		x.Error(http.StatusBadRequest, -32602, "_meta lacks a required key")
	case x.Header.Get("Mcp-Protocol-Version") != version:
		x.Error(http.StatusBadRequest, -32020, "MCP-Protocol-Version differs from the body")
	case x.Header.Get("Mcp-Method") != x.Method:
		x.Error(http.StatusBadRequest, -32020, "Mcp-Method differs from the body")
	case x.Method == "tools/call" && !sameHeader(x.Header, "Mcp-Name", x.Text("name")):
		x.Error(http.StatusBadRequest, -32020, "Mcp-Name differs from the body")
	case x.Method == "tools/call" && !s.paramHeaders(x):
		x.Error(http.StatusBadRequest, -32020, "Mcp-Param header differs from the body")
	case x.Header.Get("Mcp-Session-Id") != "":
		x.Error(http.StatusBadRequest, -32600, "there are no sessions")
	default:
		return true
	}
	return false
}

// paramHeaders compares the headers that the tool binds with the arguments.
func (s *Server) paramHeaders(x *Exchange) bool {
	name := x.Text("name")
	for _, tool := range s.Tools {
		if tool.Name != name {
			continue
		}
		arguments := &Request{Params: x.Param("arguments")}
		for header, argument := range tool.Headers {
			value := arguments.Param(argument)
			present := value != nil && !rawjson.IsNull(value)
			text := string(value)
			if rawjson.IsString(value) {
				text = arguments.Text(argument)
			}
			if present != (len(x.Header.Values("Mcp-Param-"+header)) == 1) ||
				present && !sameHeader(x.Header, "Mcp-Param-"+header, text) {
				return false
			}
		}
	}
	return true
}

// sameHeader decodes a header value and compares it with what the body says.
func sameHeader(h http.Header, name, want string) bool {
	got := h.Get(name)
	if inner, ok := strings.CutPrefix(got, "=?base64?"); ok {
		inner, closed := strings.CutSuffix(inner, "?=")
		decoded, err := base64.StdEncoding.DecodeString(inner)
		return closed && err == nil && string(decoded) == want
	}
	return got == want && len(h.Values(name)) == 1
}
