package upstream

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// forgetful is a Store that remembers nothing.
type forgetful struct{}

func (forgetful) Era(gate.ServerID) (string, bool)                      { return "", false }
func (forgetful) SetEra(gate.ServerID, string) error                    { return nil }
func (forgetful) Contact(gate.ServerID, time.Time, time.Duration) error { return nil }

// BenchmarkCall2026 is one call of the 2026 era over loopback, both ends in
// this process: the server's share is what net/http takes to answer.
func BenchmarkCall2026(b *testing.B) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		const begin = len(`{"jsonrpc":"2.0","id":"`)
		end := begin
		for body[end] != '"' {
			end++
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":"` + string(body[begin:end]) +
			`","result":{"resultType":"complete","content":[{"type":"text","text":"hello"}]}}`))
	}))
	defer site.Close()
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{"127.0.0.1"}})
	if err != nil {
		b.Fatal(err)
	}
	c, err := New(Options{Network: network, Version: "bench", Store: forgetful{}, Credentials: credential.NewBroker(credential.Options{})})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Configure([]Server{{ID: "demo", URL: site.URL, Protocol: Modern}}); err != nil {
		b.Fatal(err)
	}
	defer c.Close(context.Background())
	order := gate.Order{Tool: &gate.Tool{Server: "demo", Remote: "echo"}, Caller: &gate.Caller{Name: "ada"},
		Arguments: []byte(`{"text":"hello","count":3}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.perform(context.Background(), order, CallOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
