package probe

import "gatehouse/upstream/wire"

// A Level says what breaking a rule means.
type Level string

// The levels. Breaking a Must or a Strict rule is a departure, breaking a Should
// is a remark.
const (
	Must   Level = "must"   // the specification demands it
	Should Level = "should" // the specification asks for it
	Strict Level = "strict" // a careful client cannot work with anything else
)

// A Rule is one sentence that a server has to hold to.
type Rule struct {
	ID     string `json:"id"`
	Level  Level  `json:"level"`
	Text   string `json:"text"`
	Source string `json:"source"`
}

// Where the rules stand.
const (
	jsonRPC    = "JSON-RPC 2.0, sections 4 and 5"
	base       = "MCP 2026-07-28, basic"
	transport  = "MCP 2025-11-25, basic/transports"
	lifecycle  = "MCP 2025-11-25, basic/lifecycle"
	streamable = "MCP 2026-07-28, basic/transports/streamable-http"
	versioning = "MCP 2026-07-28, basic/versioning"
	discovery  = "MCP 2026-07-28, server/discover"
	pagination = "MCP 2026-07-28, server/utilities/pagination"
	caching    = "MCP 2026-07-28, server/utilities/caching"
	toolsPage  = "MCP 2026-07-28, server/tools"
	careful    = "what a strict client can work with"
)

// What any reply has to be.
var (
	ruleReply      = Rule{"reply", Must, "a request gets one well-formed response", jsonRPC}
	ruleReached    = Rule{"answer", Strict, "a request that was read is answered, and the connection stays until it is", careful}
	ruleTime       = Rule{"time", Strict, "a request is answered within the time it is given", careful}
	ruleSize       = Rule{"size", Strict, "a reply has at most 2 MiB", careful}
	ruleHeaders    = Rule{"header_size", Strict, "the headers of a reply have at most 64 KiB", careful}
	ruleType       = Rule{"content_type", Must, "a reply is application/json or text/event-stream, in no encoding that was not asked for", transport}
	ruleRedirect   = Rule{"redirect", Strict, "the endpoint answers at its own url; a client that follows a redirect may carry its credential elsewhere", careful}
	ruleUninvited  = Rule{"result_type", Must, "resultType is complete, unless the client declared what allows another", base}
	ruleStatus     = Rule{"status", Must, "a good request is answered with a status of 2xx", transport}
	ruleChallenge  = Rule{"challenge", Must, "a 401 says in WWW-Authenticate where authorization begins", "MCP 2026-07-28, basic/authorization"}
	ruleSpeaks     = Rule{"era", Must, "the endpoint answers initialize or server/discover", versioning}
	ruleOrigin     = Rule{"origin", Must, "an Origin that is not the server's own is refused with 403", streamable}
	ruleUnknown    = Rule{"unknown_method", Must, "an unknown method is refused with -32601", jsonRPC}
	ruleCapability = Rule{"capability", Must, "a server that lists tools declares the capability tools", toolsPage}
)

// What malformed replies break.
var malformedRules = map[wire.Rule]Rule{
	wire.RuleJSON:     {"json", Must, "a reply is one JSON value, with nothing before or after it", jsonRPC},
	wire.RuleUTF8:     {"utf8", Must, "JSON is UTF-8", base},
	wire.RuleKeys:     {"duplicate_keys", Strict, "no object says a key twice; two readers would disagree about it", careful},
	wire.RuleKeyCase:  {"key_case", Strict, "no key differs from one of the envelope's in letter case only", careful},
	wire.RuleDepth:    {"depth", Strict, "values nest at most 512 levels deep", careful},
	wire.RuleObject:   {"object", Must, "a reply is one object, no batch", base},
	wire.RuleKind:     {"kind", Must, "a response has no method", jsonRPC},
	wire.RuleVersion:  {"jsonrpc", Must, `"jsonrpc" is exactly "2.0"`, jsonRPC},
	wire.RuleID:       {"id", Must, "a response has the id of its request, as the same JSON value", jsonRPC},
	wire.RuleBranch:   {"result_or_error", Must, "a response has exactly one of result and error", jsonRPC},
	wire.RuleError:    {"error", Must, "an error is an object with an integer code and a string message", jsonRPC},
	wire.RuleResult:   {"result", Must, "a result is an object", base},
	wire.RuleContent:  {"content", Must, "content is an array of objects", toolsPage},
	wire.RuleResponse: {"response", Must, "a request is answered with a response", transport},
	wire.RuleOnce:     {"one_response", Must, "a request is answered once", transport},
}

