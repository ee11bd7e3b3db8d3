package wire

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// call is a tool call in the 2025 era.
func call() Request {
	return Request{Method: "tools/call", Params: [][]byte{[]byte(`{"name":"search"}`)}, Once: true}
}

// streamed answers with an event stream of the given chunks; <ID> stands for
// the id of the request.
func streamed(chunks ...string) func(w net.Conn, r sent) bool {
	return func(w net.Conn, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		for _, c := range chunks {
			chunk(w, strings.ReplaceAll(c, "<ID>", r.id))
		}
		io.WriteString(w, "0\r\n\r\n")
		return true
	}
}

// replied answers with a body; <ID> stands for the id of the request.
func replied(status, header, body string) func(w net.Conn, r sent) bool {
	return func(w net.Conn, r sent) bool {
		respond(w, status, header, strings.ReplaceAll(body, "<ID>", r.id))
		return true
	}
}

func wantResult(t *testing.T, reply *Reply, failure *Error, want string) {
	t.Helper()
	if failure != nil {
		t.Fatal(failure)
	}
	if string(reply.Result) != want {
		t.Errorf("got the result %s, want %s", reply.Result, want)
	}
}

func TestC01_LineEndsAndByteOrderMark(t *testing.T) {
	const result = `{"protocolVersion":"2025-11-25"}`
	const data = `data: {"jsonrpc":"2.0","id":"<ID>","result":` + result + `}`
	for name, stream := range map[string]string{
		"crlf":  "event: message\r\nid: 1\r\n" + data + "\r\n\r\n",
		"cr":    "event: message\rid: 1\r" + data + "\r\r",
		"bom":   "\xEF\xBB\xBF" + data + "\n\n",
		"mixed": data + "\r\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			reply, failure := once(t, Request{Method: "initialize"}, EndpointOptions{}, streamed(stream))
			wantResult(t, reply, failure, result)
			if !reply.EventStream {
				t.Error("the reply is not marked as an event stream")
			}
		})
	}
	_, failure := once(t, Request{Method: "initialize"}, EndpointOptions{}, replied("200 OK", "", "\xEF\xBB\xBF"+response("<ID>", result)))
	wantKind(t, failure, Malformed)
}

func TestC02_ChunksCarryNoMeaning(t *testing.T) {
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		for _, c := range []string{
			"data: {\"jsonrpc\":\"2.0\",\r",
			"\ndata: \"id\":\"" + r.id + "\",\r\ndata:\"result\":{\"content\":[{\"type\":\"text\",\"te",
			"xt\":\"\xC3",
			"\xA9\"}]}}\r\n\r\n",
		} {
			chunk(w, c)
			time.Sleep(20 * time.Millisecond) // so that each arrives alone
		}
		io.WriteString(w, "0\r\n\r\n")
		return true
	})
	reply, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), call())
	wantResult(t, reply, failure, `{"content":[{"type":"text","text":"é"}]}`)
}

func TestC03_WhatIsNoAnswerPasses(t *testing.T) {
	passing := ": warm-up\n\nid: 0\nretry: 3000\ndata:\n\nevent: ping\ndata: 2026-01-01 00:00:00\n\nevent: keepalive\ndata: {}\n\n" +
		"data: {\"type\":\"heartbeat\",\"ts\":1}\n\n"
	answer := "event: message\ndata: " + response("<ID>", `{"tools":[]}`) + "\n\n"
	reply, failure := once(t, Request{Method: "tools/list"}, EndpointOptions{}, streamed(passing, answer))
	wantResult(t, reply, failure, `{"tools":[]}`)
	if reply.BytesIn < int64(len(passing)) {
		t.Errorf("%d bytes were counted, and %d passed", reply.BytesIn, len(passing))
	}
	_, failure = once(t, Request{Method: "tools/list"}, EndpointOptions{MaxResponse: int64(len(passing))}, streamed(passing, answer))
	wantKind(t, failure, TooLarge)
}

