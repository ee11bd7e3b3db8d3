package client

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Bearer is a token that may be replaced while a client uses it, as the token
// of somebody who is signed in is.
type Bearer struct {
	mu    sync.Mutex
	token string // guarded by mu
}

// Set replaces the token.
func (b *Bearer) Set(token string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = token
}

// RoundTrip implements http.RoundTripper.
func (b *Bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	b.mu.Lock()
	request.Header.Set("Authorization", "Bearer "+b.token)
	b.mu.Unlock()
	return http.DefaultTransport.RoundTrip(request)
}

// Session opens a session of the go-sdk in the 2025 era, whose requests bear
// whatever the bearer holds at the time.
func (b *Bearer) Session(t *testing.T, url string) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: b}}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e-go", Version: "1.0.0"}, nil).
		Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("the go-sdk client did not connect: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}
