package upstreamtest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxBody is the largest reply that a client of ours reads by default.
const maxBody = 2 << 20

// A misdeed is one departure from the protocol. It replaces the answers to the
// methods named; the rest of the server behaves, so that a client gets as far
// as the rule it is meant to meet.
type misdeed struct {
	what   string
	on     []string // nil: tools/list and tools/call
	script Script
}

var work = []string{"tools/list", "tools/call"}

// HostileKinds lists the ways in which Hostile can misbehave, in order.
func HostileKinds() []string { return slices.Sorted(maps.Keys(misdeeds())) }

// HostileSummary says in a few words what a kind does; "" for an unknown one.
func HostileSummary(kind string) string { return summaries()[kind] }

var summaries = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for kind, m := range misdeeds() {
		all[kind] = m.what
	}
	return all
})

// Hostile returns a server of the 2025 era that misbehaves in one way, or nil
// for a kind that HostileKinds does not list.
func Hostile(kind string) http.Handler {
	s := HostileServer(kind)
	if s == nil {
		return nil
	}
	return s
}

// HostileServer is Hostile with the record of requests at hand.
func HostileServer(kind string) *Server {
	m, ok := misdeeds()[kind]
	if !ok {
		return nil
	}
	s := New(Profile{Name: "hostile-" + kind})
	if m.on == nil {
		m.on = work
	}
	for _, method := range m.on {
		s.On(method, m.script)
	}
	return s
}

// Misdeed is how a hostile server of that kind answers one method; nil when it
// answers it properly. It lets a server of any profile misbehave.
func Misdeed(kind, method string) Script {
	m := misdeeds()[kind]
	if m.on == nil {
		m.on = work
	}
	if !slices.Contains(m.on, method) {
		return nil
	}
	return m.script
}

// misdeeds are made anew for each server, since some of them count.
func misdeeds() map[string]misdeed {
	all := map[string]misdeed{}
	for _, group := range []map[string]misdeed{envelopes(), bodies(), listings(), definitions(), streams(), handshakes(), statuses()} {
		maps.Copy(all, group)
	}
	return all
}

// reply answers with text in which ID stands for the request's id and RESULT
// for a result that would do.
func reply(text string) Script {
	return func(x *Exchange) { x.Raw(http.StatusOK, "application/json", x.fill(text)) }
}

func (x *Exchange) fill(text string) string {
	return strings.NewReplacer("ID", string(x.ID), "RESULT", x.result()).Replace(text)
}

// result is one that the method allows.
func (x *Exchange) result() string {
	if x.Method == "tools/list" {
		return `{"tools":[` + Tools()[0].Definition + `]}`
	}
	return Text("done")
}

