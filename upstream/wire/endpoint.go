package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// The size limits of a response body.
const (
	DefaultMaxResponse = 2 << 20
	HighestMaxResponse = 16 << 20
)

// A Credential says which header a message carries to prove who we are. An
// empty name means none.
type Credential func(ctx context.Context) (name, value string, err error)

// EndpointOptions configure one upstream url.
type EndpointOptions struct {
	URL         string
	HTTPSOnly   bool // plain http only to a loopback host in private_hosts
	Network     *Network
	TLS         TLSOptions
	MaxResponse int64  // bytes of a response body; 0 means DefaultMaxResponse
	UserAgent   string // "gatehouse" when empty

	// Tap, when set, sees every response before it is judged, and may put a body
	// in place of the response's own that reads through to it. It is for showing
	// people what a server sent.
	Tap func(*http.Response)
}

// An Endpoint is one upstream url behind the host gate, with connections of its
// own. It is safe for concurrent use.
type Endpoint struct {
	url     *url.URL
	host    string // normal, without port
	network *Network
	limit   int64
	tap     func(*http.Response)

	// Where the server is met over plain HTTP and not through a proxy, plain makes
	// the round trips, otherwise shared does.
	plain  *plainPool
	shared *sharedTransport
}

// NewEndpoint checks the url by every rule that needs no look-up and makes
// ready to call it. Nothing is dialed.
func NewEndpoint(o EndpointOptions) (*Endpoint, error) {
	if o.Network == nil {
		return nil, errors.New("endpoint: no network is given")
	}
	limit := o.MaxResponse
	if limit == 0 {
		limit = DefaultMaxResponse
	}
	if limit < 0 || limit > HighestMaxResponse {
		return nil, fmt.Errorf("max_response: %d bytes is not between 1 and %d", o.MaxResponse, HighestMaxResponse)
	}
	u, err := o.Network.CheckURL(o.URL, o.HTTPSOnly)
	if err != nil {
		return nil, err
	}
	agent := o.UserAgent
	if agent == "" {
		agent = "gatehouse"
	}
	e := &Endpoint{url: u, host: u.Hostname(), network: o.Network, limit: limit, tap: o.Tap}
	if u.Scheme == "http" && o.Network.direct(e.host) {
		e.plain = newPlainPool(o.Network, u, agent)
		return e, nil
	}
	e.shared, err = newSharedTransport(o.Network, o.TLS, u, agent)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// CloseIdle closes the connections that are not in use.
func (e *Endpoint) CloseIdle() {
	if e.plain != nil {
		e.plain.closeIdle()
		return
	}
	e.shared.transport.CloseIdleConnections()
}

// A Request is one JSON-RPC message.
type Request struct {
	Method       string
	Params       [][]byte    // one raw object in pieces, sent as they are; nil means none
	Notification bool        // no id, no reply
	Header       http.Header // what the protocol wants beside the message; read, not kept

	// Once marks the work request. No message is ever replayed by net/http; for
	// this one Error.Wrote is also as exact as can be known.
	Once bool

	// Token is the progress token in Params. Progress is called with the params
	// of each notifications/progress for it, before Do returns and never at the
	// same time twice. The bytes are the callee's. It must not block.
	Token    string
	Progress func(params []byte)

	// Credential is asked for each message, after the host gate; nil means none.
	Credential Credential
}

// A Reply is an accepted answer.
type Reply struct {
	Result      []byte // raw object, nil for a notification; the receiver's to keep
	Status      int
	Header      http.Header
	BytesIn     int64 // of the response body
	BytesOut    int64 // of the message
	EventStream bool
}

// An exchange is one HTTP request under way and what is known about it.
type exchange struct {
	endpoint *Endpoint
	ctx      context.Context // the caller's
	request  *Request
	id       string
	size     int64
	trip     trip // nil until there is something to send
}

// A trip is how one message travels. There are two: over a connection of a
// plainPool, and through an http.Transport, which speaks TLS, HTTP/2 and proxy.
type trip interface {
	// send sends the message, once, and returns the header of the response.
	send(context.Context, *outgoing) (*http.Response, error)
	// cut ends what goes on, from any goroutine.
	cut()
	// end comes once, after the body was read as far as anybody wants, also when
	// send failed. Nothing goes on after it.
	end()
	// neverLeft reports, after end, whether it is certain that nothing of the
	// message has left or will.
	neverLeft() bool
}

// An outgoing is what a trip sends: a POST, or a DELETE where there is no body.
type outgoing struct {
	header     http.Header // read, not kept
	credential field
	body       [][]byte
	size       int64 // of the body
}

// A field is one of a header. An empty name means none.
type field struct{ name, value string }

// Do sends one message and judges the answer. It asks the host gate first and
// the credential second, and never follows a redirect. An error is always an
// *Error. When Do returns, nothing of the exchange goes on, except that a
// connection may still be closing.
func (e *Endpoint) Do(ctx context.Context, r Request) (*Reply, error) {
	x := &exchange{endpoint: e, ctx: ctx, request: &r}
	credential, err := x.prepare()
	if err != nil {
		return nil, err
	}
	if !r.Notification {
		x.id = nextID()
	}
	body := encode(&r, x.id)
	x.size = sizeOf(body)
	res, err := x.send(&outgoing{header: r.Header, credential: credential, body: body, size: x.size})
	if err != nil {
		return nil, x.failed(err)
	}
	reply, failure := x.judge(res)
	x.trip.end()
	if failure != nil {
		failure.Status, failure.ID, failure.Wrote = res.StatusCode, x.id, true
		return nil, failure
	}
	return reply, nil
}

// Delete ends a session: it sends DELETE with header and the credential, and
// returns the status of the answer, which means nothing to us. An error, always
// an *Error, means that there was no answer.
func (e *Endpoint) Delete(ctx context.Context, header http.Header, credential Credential) (int, error) {
	x := &exchange{endpoint: e, ctx: ctx, request: &Request{Credential: credential}}
	proof, err := x.prepare()
	if err != nil {
		return 0, err
	}
	res, err := x.send(&outgoing{header: header, credential: proof})
	if err != nil {
		failure := x.failed(err)
		failure.Wrote = true // without a body there is not always a telling
		return 0, failure
	}
	x.ignore(res)
	x.trip.end()
	return res.StatusCode, nil
}

// prepare asks the gate, then the credential.
func (x *exchange) prepare() (credential field, err error) {
	if err := x.ctx.Err(); err != nil {
		return field{}, x.failed(err)
	}
	if err := x.endpoint.network.vet(x.ctx, x.endpoint.host); err != nil {
		return field{}, x.failed(err)
	}
	if x.request.Credential == nil {
		return field{}, nil
	}
	credential.name, credential.value, err = x.request.Credential(x.ctx)
	if err == nil && credential.name != "" {
		err = CheckHeaderValue(credential.value)
	}
	if err != nil {
		if x.over() {
			return field{}, x.failed(x.ctx.Err())
		}
		return field{}, &Error{Kind: CredentialFailed, text: "credential: " + err.Error(), cause: err}
	}
	return credential, nil
}

// send begins the trip. Where it fails the trip has ended.
func (x *exchange) send(o *outgoing) (*http.Response, error) {
	if e := x.endpoint; e.plain != nil {
		x.trip = &plainTrip{pool: e.plain}
	} else {
		x.trip = &sharedTrip{from: e.shared, once: x.request.Once}
	}
	res, err := x.trip.send(x.ctx, o)
	if err != nil {
		x.trip.end()
		return nil, err
	}
	if x.endpoint.tap != nil {
		x.endpoint.tap(res)
	}
	return res, nil
}
