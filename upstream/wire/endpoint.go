package wire

import (
	"context"
	"errors"
	"net/http"
)

// EndpointOptions configure one upstream url.
type EndpointOptions struct {
	URL         string
	HTTPSOnly   bool
	Network     *Network
	TLS         TLSOptions
	MaxResponse int64
	Header      func(ctx context.Context) (name, value string, err error)
	UserAgent   string
}

// An Endpoint is one upstream url behind the host gate.
type Endpoint struct{}

// NewEndpoint checks the url and makes ready to call it.
func NewEndpoint(o EndpointOptions) (*Endpoint, error) { return &Endpoint{}, nil }

// A Request is one JSON-RPC message.
type Request struct {
	Method       string
	Params       []byte
	Notification bool
	Header       http.Header
	Once         bool
	Token        string
	Progress     func(params []byte)

	// Credential overrides the endpoint's Header function for this message.
	Credential func(ctx context.Context) (name, value string, err error)
}

// A Reply is an accepted answer.
type Reply struct {
	Result      []byte
	Status      int
	Header      http.Header
	BytesIn     int64
	BytesOut    int64
	EventStream bool
}

// Do sends one message and judges the answer.
func (e *Endpoint) Do(ctx context.Context, r Request) (*Reply, error) { return nil, errors.New("") }

// Delete sends a DELETE.
func (e *Endpoint) Delete(ctx context.Context, header http.Header) (int, error) {
	return 0, nil
}

// CloseIdle closes connections that are not in use.
func (e *Endpoint) CloseIdle() {}
