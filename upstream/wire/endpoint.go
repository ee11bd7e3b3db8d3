package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
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
	url       *url.URL
	host      string // normal, without port
	network   *Network
	transport *http.Transport
	limit     int64
	template  *http.Request
	tap       func(*http.Response)

	// Header values that every request shares. Nothing writes to them.
	agent, accept, mediaType, identity []string
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
	transport, err := o.Network.Transport(o.TLS)
	if err != nil {
		return nil, err
	}
	agent := o.UserAgent
	if agent == "" {
		agent = "gatehouse"
	}
	return &Endpoint{
		url: u, host: u.Hostname(), network: o.Network, transport: transport, limit: limit, tap: o.Tap,
		template: &http.Request{URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		agent:    []string{agent}, accept: []string{"application/json, text/event-stream"},
		mediaType: []string{"application/json"}, identity: []string{"identity"},
	}, nil
}

// CloseIdle closes the connections that are not in use.
func (e *Endpoint) CloseIdle() { e.transport.CloseIdleConnections() }

// A Request is one JSON-RPC message.
type Request struct {
	Method       string
	Params       []byte      // raw object, sent as it is; nil means none
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
	cancel   context.CancelFunc
	request  *Request
	id       string
	size     int
	body     *body
	conn     *countedConn // what a work request was given, when it can be told
	mark     int64        // bytes written to conn before
}

// Do sends one message and judges the answer. It asks the host gate first and
// the credential second, and never follows a redirect. An error is always an
// *Error. When Do returns, nothing of the exchange goes on, except that a
// connection may still be closing.
func (e *Endpoint) Do(ctx context.Context, r Request) (*Reply, error) {
	x := &exchange{endpoint: e, ctx: ctx, request: &r}
	inner, cancel := context.WithCancel(ctx)
	x.cancel = cancel
	defer cancel()
	header, err := x.prepare()
	if err != nil {
		return nil, err
	}
	header["Content-Type"] = e.mediaType
	header["Accept"] = e.accept
	if !r.Notification {
		x.id = nextID()
	}
	data := encode(&r, x.id)
	x.size, x.body = len(data), &body{data: data}
	req := e.template.WithContext(x.dialing(inner))
	req.Method, req.Header, req.Body, req.ContentLength = http.MethodPost, header, x.body, int64(len(data))
	// There is no GetBody, so net/http cannot replay the message whatever becomes
	// of its connection. Whether another try is safe is not its to judge.
	res, err := e.transport.RoundTrip(req)
	if err != nil {
		return nil, x.failed(err)
	}
	if e.tap != nil {
		e.tap(res)
	}
	reply, failure := x.judge(res)
	// Cancel before closing: to close alone may wait for a server that sends on.
	// A connection whose body was read to its end is idle already and stays.
	cancel()
	res.Body.Close()
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
	x := &exchange{endpoint: e, ctx: ctx, request: &Request{Header: header, Credential: credential}}
	inner, cancel := context.WithCancel(ctx)
	x.cancel = cancel
	defer cancel()
	h, err := x.prepare()
	if err != nil {
		return 0, err
	}
	req := e.template.WithContext(x.dialing(inner))
	req.Method, req.Header = http.MethodDelete, h
	res, err := e.transport.RoundTrip(req)
	if err != nil {
		failure := x.failed(err)
		failure.Wrote = true // without a body there is no telling
		return 0, failure
	}
	if e.tap != nil {
		e.tap(res)
	}
	x.ignore(res)
	cancel()
	res.Body.Close()
	return res.StatusCode, nil
}

// prepare asks the gate, then the credential, and begins the header.
func (x *exchange) prepare() (http.Header, error) {
	e := x.endpoint
	if err := x.ctx.Err(); err != nil {
		return nil, x.failed(err)
	}
	if err := e.network.vet(x.ctx, e.host); err != nil {
		return nil, x.failed(err)
	}
	header := make(http.Header, len(x.request.Header)+5)
	maps.Copy(header, x.request.Header)
	header["User-Agent"] = e.agent
	header["Accept-Encoding"] = e.identity
	if x.request.Credential == nil {
		return header, nil
	}
	name, value, err := x.request.Credential(x.ctx)
	if err == nil && name != "" {
		err = CheckHeaderValue(value)
	}
	if err != nil {
		if x.ctx.Err() != nil {
			return nil, x.failed(x.ctx.Err())
		}
		return nil, &Error{Kind: CredentialFailed, text: "credential: " + err.Error(), cause: err}
	}
	if name != "" {
		header.Set(name, value)
	}
	return header, nil
}

// dialing prepares the context of the HTTP request: a dial finds the request's
// own context in it, and a work request learns its connection.
func (x *exchange) dialing(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, requestContext{}, ctx)
	if !x.request.Once {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: x.gotConn})
}

// gotConn notes the connection that a work request was given.
func (x *exchange) gotConn(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if counted, ok := conn.(*countedConn); ok {
		x.conn, x.mark = counted, counted.written.Load()
	}
}