func TestC06_OnlyOurResponseCounts(t *testing.T) {
	notifications := `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}` + "\n\n" +
		`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}` + "\n\n"
	ours := "data: " + response("<ID>", "{}") + "\n\n"
	reply, failure := once(t, call(), EndpointOptions{}, streamed(notifications, ours))
	wantResult(t, reply, failure, "{}")
	for name, stream := range map[string]string{
		"another id":            "data: " + response("someone-else", "{}") + "\n\n",
		"a second response":     ours + "data: " + response("<ID>", `{"x":1}`) + "\n\n",
		"a number for a string": `data: {"jsonrpc":"2.0","id":7,"result":{}}` + "\n\n",
	} {
		_, failure := once(t, call(), EndpointOptions{}, streamed(notifications, stream))
		if failure == nil || failure.Kind != Malformed || !failure.Wrote {
			t.Errorf("%s: %v", name, failure)
		}
	}
}

func TestC07_ContentTypes(t *testing.T) {
	for _, media := range []string{"application/json; charset=utf-8", "Application/JSON", "text/event-stream;charset=UTF-8", ""} {
		reply, failure := once(t, Request{Method: "initialize"}, EndpointOptions{}, func(w net.Conn, r sent) bool {
			if got := r.header.Values("Content-Type"); len(got) != 1 || got[0] != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
			if got := r.header.Values("Accept"); len(got) != 1 || got[0] != "application/json, text/event-stream" {
				t.Errorf("Accept %q", got)
			}
			body, header := response(r.id, "{}"), ""
			if media != "" {
				header = "Content-Type: " + media
			}
			if strings.HasPrefix(media, "text") {
				body = "data: " + body + "\n\n"
			}
			respond(w, "200 OK", header, body)
			return true
		})
		wantResult(t, reply, failure, "{}")
	}
}

func TestC08_NotificationAnswers(t *testing.T) {
	for name, answer := range map[string]func(w net.Conn, r sent) bool{
		"202 with text": replied("202 Accepted", "Content-Type: text/plain", "Accepted"),
		"204":           replied("204 No Content", "", ""),
		"200 empty":     replied("200 OK", "Content-Type: application/json", ""),
		"200 null":      replied("200 OK", "", "null"),
	} {
		if reply, failure := once(t, Request{Method: "notifications/initialized", Notification: true}, EndpointOptions{}, answer); failure != nil || reply.Result != nil {
			t.Errorf("%s: %v, %v", name, reply, failure)
		}
	}
	_, failure := once(t, Request{Method: "notifications/initialized", Notification: true}, EndpointOptions{}, replied("500 x", "", ""))
	wantKind(t, failure, HTTPStatus)
}

func TestC09_TheNumberOfA2xxDoesNotMatter(t *testing.T) {
	const result = `{"content":[{"type":"text","text":"ok"}]}`
	reply, failure := once(t, call(), EndpointOptions{}, func(w net.Conn, r sent) bool {
		io.WriteString(w, "HTTP/1.1 202 Accepted\r\nContent-Type: text/event-stream\r\n\r\ndata: "+response(r.id, result)+"\n\n")
		return false
	})
	wantResult(t, reply, failure, result)
	reply, failure = once(t, call(), EndpointOptions{}, replied("201 Created", "Content-Type: application/json", response("<ID>", result)))
	wantResult(t, reply, failure, result)
	for status, text := range map[string]string{"202 Accepted": "status 202", "204 No Content": "status 204"} {
		_, failure = once(t, call(), EndpointOptions{}, replied(status, "", ""))
		wantKind(t, failure, Malformed)
		if !strings.Contains(failure.Error(), "no response to the request ("+text+")") || !failure.Wrote {
			t.Errorf("%s: %v, wrote %t", status, failure, failure.Wrote)
		}
	}
}

