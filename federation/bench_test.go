package federation

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// discard is a ResponseWriter that keeps nothing, so that a benchmark measures
// the face and not a recorder.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Flush()                      {}

func benchRequest(r *rig, method, name, params string) func() *http.Request {
	body := `{"jsonrpc":"2.0","id":"b1","method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	return func() *http.Request {
		req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8620/mcp", strings.NewReader(body))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer " + r.tokens["alice"]}, headerVersion: {modernVersion}, headerMethod: {method}}
		if name != "" {
			req.Header[headerName] = []string{name}
		}
		return req
	}
}

// BenchmarkCall is one tools/call through everything but the caller's TCP: face,
// gate, durable record, client, and an upstream of the same era on loopback. The
// played upstream's own work is in the figures.
func BenchmarkCall(b *testing.B) {
	for size, text := range map[string]string{"1KiB": strings.Repeat("x", 1<<10), "100KiB": strings.Repeat("x", 100<<10)} {
		b.Run(size, func(b *testing.B) {
			r := newRig(b, recent, "requires_approval = false", "")
			r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
				x.Result(`{"content":[{"type":"text","text":"` + text + `"}]}`)
			})
			request := benchRequest(r, "tools/call", "mcp_up_echo", `"name":"mcp_up_echo","arguments":{"text":"`+text+`"},`)
			handler := r.g.Handler()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					handler.ServeHTTP(&discard{http.Header{}}, request())
				}
			})
		})
	}
}

// BenchmarkList is tools/list from the encoded page.
func BenchmarkList(b *testing.B) {
	r := newRig(b, recent, "", "")
	request := benchRequest(r, "tools/list", "", "")
	handler := r.g.Handler()
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(&discard{http.Header{}}, request())
	}
}

// BenchmarkParse is the strict parse of a request with 1 KiB of arguments.
func BenchmarkParse(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":"b1","method":"tools/call","params":{"name":"mcp_up_echo","arguments":{"text":"` + strings.Repeat("x", 1<<10) + `"}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := parseMessage(body); fault != nil {
			b.Fatal(fault)
		}
	}
}