// envelopes break a row of the table of replies.
func envelopes() map[string]misdeed {
	said := func(what, text string) misdeed { return misdeed{what: what, script: reply(text)} }
	return map[string]misdeed{
		"foreign-id":       said("answers with somebody else's id", `{"jsonrpc":"2.0","id":"someone-else","result":RESULT}`),
		"numeric-id":       said("answers with a number for an id", `{"jsonrpc":"2.0","id":7,"result":RESULT}`),
		"null-id":          said("answers with id null", `{"jsonrpc":"2.0","id":null,"result":RESULT}`),
		"missing-id":       said("answers without an id", `{"jsonrpc":"2.0","result":RESULT}`),
		"missing-jsonrpc":  said("leaves jsonrpc out", `{"id":ID,"result":RESULT}`),
		"wrong-jsonrpc":    said("speaks JSON-RPC 1.0", `{"jsonrpc":"1.0","id":ID,"result":RESULT}`),
		"both-branches":    said("sends result and error", `{"jsonrpc":"2.0","id":ID,"result":RESULT,"error":null}`),
		"no-branch":        said("sends neither result nor error", `{"jsonrpc":"2.0","id":ID}`),
		"error-string":     said("sends an error that is no object", `{"jsonrpc":"2.0","id":ID,"error":"no"}`),
		"array-result":     said("sends an array as result", `{"jsonrpc":"2.0","id":ID,"result":[]}`),
		"scalar-result":    said("sends a string as result", `{"jsonrpc":"2.0","id":ID,"result":"ok"}`),
		"null-result":      said("sends null as result", `{"jsonrpc":"2.0","id":ID,"result":null}`),
		"method-beside":    said("sends a method beside the result", `{"jsonrpc":"2.0","id":ID,"method":"x","result":RESULT}`),
		"batch":            said("wraps its answer in an array", `[{"jsonrpc":"2.0","id":ID,"result":RESULT}]`),
		"folded-key":       said("writes Result for result", `{"jsonrpc":"2.0","id":ID,"Result":RESULT}`),
		"duplicate-key":    said("says result twice", `{"jsonrpc":"2.0","id":ID,"result":RESULT,"result":RESULT}`),
		"duplicate-inside": said("says a key of its result twice", `{"jsonrpc":"2.0","id":ID,"result":{"tools":[],"content":[],"tools":[],"content":[]}}`),
		"trailing-bytes":   said("goes on after its answer", `{"jsonrpc":"2.0","id":ID,"result":RESULT}{}`),
		"not-json":         said("sends a page of HTML as JSON", `<html><body>It works!</body></html>`),
		"byte-order-mark":  said("begins its JSON with a byte order mark", "\uFEFF"+`{"jsonrpc":"2.0","id":ID,"result":RESULT}`),
		"invalid-utf8":     said("sends bytes that are not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"tools\":[],\"content\":[],\"x\":\"\xff\xfe\"}}"),
		"deep-nesting":     said("nests its result 100 000 deep", `{"jsonrpc":"2.0","id":ID,"result":{"content":[],"tools":[],"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}}`),
		"input-required":   said("asks for input that nobody offered", `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{}}}}}`),
		"content-object":   {what: "sends content that is no array", on: []string{"tools/call"}, script: reply(`{"jsonrpc":"2.0","id":ID,"result":{"content":{"type":"text"}}}`)},
		"content-null":     {what: "sends content null", on: []string{"tools/call"}, script: reply(`{"jsonrpc":"2.0","id":ID,"result":{"content":null}}`)},
		"unpaired-escapes": said("sends unpaired surrogate escapes", `{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"echo","description":"\ud800","inputSchema":{"type":"object"}}],"content":[{"type":"text","text":"\ud800"}]}}`),
	}
}

// bodies are wrong as HTTP carries them.
func bodies() map[string]misdeed {
	return map[string]misdeed{
		"over-cap": {what: "sends one byte more than 2 MiB", script: func(x *Exchange) {
			message := x.fill(`{"jsonrpc":"2.0","id":ID,"result":RESULT}`)
			x.Raw(http.StatusOK, "application/json", message+strings.Repeat(" ", maxBody+1-len(message)))
		}},
		"gzip-bomb": {what: "sends 60 KiB that unpack to 64 MiB", script: bomb},
		"unknown-encoding": {what: "packs its answer in a way nobody asked for", script: func(x *Exchange) {
			x.Writer.Header().Set("Content-Encoding", "br")
			x.Raw(http.StatusOK, "application/json", x.fill(`{"jsonrpc":"2.0","id":ID,"result":RESULT}`))
		}},
		"empty-body":    {what: "answers 200 with nothing", script: func(x *Exchange) { x.Raw(http.StatusOK, "application/json", "") }},
		"accepted-only": {what: "answers a request with 202 and nothing", script: func(x *Exchange) { x.Accept() }},
		"wrong-type": {what: "answers as text/html", script: func(x *Exchange) {
			x.Raw(http.StatusOK, "text/html", x.fill(`{"jsonrpc":"2.0","id":ID,"result":RESULT}`))
		}},
		"trickling-body": {what: "sends one byte every half second", script: func(x *Exchange) {
			x.Writer.Header().Set("Content-Length", "100000")
			x.Raw(http.StatusOK, "application/json", "{")
			x.forEver(500*time.Millisecond, func() { write(x.Writer, " "); flush(x.Writer) })
		}},
		"silent": {what: "reads the request and never answers", script: func(x *Exchange) { <-x.Gone() }},
		"hang-up": {what: "reads the request and closes the connection", script: func(x *Exchange) {
			x.HangUp()
		}},
		"half-body": {what: "closes the connection within its answer", script: func(x *Exchange) {
			x.Writer.Header().Set("Content-Length", "5000")
			x.Raw(http.StatusOK, "application/json", x.fill(`{"jsonrpc":"2.0","id":ID,`))
			flush(x.Writer)
			x.HangUp()
		}},
		"oversize-header": {what: "sends 100 KiB of headers", script: func(x *Exchange) {
			for i := range 100 {
				x.Writer.Header().Set("X-Filler-"+strconv.Itoa(i), strings.Repeat("a", 1<<10))
			}
			x.Raw(http.StatusOK, "application/json", x.fill(`{"jsonrpc":"2.0","id":ID,"result":RESULT}`))
		}},
	}
}

