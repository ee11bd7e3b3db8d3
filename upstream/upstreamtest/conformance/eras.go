package conformance

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// eraChecks look at how a client finds out what a server speaks.
var eraChecks = []check{
	{"the era is asked for once", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		for range 2 {
			b.call(Call{Tool: "echo", Arguments: `{}`})
			if _, err := b.client.List(b.ctx()); err != nil {
				t.Fatal(err)
			}
		}
		b.close()
		if got := b.server.Methods(); got[0] != "server/discover" || b.server.Count("server/discover") != 1 {
			t.Errorf("the client sent %q", got)
		}
	}},
	{"answers that mean an older server", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if p.Modern {
			t.Skip("for older servers")
		}
		for name, script := range map[string]upstreamtest.Script{
			"method not found":         func(x *upstreamtest.Exchange) { x.Error(200, -32601, "what") },
			"404 with a code":          func(x *upstreamtest.Exchange) { x.Error(404, -32601, "what") },
			"400 without a body":       func(x *upstreamtest.Exchange) { x.Raw(400, "", "") },
			"404 with a page":          func(x *upstreamtest.Exchange) { x.Raw(404, "text/html", "<h1>no</h1>") },
			"405":                      func(x *upstreamtest.Exchange) { x.Raw(405, "", "") },
			"a code of an early draft": func(x *upstreamtest.Exchange) { x.Error(400, -32001, "what") },
			"invalid params":           func(x *upstreamtest.Exchange) { x.Error(200, -32602, "what") },
			"a page of HTML":           func(x *upstreamtest.Exchange) { x.Raw(200, "text/html", "<h1>hello</h1>") },
			"somebody else's answer": func(x *upstreamtest.Exchange) {
				x.Raw(200, "application/json", `{"jsonrpc":"2.0","id":"x","result":{}}`)
			},
			"only older versions": func(x *upstreamtest.Exchange) { x.Result(`{"supportedVersions":["2025-11-25"],"capabilities":{}}`) },
			"no versions":         func(x *upstreamtest.Exchange) { x.Result(`{"protocolVersion":"2025-11-25"}`) },
			"unsupported, offers ours": func(x *upstreamtest.Exchange) {
				x.ErrorData(400, -32022, "no", `{"supported":["2025-06-18","2025-11-25"]}`)
			},
		} {
			s := upstreamtest.New(p)
			s.On("server/discover", script)
			b := open(t, impl, s, nil)
			b.call(Call{Tool: "echo", Arguments: `{}`})
			b.close()
			want := []string{"server/discover", "initialize", "notifications/initialized", "tools/call"}
			if got := s.Methods(); !slices.Equal(got[:4], want) {
				t.Errorf("%s: the client sent %q", name, got)
			}
		}
	}},
	{"answers that mean a modern server", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if !p.Modern {
			t.Skip("for modern servers")
		}
		for name, script := range map[string]upstreamtest.Script{
			"header mismatch":    func(x *upstreamtest.Exchange) { x.Error(400, -32020, "no") },
			"capability missing": func(x *upstreamtest.Exchange) { x.Error(400, -32021, "no") },
			"unsupported, offers ours": func(x *upstreamtest.Exchange) {
				x.ErrorData(400, -32022, "no", `{"supported":["2027-01-01","2026-07-28"]}`)
			},
			"several versions": func(x *upstreamtest.Exchange) {
				x.Result(`{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{}}`)
			},
		} {
			s := upstreamtest.New(p)
			s.On("server/discover", script)
			b := open(t, impl, s, nil)
			b.call(Call{Tool: "echo", Arguments: `{}`})
			if got := s.Methods(); !slices.Equal(got, []string{"server/discover", "tools/call"}) {
				t.Errorf("%s: the client sent %q", name, got)
			}
		}
	}},
	{"answers that mean nothing", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, status := range []int{401, 403, 307, 500, 501} {
			s := upstreamtest.New(p)
			s.On("server/discover", func(x *upstreamtest.Exchange) { x.Raw(status, "text/plain", "no") })
			b := open(t, impl, s, nil)
			_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
			if err == nil || verdict != "not_sent" || !slices.Equal(s.Methods(), []string{"server/discover"}) {
				t.Errorf("status %d: verdict %s, error %v, sent %q", status, verdict, err, s.Methods())
			}
		}
	}},
	{"no version in common", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("server/discover", func(x *upstreamtest.Exchange) {
			x.ErrorData(http.StatusBadRequest, -32022, "no", `{"supported":["2027-01-01","2028-02-02"],"requested":"2026-07-28"}`)
		})
		b := open(t, impl, s, nil)
		_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "not_sent" || len(s.Requests()) != 1 {
			t.Fatalf("verdict %s, error %v, sent %q", verdict, err, s.Methods())
		}
		for _, version := range []string{"2027-01-01", "2028-02-02", "2026-07-28", "2025-11-25"} {
			if !strings.Contains(err.Error(), version) {
				t.Errorf("the error does not name %s: %v", version, err)
			}
		}
	}},
	{"a remembered era that proves wrong is asked for again", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		// The server changes its era under the same address.
		other := upstreamtest.Profile{Name: "other", Modern: !p.Modern, Sessions: p.Modern, Stream: p.Stream}
		s := upstreamtest.New(p)
		b := open(t, impl, s, nil)
		if _, err := b.client.List(b.ctx()); err != nil {
			t.Fatal(err)
		}
		after := upstreamtest.New(other)
		for _, method := range []string{"server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call", "DELETE"} {
			s.On(method, func(x *upstreamtest.Exchange) { after.Answer(x) })
		}
		s.Forget()
		tools, err := b.client.List(b.ctx())
		if err != nil || len(tools) != len(s.Tools) || s.Count("server/discover") != 1 {
			t.Errorf("%d tools, error %v, sent %q", len(tools), err, s.Methods())
		}
		b.call(Call{Tool: "echo", Arguments: `{}`})
	}},
	{"a call in the wrong era is not sent twice", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		if !p.Modern {
			t.Skip("a handshake fails before the call")
		}
		s := upstreamtest.New(p)
		b := open(t, impl, s, nil)
		b.call(Call{Tool: "echo", Arguments: `{}`})
		after := upstreamtest.New(upstreamtest.Profile{Name: "older", Sessions: true})
		for _, method := range []string{"server/discover", "initialize", "notifications/initialized", "tools/call", "DELETE"} {
			s.On(method, func(x *upstreamtest.Exchange) { after.Answer(x) })
		}
		s.Forget()
		_, verdict, err := b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "upstream_error" || s.Count("tools/call") != 1 {
			t.Errorf("verdict %s, error %v, sent %q", verdict, err, s.Methods())
		}
		b.call(Call{Tool: "echo", Arguments: `{}`}) // found out anew
	}},
}
