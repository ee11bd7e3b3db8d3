package federation

import (
	"net/http"
	"strings"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// An era is one of the two families of protocol revisions.
type era = catalog.Era

const (
	legacy = catalog.Era2025
	modern = catalog.Era2026
)

// modernVersion is the one revision that is served without sessions.
const modernVersion = "2026-07-28"

// legacyVersions are the revisions that begin with initialize, newest first.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// supportedVersions is the JSON array of all of them.
const supportedVersions = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26"]`

const (
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerSession = "Mcp-Session-Id"

	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// listTTL is the ttlMs of discovery, in milliseconds: how long a caller may keep
// an answer without asking again.
const listTTL = "30000"

// eraOf tells which era a message belongs to. A message that carries the modern
// version key, or a version header that names no legacy revision, is modern and
// judged by the modern rules.
func eraOf(r *http.Request, m *message) era {
	if _, ok := rawjson.Get(m.meta, metaVersion); ok {
		return modern
	}
	header := r.Header.Get(headerVersion)
	if header == "" || isLegacyVersion(header) {
		return legacy
	}
	return modern
}

func isLegacyVersion(v string) bool {
	for _, known := range legacyVersions {
		if v == known {
			return true
		}
	}
	return v == "2024-11-05" // refused by name in the legacy path, not as an unknown modern one
}

// A modernRequest is a message of 2026-07-28 with what it says about itself.
type modernRequest struct {
	*message
	elicits bool // form elicitation is declared on this very request
}

// serveModern answers one self-describing message.
func (g *Gateway) serveModern(w http.ResponseWriter, r *http.Request, who *gate.Caller, m *message) {
	if m.isResponse() {
		writeError(w, http.StatusBadRequest, nil, &rpcError{code: codeInvalidRequest, message: "responses are not posted in " + modernVersion})
		return
	}
	if m.isNotification() {
		if m.method == "notifications/cancelled" {
			// Requests are cancelled by closing their stream. An id alone would let
			// one caller cancel another's request of the same id.
			writeError(w, http.StatusBadRequest, nil, &rpcError{code: codeInvalidRequest, message: "close the response to cancel a request"})
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	request, fault := describe(r, m)
	if fault != nil {
		if m.method == "tools/call" {
			g.recordFault(r, who, &faultyMessage{text: fault.message, id: m.id})
		}
		writeError(w, http.StatusBadRequest, m.id, fault)
		return
	}
	switch m.method {
	case "server/discover":
		g.discover(w, who, m)
	case "tools/list":
		g.list(w, who, m, modern)
	case "tools/call":
		g.callModern(w, r, who, request)
	case "subscriptions/listen":
		g.subscribe(w, r, who, m)
	default:
		writeError(w, http.StatusNotFound, m.id, &rpcError{code: codeMethodNotFound, message: "method not found"})
	}
}

// describe checks what a modern request says about itself, in _meta and in its
// headers (MCP 2026-07-28, basic/transports/streamable-http). The body decides;
// a header that says something else is refused, because something between here
// and the caller may have routed by it.
func describe(r *http.Request, m *message) (*modernRequest, *rpcError) {
	meta := m.meta
	rawVersion, hasVersion := rawjson.Get(meta, metaVersion)
	capabilities, hasCapabilities := rawjson.Get(meta, metaCapabilities)
	version, err := rawjson.String(rawVersion)
	if !hasVersion || err != nil {
		return nil, &rpcError{code: codeInvalidParams, message: "_meta lacks " + metaVersion}
	}
	if !hasCapabilities || !rawjson.IsObject(capabilities) {
		return nil, &rpcError{code: codeInvalidParams, message: "_meta lacks " + metaCapabilities}
	}
	if fault := sameHeader(r, headerVersion, version); fault != nil {
		return nil, fault
	}
	if version != modernVersion {
		data := append([]byte(`{"supported":`+supportedVersions+`,"requested":`), rawVersion...)
		return nil, &rpcError{code: codeUnsupportedVersion, message: "protocol version not supported", data: append(data, '}')}
	}
	if fault := sameHeader(r, headerMethod, m.method); fault != nil {
		return nil, fault
	}
	if m.method == "tools/call" {
		name, err := rawjson.String(m.param("name"))
		if err != nil {
			return nil, &rpcError{code: codeInvalidParams, message: "params.name is not a string"}
		}
		if fault := sameHeader(r, headerName, name); fault != nil {
			return nil, fault
		}
	}
	return &modernRequest{message: m, elicits: declaresForm(capabilities)}, nil
}

// sameHeader requires the header exactly once and equal to what the body says.
func sameHeader(r *http.Request, name, want string) *rpcError {
	values := r.Header[name]
	if len(values) != 1 {
		return &rpcError{code: codeHeaderMismatch, message: "header " + name + " must be present exactly once"}
	}
	got, ok := decodeHeaderValue(values[0])
	if !ok || got != want {
		return &rpcError{code: codeHeaderMismatch, message: "header " + name + " differs from the body"}
	}
	return nil
}

// declaresForm reports whether client capabilities include form elicitation. An
// empty elicitation object means form, by both eras' rules; {"url":{}} does not.
func declaresForm(capabilities []byte) bool {
	members, err := rawjson.Object(capabilities)
	if err != nil {
		return false
	}
	elicitation, ok := rawjson.Get(members, "elicitation")
	if !ok || !rawjson.IsObject(elicitation) {
		return false
	}
	modes, err := rawjson.Object(elicitation)
	if err != nil {
		return false
	}
	_, form := rawjson.Get(modes, "form")
	_, url := rawjson.Get(modes, "url")
	return form || !url
}

// discover answers server/discover.
func (g *Gateway) discover(w http.ResponseWriter, who *gate.Caller, m *message) {
	var b strings.Builder
	b.WriteString(`{"resultType":"complete","supportedVersions":` + supportedVersions + `,"capabilities":{"tools":{"listChanged":true}},"instructions":`)
	b.Write(rawjson.AppendString(nil, g.instructions(who)))
	b.WriteString(`,"ttlMs":` + listTTL + `,"cacheScope":"private","_meta":{"` + metaServerInfo + `":`)
	b.Write(g.serverInfo)
	b.WriteString(`}}`)
	writeResult(w, m.id, []byte(b.String()))
}

// list answers tools/list in either era from bytes encoded beforehand.
func (g *Gateway) list(w http.ResponseWriter, who *gate.Caller, m *message, e era) {
	cursor := ""
	if raw := m.param("cursor"); raw != nil && !rawjson.IsNull(raw) {
		var err error
		if cursor, err = rawjson.String(raw); err != nil || cursor == "" {
			writeEraError(w, e, m.id, &rpcError{code: codeInvalidParams, message: "cursor is not valid; list from the start"})
			return
		}
	}
	page, err := g.Catalog.Snapshot().Page(who, e, cursor)
	if err != nil {
		writeEraError(w, e, m.id, &rpcError{code: codeInvalidParams, message: err.Error()})
		return
	}
	writeResult(w, m.id, page)
}

// writeResult answers with one result object. It is not copied: a page of the
// catalogue has half a megabyte.
func writeResult(w http.ResponseWriter, id, result []byte) {
	(&answer{w: w}).finish(http.StatusOK, resultHead(nil, id), result, resultEnd)
}

var resultEnd = []byte("}")

// writeEraError answers with an error, under the status of its era.
func writeEraError(w http.ResponseWriter, e era, id []byte, failure *rpcError) {
	status := http.StatusOK
	if e == modern {
		status = statusOf(failure.code)
	}
	writeError(w, status, id, failure)
}