// The 2025 era.
var (
	ruleVersion     = Rule{"version", Must, "initialize answers with a protocol version that exists, as a string", lifecycle}
	ruleNegotiate   = Rule{"negotiation", Must, "a version the server does not know is answered with one that it does", lifecycle}
	ruleHello       = Rule{"introduction", Must, "initialize answers with capabilities and with serverInfo: name and version", lifecycle}
	ruleSessionID   = Rule{"session_id", Must, "a session id is one header of 1 to 512 visible ASCII characters", transport}
	ruleInitialized = Rule{"accepted", Must, "an accepted notification is answered with 202 and no body", transport}
	rulePing        = Rule{"ping", Must, "ping is answered with an empty result", "MCP 2025-11-25, basic/utilities/ping"}
	ruleNoSession   = Rule{"session_missing", Should, "where sessions are issued, a request without one is answered with 400", transport}
	ruleForeign     = Rule{"session_unknown", Must, "a session that is unknown or over is answered with 404", transport}
	ruleBadVersion  = Rule{"version_header", Must, "an MCP-Protocol-Version that the server does not know is answered with 400", transport}
	ruleGet         = Rule{"get", Must, "GET opens an event stream or is answered with 405", transport}
	ruleDelete      = Rule{"delete", Must, "DELETE ends the session or is answered with 405", transport}
)

// The 2026 era.
var (
	ruleVersions      = Rule{"supported_versions", Must, "server/discover names supportedVersions, and 2026-07-28 among them", discovery}
	ruleCapabilities  = Rule{"capabilities", Must, "server/discover names the server's capabilities", discovery}
	ruleServerInfo    = Rule{"server_info", Should, "results carry serverInfo in _meta", base}
	ruleResultType    = Rule{"result_type_present", Must, "a result says its resultType", base}
	ruleTTL           = Rule{"ttl", Must, "ttlMs is an integer of 0 or more", caching}
	ruleScope         = Rule{"cache_scope", Must, `cacheScope is "public" or "private", the same on all pages`, caching}
	ruleNoMint        = Rule{"no_session", Must, "no session id is issued in this era", streamable}
	ruleUnsupported   = Rule{"unsupported_version", Must, "an unknown version is answered with 400 and -32022, with data.supported and data.requested", streamable}
	ruleVersionHeader = Rule{"header_version", Must, "a version header that differs from the body is answered with 400 and -32020", streamable}
	ruleMethodHeader  = Rule{"header_method", Must, "an Mcp-Method that is missing or differs from the body is answered with 400 and -32020", streamable}
	ruleMeta          = Rule{"meta", Must, "a request without the required keys of _meta is answered with 400 and -32602", streamable}
	ruleNotFound      = Rule{"unknown_method_status", Must, "an unknown method is answered with 404 and -32601", streamable}
	ruleModernGet     = Rule{"get_refused", Should, "GET and DELETE are answered with 405", streamable}
)

// Listings and definitions.
var (
	rulePage       = Rule{"page", Must, "tools/list answers with an array of tools", toolsPage}
	ruleCursor     = Rule{"cursor", Must, "nextCursor is a string, or absent at the end", pagination}
	ruleEnd        = Rule{"list_ends", Strict, "the list comes to an end: no cursor is given twice, 50 pages and 5000 tools are enough", careful}
	ruleBadCursor  = Rule{"bad_cursor", Should, "a cursor that the server never gave is refused with -32602", pagination}
	ruleStable     = Rule{"same_list", Must, "the list does not change because of what else was asked", toolsPage}
	ruleOrder      = Rule{"list_order", Should, "the order of the list stays the same", toolsPage}
	ruleName       = Rule{"tool_name", Should, "a tool's name has 1 to 128 characters of A-Z a-z 0-9 _ - .", toolsPage}
	ruleHiddenName = Rule{"tool_name_hidden", Strict, "a tool's name has no characters that cannot be seen", careful}
	ruleDefinition = Rule{"tool", Strict, `a tool can be used: named once, an inputSchema with "type": "object" that compiles without the network, texts and sizes within reason`, toolsPage}
	ruleHint       = Rule{"tool_hint", Should, "a definition holds nothing that clients stumble over", careful}
)