func TestC13_RetryAfter(t *testing.T) {
	soon := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for value, want := range map[string]time.Duration{
		"3600": time.Hour, "0": 0, "Wed, 21 Oct 2015 07:28:00 GMT": 0, "-5": 0, "soon": 0, "": 0, "1.5": 0, "+5": 0,
		"86401": longestRetryAfter, "99999999999999999999": longestRetryAfter, soon: 90 * time.Second,
		"Fri, 31 Dec 9999 23:59:59 GMT": longestRetryAfter,
	} {
		start := time.Now()
		_, failure := once(t, call(), EndpointOptions{}, replied("429 Too Many Requests", "Retry-After: "+value+"\nContent-Type: application/json",
			`{"jsonrpc":"2.0","id":"<ID>","error":{"code":-32000,"message":"quota"}}`))
		wantKind(t, failure, HTTPStatus)
		if d := failure.RetryAfter - want; d > 2*time.Second || d < -2*time.Second || failure.RetryAfter < 0 {
			t.Errorf("Retry-After %q is read as %s, want %s", value, failure.RetryAfter, want)
		}
		if !failure.HasCode || failure.Code != -32000 || failure.Message != "quota" || failure.Status != 429 {
			t.Errorf("Retry-After %q: %+v", value, failure)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("Retry-After %q: took %s", value, took)
		}
	}
}

func TestC14_RedirectsAreNotFollowed(t *testing.T) {
	foreign := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, "200 OK", "", response(r.id, "{}")); return true })
	origin := strings.TrimSuffix(foreign.url, "/mcp")
	for _, status := range []string{"301 x", "302 x", "307 x", "308 x"} {
		for location, want := range map[string]string{
			origin + "/collect?key=SECRET": fmt.Sprintf("it leads to %q", origin),
			"/mcp/":                        "/mcp/\"",
		} {
			s := serveBytes(t, func(w net.Conn, _ int, r sent) bool { respond(w, status, "Location: "+location, ""); return true })
			r := Request{Method: "initialize", Header: http.Header{"X-Api-Key": {"K"}, "Mcp-Session-Id": {"s"}}}
			_, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), r)
			wantKind(t, failure, Redirect)
			text := failure.Error()
			if !strings.Contains(text, want) || !strings.Contains(text, status[:3]) || strings.Contains(text, "SECRET") {
				t.Errorf("%s to %s: %s", status, location, text)
			}
			if location == "/mcp/" && !strings.Contains(text, fmt.Sprintf("set url = %q", s.url+"/")) {
				t.Errorf("%s to %s does not say what to configure: %s", status, location, text)
			}
			if len(s.requests()) != 1 {
				t.Errorf("%s to %s: the server got %d requests", status, location, len(s.requests()))
			}
		}
	}
	if got := foreign.requests(); len(got) != 0 {
		t.Errorf("the foreign server got %+v", got)
	}
}

