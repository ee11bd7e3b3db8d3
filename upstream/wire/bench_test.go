package wire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/gate/rawjson"
)

func benchEndpoint(b *testing.B, media string, wrap func(id string) string) *Endpoint {
	b.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(sent), `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		w.Header().Set("Content-Type", media)
		io.WriteString(w, wrap(id))
	}))
	b.Cleanup(server.Close)
	network, err := NewNetwork(NetworkOptions{PrivateHosts: []string{"127.0.0.1"}})
	if err != nil {
		b.Fatal(err)
	}
	e, err := NewEndpoint(EndpointOptions{URL: server.URL, Network: network})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.CloseIdle)
	return e
}

func benchmarkDo(b *testing.B, media, format string) {
	text := strings.Repeat("some text of a tool ", 100)
	e := benchEndpoint(b, media, func(id string) string {
		return fmt.Sprintf(format, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"%s"}]}}`, id, text))
	})
	header := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"search"}}
	params := []byte(`{"name":"search","arguments":{"q":"words"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Do(context.Background(), Request{Method: "tools/call", Params: [][]byte{params}, Header: header, Once: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// The figures include the test server in the same process.
func BenchmarkDoJSON(b *testing.B)        { benchmarkDo(b, "application/json", "%s") }
func BenchmarkDoEventStream(b *testing.B) { benchmarkDo(b, "text/event-stream", "data: %s\n\n") }

// BenchmarkNetHTTP is the same exchange without us: what net/http costs.
func BenchmarkNetHTTP(b *testing.B) {
	text := strings.Repeat("some text of a tool ", 100)
	e := benchEndpoint(b, "application/json", func(id string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","result":{"content":[{"type":"text","text":"` + text + `"}]}}`
	})
	transport, err := e.network.Transport(TLSOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		data := []byte(`{"jsonrpc":"2.0","id":"a-1","method":"tools/call","params":{"name":"search","arguments":{"q":"words"}}}`)
		req, err := http.NewRequest(http.MethodPost, e.url.String(), bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		req.Header = http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"search"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		res, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			b.Fatal(err)
		}
		res.Body.Close()
	}
}

func BenchmarkJudge(b *testing.B) {
	x := &exchange{request: &Request{Method: "tools/call"}, id: nextID()}
	data := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s","result":{"content":[{"type":"text","text":"%s"}]}}`, x.id, strings.Repeat("some text of a tool ", 100))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		m, err := parseMessage(data, rawjson.MaxDepth)
		if err != nil {
			b.Fatal(err)
		}
		if _, failure := x.accept(&m); failure != nil {
			b.Fatal(failure)
		}
	}
}
