package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
)

// A sharedTransport is the http.Transport to one server and what all requests
// through it have in common.
type sharedTransport struct {
	transport *http.Transport
	template  *http.Request

	// Header values that every request shares. Nothing writes to them.
	agent, accept, mediaType, identity []string
}

func newSharedTransport(n *Network, o TLSOptions, u *url.URL, agent string) (*sharedTransport, error) {
	transport, err := n.Transport(o)
	if err != nil {
		return nil, err
	}
	return &sharedTransport{transport: transport,
		template: &http.Request{URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		agent:    []string{agent}, accept: []string{acceptedMedia},
		mediaType: []string{jsonBody}, identity: []string{"identity"}}, nil
}

// A sharedTrip is one message on its way through an http.Transport.
type sharedTrip struct {
	from   *sharedTransport
	once   bool // it is the work request
	cancel context.CancelFunc
	body   *body
	reply  io.Closer
	conn   *countedConn // what a work request was given, when it can be told
	mark   int64        // bytes written to conn before
}

func (t *sharedTrip) send(ctx context.Context, o *outgoing) (*http.Response, error) {
	ctx, t.cancel = context.WithCancel(ctx)
	header := make(http.Header, len(o.header)+5)
	maps.Copy(header, o.header)
	header["User-Agent"] = t.from.agent
	header["Accept-Encoding"] = t.from.identity
	if o.credential.name != "" {
		header.Set(o.credential.name, o.credential.value)
	}
	req := t.from.template.WithContext(t.dialing(ctx))
	req.Method, req.Header = http.MethodDelete, header
	if o.body != nil {
		header["Content-Type"] = t.from.mediaType
		header["Accept"] = t.from.accept
		// There is no GetBody, so net/http cannot replay the message whatever becomes
		// of its connection. Whether another try is safe is not its to judge.
		t.body = &body{data: bytes.Join(o.body, nil)}
		req.Method, req.Body, req.ContentLength = http.MethodPost, t.body, o.size
	}
	res, err := t.from.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.reply = res.Body
	return res, nil
}

func (t *sharedTrip) cut() { t.cancel() }

// end cancels before it closes: to close alone may wait for a server that sends
// on. A connection whose body was read to its end is idle already and stays.
func (t *sharedTrip) end() {
	t.cancel()
	if t.reply != nil {
		t.reply.Close()
	}
}

func (t *sharedTrip) neverLeft() bool {
	return t.body == nil || t.body.seal() || t.conn != nil && t.conn.silentSince(t.mark)
}

// dialing prepares the context of the HTTP request: a dial finds the request's
// own context in it, and a work request learns its connection.
func (t *sharedTrip) dialing(ctx context.Context) context.Context {
	ctx = context.WithValue(ctx, requestContext{}, ctx)
	if !t.once {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: t.gotConn})
}

// gotConn notes the connection that a work request was given.
func (t *sharedTrip) gotConn(info httptrace.GotConnInfo) {
	conn := info.Conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if counted, ok := conn.(*countedConn); ok {
		t.conn, t.mark = counted, counted.written.Load()
	}
}

// The states of a body.
const (
	untouched = iota // no byte was handed out
	started          // some may be on their way
	sealed           // none was handed out and none will be
)

var errSealed = errors.New("this message is no longer to be sent")

// A body hands out the bytes of one message, once: there is no way back to the
// start, so whoever tries to send it again finds nothing. It knows for certain
// whether the transport has taken any of it, which is how a message that never
// left is told from one that may have arrived.
type body struct {
	state atomic.Int32
	data  []byte
}

func (b *body) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if !b.state.CompareAndSwap(untouched, started) && b.state.Load() == sealed {
		return 0, errSealed
	}
	if len(b.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.data)
	b.data = b.data[n:]
	return n, nil
}

func (b *body) Close() error { return nil }

// seal reports whether none of the body has been taken, and keeps it so.
func (b *body) seal() bool {
	return b.state.CompareAndSwap(untouched, sealed) || b.state.Load() == sealed
}

// A countedConn knows what was written to it and whether that can still
// change. Together they can prove that a request on a connection which the
// server had given up never left.
type countedConn struct {
	net.Conn
	writing atomic.Int64 // calls of Write in progress
	written atomic.Int64 // bytes
	closed  atomic.Bool  // set once no further write can succeed
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.writing.Add(1)
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	c.writing.Add(-1)
	return n, err
}

func (c *countedConn) Close() error {
	err := c.Conn.Close()
	c.closed.Store(true)
	return err
}

// silentSince reports whether nothing was written after the count stood at
// mark, and nothing will be.
func (c *countedConn) silentSince(mark int64) bool {
	return c.closed.Load() && c.writing.Load() == 0 && c.written.Load() == mark
}