// blank is 64 MiB of spaces as gzip packs them.
var blank = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	spaces := bytes.Repeat([]byte(" "), 1<<20)
	for range 64 {
		_, _ = z.Write(spaces) // a buffer takes everything
	}
	_ = z.Close()
	return packed.Bytes()
})

func bomb(x *Exchange) {
	x.Writer.Header().Set("Content-Encoding", "gzip")
	x.Writer.Header().Set("Content-Type", "application/json")
	if _, err := x.Writer.Write(blank()); err != nil {
		return // the client had enough
	}
	z := gzip.NewWriter(x.Writer) // members of one gzip stream follow each other
	_, _ = z.Write([]byte(x.fill(`{"jsonrpc":"2.0","id":ID,"result":RESULT}`)))
	_ = z.Close()
}

// forEver does one thing again and again until the client has gone.
func (x *Exchange) forEver(every time.Duration, do func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-x.Gone():
			return
		case <-ticker.C:
			do()
		}
	}
}

// listings walk badly.
func listings() map[string]misdeed {
	list := []string{"tools/list"}
	page := func(next string) Script {
		return reply(`{"jsonrpc":"2.0","id":ID,"result":{"tools":[` + Tools()[0].Definition + `],"nextCursor":` + next + `}}`)
	}
	var turn atomic.Int64
	return map[string]misdeed{
		"repeated-cursor": {what: "gives the same cursor again", on: list, script: page(`"c1"`)},
		"cursor-cycle": {what: "gives cursors in a circle", on: list, script: func(x *Exchange) {
			next := `"c1"`
			if x.Text("cursor") == "c1" {
				next = `"c2"`
			}
			page(next)(x)
		}},
		"endless-cursor": {what: "gives a new cursor for ever", on: list, script: func(x *Exchange) {
			page(fmt.Sprintf(`"c%d"`, turn.Add(1)))(x)
		}},
		"number-cursor": {what: "gives a number as cursor", on: list, script: page(`5`)},
		"late-failure": {what: "fails on the third page", on: list, script: func(x *Exchange) {
			switch x.Text("cursor") {
			case "":
				page(`"c1"`)(x)
			case "c1":
				page(`"c2"`)(x)
			default:
				x.Error(http.StatusOK, -32602, "invalid cursor")
			}
		}},
		"flood": {what: "lists 6 000 tools", on: list, script: func(x *Exchange) {
			var b strings.Builder
			for i := range 6000 {
				fmt.Fprintf(&b, `,{"name":"t%d","inputSchema":{"type":"object"}}`, i)
			}
			x.Result(`{"tools":[` + b.String()[1:] + `]}`)
		}},
		"tools-object":  {what: "sends tools that are no array", on: list, script: reply(`{"jsonrpc":"2.0","id":ID,"result":{"tools":{}}}`)},
		"tools-missing": {what: "answers tools/list without tools", on: list, script: reply(`{"jsonrpc":"2.0","id":ID,"result":{}}`)},
	}
}