// Session ids are judged above; here every value of the header arrives as it was.
func TestC18_HeaderOfTheReplyIsHandedOn(t *testing.T) {
	reply, failure := once(t, Request{Method: "initialize"}, EndpointOptions{},
		replied("200 OK", "mcp-session-id: s1&owner=x\nMcp-Session-Id: abc\xE9", response("<ID>", "{}")))
	if failure != nil {
		t.Fatal(failure)
	}
	if got, want := reply.Header.Values("Mcp-Session-Id"), []string{"s1&owner=x", "abc\xE9"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestC32_ToolResults(t *testing.T) {
	for _, result := range []string{
		`{"content":[],"structuredContent":{"id":1}}`,
		`{"content":[{"type":"text","text":"Workflow disabled"}],"isError":true}`,
		`{"content":[{"type":"audio","data":"UklG","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"x:1","blob":"AA==","_meta":{"k":1}}},{"type":"resource_link","uri":"http://10.0.0.1/","name":"r"},{"type":"acme/chart","v":{"a":[1]},"annotations":{"audience":["user"]}}],"_meta":{"com.acme/t":"z"}}`,
		`{"structuredContent":{"id":1}}`,
	} {
		reply, failure := once(t, call(), EndpointOptions{}, replied("200 OK", "", response("<ID>", result)))
		wantResult(t, reply, failure, result)
	}
	for _, result := range []string{`{"content":null}`, `{"content":{"type":"text"}}`, `{"content":["a"]}`, `[]`} {
		_, failure := once(t, call(), EndpointOptions{}, replied("200 OK", "", response("<ID>", result)))
		if failure == nil || failure.Kind != Malformed {
			t.Errorf("%s: %v", result, failure)
		}
	}
}

func TestC35_KeysAreComparedExactly(t *testing.T) {
	for _, reply := range []string{`{"jsonrpc":"2.0","id":"<ID>","Result":{}}`, `{"id":"<ID>","ID":"x","jsonrpc":"2.0","result":{}}`} {
		_, failure := once(t, call(), EndpointOptions{}, replied("200 OK", "", reply))
		wantKind(t, failure, Malformed)
	}
}

func TestC46_RequestsOfTheServer(t *testing.T) {
	asks := []string{`data: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}}` + "\n\n", `data: {"jsonrpc":"2.0","id":"<ID>","method":"ping"}` + "\n\n"}
	s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		return streamed(append(asks, "data: "+response("<ID>", `{"content":[]}`)+"\n\n")...)(w, r)
	})
	reply, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), call())
	wantResult(t, reply, failure, `{"content":[]}`)
	if len(s.requests()) != 1 {
		t.Errorf("%d requests were sent, want the call alone", len(s.requests()))
	}
	waiting := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		openChunks(w, "200 OK", "text/event-stream")
		for _, ask := range asks {
			chunk(w, strings.ReplaceAll(ask, "<ID>", r.id))
		}
		untilClosed(w)
		return false
	})
	_, failure = doFor(t, 200*time.Millisecond, endpoint(t, EndpointOptions{URL: waiting.url}), call())
	wantKind(t, failure, Deadline)
	if failure.Unanswered != "elicitation/create" || !strings.Contains(failure.Error(), `"elicitation/create"`) {
		t.Errorf("the error does not name the method: %v", failure)
	}
	for result, want := range map[string]string{
		`{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create"}}}`: `"input_required" and wants "elicitation/create"`,
		`{"resultType":"task"}`: `"task"`,
	} {
		_, failure := once(t, call(), EndpointOptions{}, replied("200 OK", "", response("<ID>", result)))
		wantKind(t, failure, InputRequired)
		if !strings.Contains(failure.Error(), want) {
			t.Errorf("%v does not say %s", failure, want)
		}
	}
}

// Whoever wants no progress gets none.
func TestProgressWithoutCallback(t *testing.T) {
	r := call()
	r.Token = "t"
	reply, failure := once(t, r, EndpointOptions{}, streamed(
		`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`+"\n\n",
		"data: "+response("<ID>", "{}")+"\n\n"))
	wantResult(t, reply, failure, "{}")
}

func TestC53_BatchIsNotUnwrapped(t *testing.T) {
	batch := "[" + response("<ID>", "{}") + "]"
	_, failure := once(t, call(), EndpointOptions{}, replied("200 OK", "", batch))
	wantKind(t, failure, Malformed)
	_, failure = once(t, call(), EndpointOptions{}, streamed("data: "+batch+"\n\n"))
	wantKind(t, failure, Malformed)
}

func TestC60_ListChangedPasses(t *testing.T) {
	const changed = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n"
	for _, n := range []int{200, (19 << 20) / 10 / len(changed)} {
		s := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
			return streamed(strings.Repeat(changed, n), "data: "+response("<ID>", "{}")+"\n\n")(w, r)
		})
		reply, failure := do(t, endpoint(t, EndpointOptions{URL: s.url}), call())
		wantResult(t, reply, failure, "{}")
		if reply.BytesIn < int64(n*len(changed)) || len(s.requests()) != 1 {
			t.Errorf("%d messages: %d bytes were counted, %d requests sent", n, reply.BytesIn, len(s.requests()))
		}
	}
}
