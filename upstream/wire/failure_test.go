package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestRedirectTexts(t *testing.T) {
	const begin = "HTTP 307 redirect, and redirects are not followed; "
	for _, test := range []struct{ from, location, want string }{
		{"http://a.example/mcp", "/mcp/", `set url = "http://a.example/mcp/"`},
		{"http://a.example/mcp", "/a%2Fb", `set url = "http://a.example/a%2Fb"`},
		{"http://a.example/mcp", "http://A.example:80/x?key=SECRET", `set url = "http://A.example:80/x"`},
		{"https://a.example:443/mcp", "https://a.example/x#SECRET", `set url = "https://a.example/x"`},
		{"http://a.example/mcp", "http://user:SECRET@a.example/x", `set url = "http://a.example/x"`},
		{"http://a.example:8080/mcp", "https://a.example:8080/SECRET", `it leads to "https://a.example:8080"; correct url if that is meant`},
		{"http://a.example/mcp", "https://a.example/SECRET", `it leads to "https://a.example"; correct url if that is meant`},
		{"http://a.example/mcp", "//b.example/SECRET", `it leads to "http://b.example"; correct url if that is meant`},
		{"http://a.example/mcp", "http://[::SECRET", "correct url"},
		{"http://a.example/mcp", "", "correct url"},
	} {
		from, err := url.Parse(test.from)
		if err != nil {
			t.Fatal(err)
		}
		res := &http.Response{StatusCode: 307, Header: http.Header{"Location": {test.location}}}
		if got := redirectError(res, from).Error(); got != begin+test.want {
			t.Errorf("%s to %s:\n%s\nwant\n%s", test.from, test.location, got, begin+test.want)
		}
	}
}

func TestStatusTexts(t *testing.T) {
	for status, want := range map[int]string{429: "HTTP 429 Too Many Requests", 499: "HTTP 499", 401: "HTTP 401 Unauthorized"} {
		if got := statusError(&http.Response{StatusCode: status}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for status, want := range map[int]string{401: "Basic, Bearer", 403: "Basic, Bearer", 400: "", 500: ""} {
		res := &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {"Basic", "Bearer"}}}
		if got := statusError(res).Challenge; got != want {
			t.Errorf("status %d has the challenge %q, want %q", status, got, want)
		}
	}
}

func TestTransportTexts(t *testing.T) {
	for want, err := range map[string]error{
		"connection refused": &url.Error{Op: "Post", URL: "http://a.example/?key=SECRET", Err: errors.New("connection refused")},
		`the name "a.example" did not resolve: no such host`: &net.OpError{Op: "dial", Err: &net.DNSError{Name: "a.example", Err: "no such host", Server: "SECRET"}},
		"one two": errors.New("one\ntwo"),
	} {
		if got := transportText(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEndedTexts(t *testing.T) {
	expired, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	cancelled, stop := context.WithCancel(context.Background())
	stop()
	for _, test := range []struct {
		ctx  context.Context
		ask  string
		kind Kind
		want string
	}{
		{expired, "", Deadline, "no reply before the deadline"},
		{expired, "a\nb", Deadline, `no reply before the deadline; the server waited for an answer to its own "a b", which it was never promised`},
		{cancelled, "", Cancelled, "the request was cancelled"},
	} {
		e := &Error{Unanswered: test.ask}
		(&exchange{ctx: test.ctx}).ended(e)
		if e.Kind != test.kind || e.Error() != test.want {
			t.Errorf("got %s %q, want %s %q", e.Kind, e, test.kind, test.want)
		}
	}
}

func TestRetryAfterIsExact(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"1": time.Second, " 7 ": 7 * time.Second, "86400": 24 * time.Hour, "86401": 24 * time.Hour, "0": 0, "": 0, "1x": 0,
		"Thu, 01 Jan 2026 00:00:05 GMT": 5 * time.Second, "Thu, 01 Jan 2026 00:00:00 GMT": 0,
		"Wed, 31 Dec 2025 23:59:59 GMT": 0, "Sat, 03 Jan 2026 00:00:00 GMT": 24 * time.Hour,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q is read as %s, want %s", value, got, want)
		}
	}
}

func TestSizeTexts(t *testing.T) {
	for n, want := range map[int64]string{2 << 20: "2097152 bytes, 2 MiB", 1 << 20: "1048576 bytes, 1 MiB", 512 << 10: "524288 bytes, 512 KiB", 1 << 10: "1024 bytes, 1 KiB", 1000: "1000 bytes", 16<<20 + 1: "16777217 bytes"} {
		if got := size(n); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// No text of an error begins a line of its own.
func TestErrorsAreOneLine(t *testing.T) {
	const evil = "x\n2026-01-01 level=INFO msg=approved"
	for name, answer := range map[string]func(w net.Conn, r sent) bool{
		"error":       replied("200 OK", "", `{"jsonrpc":"2.0","id":"<ID>","error":{"code":1,"message":"x\n2026-01-01 level=INFO"}}`),
		"key":         replied("200 OK", "", `{"jsonrpc":"2.0","id":"<ID>","RESULT":{},"x\ny":1,"x\ny":1}`),
		"id":          replied("200 OK", "", `{"jsonrpc":"2.0","id":"x\n2026","result":{}}`),
		"result type": replied("200 OK", "", `{"jsonrpc":"2.0","id":"<ID>","result":{"resultType":"x\n2026"}}`),
		"media type":  replied("200 OK", "Content-Type: x\x0b2026", "x"),
		"encoding":    replied("200 OK", "Content-Encoding: x\x852026", "x"),
	} {
		_, failure := once(t, call(), EndpointOptions{}, answer)
		if failure == nil || strings.ContainsAny(failure.Error(), "\n\r\x0b") {
			t.Errorf("%s: %q", name, failure)
		}
	}
	if got := (&HostError{Host: evil, Reason: "is not a host name"}).Error(); strings.Contains(got, "\n") {
		t.Errorf("%q", got)
	}
}

// A lateContext has a deadline that is over, and says so only a moment later, as
// one does whose timer is held up.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// A dial that gives up by its own timer, before the context has noticed that the
// time is over, is a deadline all the same.
func TestDialKeepsTheDeadlineToo(t *testing.T) {
	slow, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	e := endpoint(t, EndpointOptions{URL: "http://127.0.0.1:9/mcp"})
	_, failure := doIn(t, lateContext{slow}, e, Request{Method: "initialize"})
	wantKind(t, failure, Deadline)
	if failure.Wrote {
		t.Error("nothing was dialed, and something was written")
	}
}