// streams are event streams that mislead.
func streams() map[string]misdeed {
	const good = `{"jsonrpc":"2.0","id":ID,"result":RESULT}`
	event := func(x *Exchange, text string) { x.Event(x.fill(text)) }
	return map[string]misdeed{
		"two-responses": {what: "answers the same request twice", script: func(x *Exchange) { event(x, good); event(x, good) }},
		"foreign-event": {what: "answers somebody else's request first", script: func(x *Exchange) {
			event(x, `{"jsonrpc":"2.0","id":"someone-else","result":RESULT}`)
			event(x, good)
		}},
		"batch-event": {what: "wraps its answer in an array inside an event", script: func(x *Exchange) { event(x, "["+good+"]") }},
		"keep-alive": {what: "sends comments for ever", script: func(x *Exchange) {
			x.forEver(50*time.Millisecond, func() { x.Chunk(": k\n") })
		}},
		"progress-for-ever": {what: "reports progress for ever", script: func(x *Exchange) {
			x.forEver(100*time.Millisecond, func() { x.Notify("notifications/progress", `{"progressToken":"p","progress":1}`) })
		}},
		"endless-line": {what: "sends one line without end", script: func(x *Exchange) {
			x.Chunk("data: ")
			for x.Context().Err() == nil {
				x.Chunk(strings.Repeat("A", 64<<10))
			}
		}},
		"asks-back": {what: "asks the client and waits for ever", script: func(x *Exchange) {
			event(x, `{"jsonrpc":"2.0","id":0,"method":"ping"}`)
			event(x, `{"jsonrpc":"2.0","id":ID,"method":"elicitation/create","params":{}}`)
			<-x.Gone()
		}},
		"stays-open": {what: "answers and keeps the stream open", script: func(x *Exchange) { event(x, good); <-x.Gone() }},
		"changed-flood": {what: "says 200 times that its list changed", script: func(x *Exchange) {
			for range 200 {
				x.Notify("notifications/tools/list_changed", `{}`)
			}
			event(x, good)
		}},
		"ends-early": {what: "ends the stream without an answer", script: func(x *Exchange) { x.Chunk(": bye\n\n") }},
	}
}

// handshakes go wrong before there is a session.
func handshakes() map[string]misdeed {
	begin := []string{"initialize"}
	welcome := func(version string) string {
		return `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":` + version + `,"capabilities":{},"serverInfo":{"name":"played","version":"1"}}}`
	}
	session := func(ids ...string) Script {
		return func(x *Exchange) {
			x.Writer.Header()["Mcp-Session-Id"] = ids
			reply(welcome(`"2025-11-25"`))(x)
		}
	}
	return map[string]misdeed{
		"unknown-version":     {what: "chooses a version of the future", on: begin, script: reply(welcome(`"2027-01-01"`))},
		"invented-version":    {what: "chooses a version that never was", on: begin, script: reply(welcome(`"2024-06-18"`))},
		"number-version":      {what: "chooses a version that is a number", on: begin, script: reply(welcome(`20250618`))},
		"session-space":       {what: "issues a session id with a space", on: begin, script: session("a b")},
		"session-high-byte":   {what: "issues a session id beyond ASCII", on: begin, script: session("abc\xE9")},
		"session-long":        {what: "issues a session id of 9 KiB", on: begin, script: session(strings.Repeat("a", 9<<10))},
		"session-twice":       {what: "issues two session ids", on: begin, script: session("one", "two")},
		"initialized-refused": {what: "answers initialized with 500", on: []string{"notifications/initialized"}, script: status(500)},
		"initialized-endless": {what: "answers initialized with a stream without end", on: []string{"notifications/initialized"},
			script: func(x *Exchange) { x.forEver(50*time.Millisecond, func() { x.Chunk(": k\n") }) }},
	}
}

// statuses say no in HTTP's words.
func statuses() map[string]misdeed {
	all := append([]string{"initialize", "server/discover"}, work...)
	return map[string]misdeed{
		"redirect-foreign": {what: "redirects to another host", on: all, script: func(x *Exchange) {
			x.Writer.Header().Set("Location", "http://elsewhere.invalid/collect?secret=1")
			x.Writer.WriteHeader(http.StatusTemporaryRedirect)
		}},
		"redirect-slash": {what: "redirects to its own path with a slash", on: all, script: func(x *Exchange) {
			x.Writer.Header().Set("Location", x.http.URL.Path+"/")
			x.Writer.WriteHeader(http.StatusPermanentRedirect)
		}},
		"unauthorized": {what: "answers 401 and names an address to fetch", script: func(x *Exchange) {
			x.Writer.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://169.254.169.254/latest"`)
			x.Raw(http.StatusUnauthorized, "text/plain", "who are you")
		}},
		"forbidden": {what: "answers 403", script: status(http.StatusForbidden)},
		"broken":    {what: "answers 500", script: status(http.StatusInternalServerError)},
		"busy": {what: "answers 429 and asks to wait an hour", script: func(x *Exchange) {
			x.Writer.Header().Set("Retry-After", "3600")
			x.Error(http.StatusTooManyRequests, -32000, "quota")
		}},
		"away": {what: "answers 503", script: status(http.StatusServiceUnavailable)},
	}
}

func status(code int) Script {
	return func(x *Exchange) { x.Raw(code, "text/plain", http.StatusText(code)) }
}
