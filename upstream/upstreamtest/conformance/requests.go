package conformance

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/upstreamtest"
)

const traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// requestChecks look at the requests themselves.
var requestChecks = []check{
	{"transport headers", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		b.call(Call{Tool: "echo", Arguments: `{}`})
		b.close()
		for _, r := range b.server.Requests() {
			if r.HTTPMethod != http.MethodPost {
				continue
			}
			if got := r.Header.Values("Content-Type"); !slices.Equal(got, []string{"application/json"}) {
				t.Errorf("%s: Content-Type %q", r.Method, got)
			}
			if got := r.Header.Values("Accept"); len(got) != 1 || !strings.Contains(got[0], "application/json") || !strings.Contains(got[0], "text/event-stream") {
				t.Errorf("%s: Accept %q", r.Method, got)
			}
			for _, name := range []string{"Origin", "Cookie", "Authorization", "Last-Event-Id"} {
				if r.Header.Get(name) != "" {
					t.Errorf("%s: carries %s", r.Method, name)
				}
			}
		}
	}},
	{"session header", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), pinned(p))
		b.call(Call{Tool: "echo", Arguments: `{}`})
		b.close()
		var id string
		for _, r := range b.server.Requests() {
			got := r.Header.Get("Mcp-Session-Id")
			switch {
			case !p.Sessions || r.Method == "initialize":
				if got != "" {
					t.Errorf("%s%s: carries a session id", r.HTTPMethod, r.Method)
				}
			case got == "" || id != "" && got != id:
				t.Errorf("%s %s: session id %q after %q", r.HTTPMethod, r.Method, got, id)
			default:
				id = got
			}
		}
	}},
	{"version header", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
			s := upstreamtest.New(p)
			s.Version = version
			if p.Modern {
				version = upstreamtest.ModernVersion
			}
			b := open(t, impl, s, pinned(p))
			b.call(Call{Tool: "echo", Arguments: `{}`})
			b.close()
			for _, r := range s.Requests() {
				want := version
				if r.Method == "initialize" {
					want = ""
				}
				if got := r.Header.Get("Mcp-Protocol-Version"); got != want {
					t.Errorf("%s %s: version %q, want %q", r.HTTPMethod, r.Method, got, want)
				}
			}
		}
	}},
	{"no capabilities", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), pinned(p))
		if err := b.client.Test(b.ctx()); err != nil {
			t.Fatal(err)
		}
		first := b.server.Requests()[0]
		got := first.Param("capabilities")
		if p.Modern {
			got = first.Meta("io.modelcontextprotocol/clientCapabilities")
		}
		if string(got) != "{}" {
			t.Errorf("capabilities %s, want {}", got)
		}
	}},
	{"who we are", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), pinned(p))
		if err := b.client.Test(b.ctx()); err != nil {
			t.Fatal(err)
		}
		first := b.server.Requests()[0]
		got := first.Param("clientInfo")
		if p.Modern {
			got = first.Meta("io.modelcontextprotocol/clientInfo")
		} else if offered := first.Text("protocolVersion"); offered != upstreamtest.LegacyVersion {
			t.Errorf("initialize offers %q", offered)
		}
		info := &upstreamtest.Request{Params: got}
		if info.Text("name") == "" || info.Text("version") == "" {
			t.Errorf("clientInfo %s has no name or no version", got)
		}
	}},
	{"ids are strings that begin with a letter and never repeat", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		for range 3 {
			b.call(Call{Tool: "echo", Arguments: `{}`})
		}
		b.close()
		seen := map[string]bool{}
		for _, r := range b.server.Requests() {
			if r.ID == nil {
				continue
			}
			id, err := rawjson.String(r.ID)
			if err != nil || id == "" || id[0] < 'a' || id[0] > 'z' || seen[id] {
				t.Errorf("%s: id %s", r.Method, r.ID)
			}
			seen[id] = true
		}
	}},
	{"remote name and arguments as they are", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, name := range []string{"search.all/v2", "Ünïcode 工具", " padded ", "=?base64?eA==?=", `quo"te\`} {
			s := upstreamtest.New(p)
			s.Tools = append(s.Tools, upstreamtest.Tool{Name: name, Definition: `{}`, Run: s.Tools[0].Run})
			b := open(t, impl, s, nil)
			arguments := `{"id":9007199254740993, "price":1.10,"e":1E400,"z":-0,"t":"<&>","s":123456789012345678901234567890}`
			b.call(Call{Tool: name, Arguments: arguments})
			r, _ := s.Last("tools/call")
			if got := r.Text("name"); got != name {
				t.Errorf("name %q, want %q", got, name)
			}
			if got := string(r.Param("arguments")); got != arguments {
				t.Errorf("arguments %s, want %s", got, arguments)
			}
		}
	}},
	{"no arguments are an empty object", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		b.call(Call{Tool: "echo"})
		r, _ := b.server.Last("tools/call")
		if got := string(r.Param("arguments")); got != "{}" {
			t.Errorf("arguments %q, want {}", got)
		}
	}},
	{"bound arguments", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		bound := map[string]string{"Region": "region"}
		for arguments, want := range map[string]string{
			`{"region":"eu"}`:      "eu",
			`{"region":"zürich"}`:  "=?base64?" + base64.StdEncoding.EncodeToString([]byte("zürich")) + "?=",
			`{"region":"a\nb"}`:    "=?base64?" + base64.StdEncoding.EncodeToString([]byte("a\nb")) + "?=",
			`{"region":null}`:      "",
			`{"elsewhere":"here"}`: "",
		} {
			b := open(t, impl, upstreamtest.New(p), nil)
			b.call(Call{Tool: "route", Arguments: arguments, Headers: bound})
			r, _ := b.server.Last("tools/call")
			if !p.Modern {
				want = ""
			}
			if got := r.Header.Get("Mcp-Param-Region"); got != want {
				t.Errorf("arguments %s: Mcp-Param-Region %q, want %q", arguments, got, want)
			}
		}
	}},
	{"trace context", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		b.call(Call{Tool: "echo", Arguments: `{}`, Trace: traceParent})
		r, _ := b.server.Last("tools/call")
		if got := r.Header.Get("Traceparent"); got != traceParent {
			t.Errorf("header traceparent %q", got)
		}
		if got := string(r.Meta("traceparent")); got != `"`+traceParent+`"` {
			t.Errorf("_meta traceparent %s", got)
		}
	}},
}
