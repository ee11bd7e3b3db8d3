package conformance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest"
)

// failureChecks look at what a client makes of servers that fail.
var failureChecks = []check{
	{"a dead server is named", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		// Port 1 is never given out, so that no server of another test has it.
		b := open(t, impl, upstreamtest.New(p), func(o *Options) { pinned(p)(o); o.URL = "http://127.0.0.1:1/mcp" })
		if err := b.client.Test(b.ctx()); err == nil || !strings.Contains(err.Error(), serverName) {
			t.Errorf("test: %v", err)
		}
		_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "not_sent" || !strings.Contains(err.Error(), serverName) {
			t.Errorf("verdict %s, error %v", verdict, err)
		}
		if b.contacts.Load() != 0 {
			t.Error("counts as a contact")
		}
	}},
	{"a JSON-RPC error is the server's no", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.ErrorData(http.StatusOK, -32602, "no\x01such\ntool", `{"n":9007199254740993}`)
		})
		b := open(t, impl, s, nil)
		_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "upstream_error" || !strings.Contains(err.Error(), "-32602") {
			t.Fatalf("verdict %s, error %v", verdict, err)
		}
		if strings.ContainsAny(err.Error(), "\x01\n") {
			t.Errorf("the error carries control characters: %q", err)
		}
	}},
	{"statuses of a call", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for status, want := range map[int]string{
			300: "outcome_unknown", 304: "outcome_unknown", 307: "outcome_unknown",
			400: "upstream_error", 401: "upstream_error", 403: "upstream_error", 404: "upstream_error", 405: "upstream_error",
			406: "upstream_error", 413: "upstream_error", 415: "upstream_error", 422: "upstream_error", 429: "upstream_error",
			402: "outcome_unknown", 408: "outcome_unknown", 409: "outcome_unknown", 418: "outcome_unknown",
			500: "outcome_unknown", 501: "outcome_unknown", 502: "outcome_unknown", 503: "outcome_unknown", 504: "outcome_unknown",
		} {
			s := upstreamtest.New(p)
			s.On("tools/call", func(x *upstreamtest.Exchange) { x.Raw(status, "text/plain", "no") })
			b := open(t, impl, s, pinned(p))
			_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
			if err == nil || verdict != want {
				t.Errorf("status %d: verdict %s, want %s, error %v", status, verdict, want, err)
			}
			if s.Count("tools/call") != 1 {
				t.Errorf("status %d: tools/call was sent %d times", status, s.Count("tools/call"))
			}
			if b.contacts.Load() != 0 {
				t.Errorf("status %d: counts as a contact", status)
			}
		}
	}},
	{"annotations buy no second try", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, kind := range []string{"hang-up", "half-body"} {
			s := upstreamtest.New(p)
			s.Tools[0].Definition = `{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}}`
			s.On("tools/call", upstreamtest.Misdeed(kind, "tools/call"))
			b := open(t, impl, s, nil)
			if _, err := b.client.List(b.ctx()); err != nil {
				t.Fatal(err)
			}
			_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
			b.close()
			if err == nil || verdict != "outcome_unknown" || s.Count("tools/call") != 1 {
				t.Errorf("%s: verdict %s, error %v, sent %d times", kind, verdict, err, s.Count("tools/call"))
			}
		}
	}},
	{"early legs are tried again", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, status := range []int{429, 502, 503, 504} {
			s := upstreamtest.New(p)
			n := 0
			s.On("tools/list", func(x *upstreamtest.Exchange) {
				if n++; n == 1 {
					x.Raw(status, "text/plain", "later")
					return
				}
				s.Answer(x)
			})
			b := open(t, impl, s, nil)
			if tools, err := b.client.List(b.ctx()); err != nil || len(tools) != len(s.Tools) {
				t.Errorf("status %d: %d tools, error %v", status, len(tools), err)
			}
		}
	}},
	{"other failures of early legs are not", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, status := range []int{400, 401, 403, 404, 500, 501} {
			s := upstreamtest.New(p)
			s.On("tools/list", func(x *upstreamtest.Exchange) { x.Raw(status, "text/plain", "no") })
			b := open(t, impl, s, pinned(p))
			if _, err := b.client.List(b.ctx()); err == nil || s.Count("tools/list") != 1 {
				t.Errorf("status %d: error %v, sent %d times", status, err, s.Count("tools/list"))
			}
		}
	}},
	{"a wait that does not fit ends the operation", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/list", func(x *upstreamtest.Exchange) {
			x.Writer.Header().Set("Retry-After", "3600")
			x.Raw(http.StatusServiceUnavailable, "text/plain", "later")
		})
		b := open(t, impl, s, nil)
		start := time.Now()
		_, err := b.client.List(b.ctx())
		if err == nil || !strings.Contains(err.Error(), "1h0m0s") || !strings.Contains(err.Error(), "does not fit") || s.Count("tools/list") != 1 {
			t.Errorf("error %v, sent %d times", err, s.Count("tools/list"))
		}
		if took := time.Since(start); took > budget/2 {
			t.Errorf("took %s", took)
		}
	}},
	{"a call is never retried, whatever Retry-After says", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, after := range []string{"0", "1", "3600", "-5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"} {
			s := upstreamtest.New(p)
			s.On("tools/call", func(x *upstreamtest.Exchange) {
				x.Writer.Header().Set("Retry-After", after)
				x.Error(http.StatusTooManyRequests, -32000, "quota")
			})
			b := open(t, impl, s, nil)
			start := time.Now()
			_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
			if err == nil || verdict != "upstream_error" || s.Count("tools/call") != 1 || time.Since(start) > budget/2 {
				t.Errorf("Retry-After %s: verdict %s, error %v, sent %d times in %s", after, verdict, err, s.Count("tools/call"), time.Since(start))
			}
		}
	}},
	{"no redirect is followed", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, status := range []int{301, 302, 303, 307, 308} {
			other := upstreamtest.New(p)
			elsewhere := open(t, impl, other, nil)
			s := upstreamtest.New(p)
			s.On("tools/list", func(x *upstreamtest.Exchange) {
				x.Writer.Header().Set("Location", elsewhere.options.URL)
				x.Writer.WriteHeader(status)
			})
			b := open(t, impl, s, nil)
			_, err := b.client.List(b.ctx())
			if err == nil || s.Count("tools/list") != 1 || len(other.Requests()) != 0 {
				t.Errorf("status %d: error %v, asked %d times here and %d there", status, err, s.Count("tools/list"), len(other.Requests()))
			}
		}
	}},
	{"a failed handshake sends no work", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if p.Modern {
			t.Skip("there is no handshake")
		}
		for _, kind := range []string{"unknown-version", "invented-version", "number-version", "session-space",
			"session-high-byte", "session-long", "session-twice", "initialized-refused"} {
			s := upstreamtest.New(p)
			s.On("initialize", upstreamtest.Misdeed(kind, "initialize"))
			s.On("notifications/initialized", upstreamtest.Misdeed(kind, "notifications/initialized"))
			b := open(t, impl, s, pinned(p))
			_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
			if err == nil || verdict != "not_sent" || s.Count("tools/call") != 0 {
				t.Errorf("%s: verdict %s, error %v, sent %q", kind, verdict, err, s.Methods())
			}
			if b.contacts.Load() != 0 {
				t.Errorf("%s: counts as a contact", kind)
			}
		}
	}},
	{"what a server may answer to initialized", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if p.Modern {
			t.Skip("there is no handshake")
		}
		for name, script := range map[string]upstreamtest.Script{
			"202 with text": func(x *upstreamtest.Exchange) { x.Raw(202, "text/plain", "Accepted") },
			"204":           func(x *upstreamtest.Exchange) { x.Writer.WriteHeader(204) },
			"200 empty":     func(x *upstreamtest.Exchange) { x.Raw(200, "application/json", "") },
			"200 null":      func(x *upstreamtest.Exchange) { x.Raw(200, "application/json", "null") },
			"endless":       upstreamtest.Misdeed("initialized-endless", "notifications/initialized"),
		} {
			s := upstreamtest.New(p)
			s.On("notifications/initialized", script)
			b := open(t, impl, s, pinned(p))
			start := time.Now()
			b.call(Call{Tool: "echo", Arguments: `{}`})
			if took := time.Since(start); took > budget/2 {
				t.Errorf("%s: took %s", name, took)
			}
		}
	}},
}
