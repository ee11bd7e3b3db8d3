package upstreamtest

import (
	"strconv"

	"gatehouse/gate/rawjson"
)

// A Tool is one tool of a played server.
type Tool struct {
	Name       string
	Definition string                   // as it stands in tools/list
	Headers    map[string]string        // x-mcp-header name to argument
	Run        func(x *Exchange) string // answers a call with a result object
}

// Tools are those of a server that nobody scripted:
//
//	echo      gives the arguments back as text, byte for byte
//	fail      runs and says that it failed
//	count     reports progress three times, when it was asked to
//	navigate  goes to a place; where reads it. Only a session remembers it.
//	route     binds its region to a header
func Tools() []Tool {
	return []Tool{
		{Name: "echo", Run: echo,
			Definition: `{"name":"echo","description":"Gives the arguments back.","inputSchema":{"type":"object"}}`},
		{Name: "fail", Run: fail,
			Definition: `{"name":"fail","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`},
		{Name: "count", Run: count,
			Definition: `{"name":"count","inputSchema":{"type":"object","additionalProperties":false}}`},
		{Name: "navigate", Run: navigate,
			Definition: `{"name":"navigate","inputSchema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}`},
		{Name: "where", Run: where,
			Definition: `{"name":"where","inputSchema":{"type":"object","additionalProperties":false}}`},
		{Name: "route", Run: echo, Headers: map[string]string{"Region": "region"},
			Definition: `{"name":"route","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`},
	}
}

// Text is a result with one block of text.
func Text(text string) string {
	return `{"content":[{"type":"text","text":` + quote(text) + `}]}`
}

func echo(x *Exchange) string { return Text(string(x.Param("arguments"))) }

func fail(*Exchange) string {
	return `{"content":[{"type":"text","text":"it did not work"}],"isError":true}`
}

func count(x *Exchange) string {
	if token := x.Meta("progressToken"); rawjson.IsString(token) {
		for i := range 3 {
			x.Notify("notifications/progress",
				`{"progressToken":`+string(token)+`,"progress":`+strconv.Itoa(i+1)+`,"total":3,"message":"step"}`)
		}
	}
	return Text("3")
}

func navigate(x *Exchange) string {
	to := (&Request{Params: x.Param("arguments")}).Text("to")
	if x.state != nil {
		x.state.move(to)
	}
	return Text("went to " + to)
}

func where(x *Exchange) string {
	if x.state == nil {
		return Text("nowhere")
	}
	return Text(x.state.where())
}
