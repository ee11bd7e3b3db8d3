package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Servers that are met over plain HTTP/1.1, on this machine or in this cluster,
// take calls by the thousand, and http.Transport hands each request to one
// goroutine and each response to another. Here the goroutine that wants the
// round trip makes it: one write, one read. What is parsed is parsed by net/http
// (ReadResponse), and nothing is ever sent a second time.

const (
	// atOnce is up to how many bytes a message is gathered into one write that
	// ends before anything is read: sockets buffer that much, whether or not the
	// server reads. A larger one is written while the answer is awaited, because a
	// server may refuse it early and read no further.
	atOnce = 32 << 10
	// interimResponses is how many 1xx responses may precede the response.
	interimResponses = 5
)

// Why a connection gives no response.
var (
	errHeaderTooLarge = fmt.Errorf("the response header is larger than %d bytes", maxHeader)
	errInterim        = errors.New("too many interim responses")
)

// longAgo is the deadline of a connection that is cut.
var longAgo = time.Unix(1, 0)

// A plainPool keeps the connections to one server.
type plainPool struct {
	dial         func(ctx context.Context) (net.Conn, error)
	post, delete []byte    // what every request of the method begins with
	buffers      sync.Pool // of *[]byte, for messages

	mu      sync.Mutex
	idle    []*plainConn // the one used last is last
	sweep   *time.Timer  // closes what is idle for too long; nil while nothing is idle
	closing int          // how often closeIdle was called
}

func newPlainPool(n *Network, u *url.URL, agent string) *plainPool {
	port := u.Port()
	if port == "" {
		port = "80"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	common := " " + u.RequestURI() + " HTTP/1.1\r\nHost: " + u.Host + "\r\nUser-Agent: " + agent + "\r\nAccept-Encoding: identity\r\n"
	return &plainPool{
		post:    []byte(http.MethodPost + common + "Accept: " + acceptedMedia + "\r\nContent-Type: " + jsonBody + "\r\n"),
		delete:  []byte(http.MethodDelete + common),
		buffers: sync.Pool{New: func() any { return new([]byte) }},
		dial: func(ctx context.Context) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return n.dial(ctx, "tcp", address)
		},
	}
}

// get returns a connection on which nothing is under way. One that the server
// has closed meanwhile, or said something on unasked, is not used again: what it
// said would be taken for the answer.
func (p *plainPool) get(ctx context.Context) (*plainConn, error) {
	c, closing := p.take()
	for ; c != nil; c, closing = p.take() {
		if c.silent() {
			return c, nil
		}
		c.Close()
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	c = &plainConn{Conn: conn, silent: silence(conn), closing: closing}
	c.r = bufio.NewReaderSize(c, 8<<10)
	return c, nil
}

// take returns the idle connection that was used last, or nil, and what a new
// one has to know to be kept.
func (p *plainPool) take() (c *plainConn, closing int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := len(p.idle) - 1; last >= 0 {
		c = p.idle[last]
		p.idle[last], p.idle = nil, p.idle[:last]
	}
	return c, p.closing
}

// put keeps a connection for the next message.
func (p *plainPool) put(c *plainConn) {
	c.since = time.Now()
	p.mu.Lock()
	keep := c.closing == p.closing && len(p.idle) < warmConnections
	if keep {
		p.idle = append(p.idle, c)
		if p.sweep == nil {
			p.sweep = time.AfterFunc(idleTimeout, p.sweepIdle)
		}
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
}

// sweepIdle closes what was idle for idleTimeout.
func (p *plainPool) sweepIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for ; old < len(p.idle) && time.Since(p.idle[old].since) >= idleTimeout; old++ {
		p.idle[old].Close()
	}
	p.idle = slices.Delete(p.idle, 0, old)
	p.sweep = nil
	if len(p.idle) > 0 {
		p.sweep = time.AfterFunc(idleTimeout-time.Since(p.idle[0].since), p.sweepIdle)
	}
}

// closeIdle closes what is idle, and what is in use when it comes back.
func (p *plainPool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing++
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
}

// appendHead appends the head of a message, or says which field cannot be sent.
// A line break in a value would begin a field, or a message, of somebody else's
// making.
func (p *plainPool) appendHead(dst []byte, o *outgoing) ([]byte, error) {
	if o.body == nil {
		dst = append(dst, p.delete...)
	} else {
		dst = strconv.AppendInt(append(append(dst, p.post...), "Content-Length: "...), o.size, 10)
		dst = append(dst, "\r\n"...)
	}
	var room [12]string
	own := http.CanonicalHeaderKey(o.credential.name)
	names := slices.AppendSeq(room[:0], maps.Keys(o.header))
	slices.Sort(names)
	for _, name := range names {
		if name == own {
			continue
		}
		for _, value := range o.header[name] {
			if err := checkField(name, value); err != nil {
				return dst, err
			}
			dst = appendField(dst, name, value)
		}
	}
	if own != "" {
		if err := checkField(own, o.credential.value); err != nil {
			return dst, err
		}
		dst = appendField(dst, own, o.credential.value)
	}
	return append(dst, "\r\n"...), nil
}

func appendField(dst []byte, name, value string) []byte {
	return append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
}

// A plainConn is one connection. One exchange at a time has it.
type plainConn struct {
	net.Conn
	r       *bufio.Reader // reads from Read below
	room    int64         // what a response header may still take; negative while a body is read
	silent  func() bool   // nothing has come, not even the end
	since   time.Time     // idle since
	closing int           // how often the pool's were closed when it was dialed
}

// Read bounds what a header may take; a body has a bound of its own.
func (c *plainConn) Read(b []byte) (int, error) {
	if c.room < 0 {
		return c.Conn.Read(b)
	}
	if c.room == 0 {
		return 0, errHeaderTooLarge
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.room)])
	c.room -= int64(n)
	return n, err
}

// receive reads the header of the response.
func (c *plainConn) receive() (*http.Response, error) {
	c.room = maxHeader
	for range interimResponses + 1 {
		res, err := http.ReadResponse(c.r, nil)
		switch {
		case err != nil && c.room == 0: // cut in the middle of a line, it reads like a bad one
			return nil, errHeaderTooLarge
		case err != nil:
			return nil, err
		case res.StatusCode < 100 || res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols:
			c.room = -1
			return res, nil
		}
	}
	return nil, errInterim
}

// A plainTrip is one message on its way over a plainConn.
type plainTrip struct {
	pool    *plainPool
	message *[]byte    // what is written in one piece
	size    int64      // of what is written beside reading
	written int64      // bytes of it that left, when nothing is being written
	writing chan int64 // gives them while something is
	body    endReader
	last    bool // the server closes the connection after this
	stop    func() bool

	mu      sync.Mutex
	conn    *plainConn // nil unless it is this trip's
	severed bool       // the connection is of no more use
}

// An endReader knows whether its source was read to the end.
type endReader struct {
	io.ReadCloser
	seen bool
}

func (r *endReader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.seen = r.seen || err == io.EOF
	return n, err
}

func (t *plainTrip) send(ctx context.Context, o *outgoing) (*http.Response, error) {
	t.message = t.pool.buffers.Get().(*[]byte)
	head, err := t.pool.appendHead((*t.message)[:0], o)
	*t.message = head
	if err != nil {
		return nil, err
	}
	conn, err := t.pool.get(ctx)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.conn = conn
	t.mu.Unlock()
	t.stop = context.AfterFunc(ctx, t.cut)
	if err := t.write(conn, o); err != nil {
		return nil, err
	}
	res, err := conn.receive()
	if err != nil {
		return nil, err
	}
	t.body = endReader{res.Body, res.Body == http.NoBody}
	res.Body = &t.body
	t.last = res.Close || res.StatusCode < 200
	return res, nil
}

// write writes the message, or begins to where it is large.
func (t *plainTrip) write(conn *plainConn, o *outgoing) error {
	if o.size > atOnce {
		pieces := append(net.Buffers{*t.message}, o.body...)
		t.size, t.writing = int64(len(*t.message))+o.size, make(chan int64, 1)
		go func() { // ended at the latest by end, which closes the connection and waits
			n, _ := pieces.WriteTo(conn.Conn) // what a failure means is seen by who reads
			t.writing <- n
		}()
		return nil
	}
	for _, piece := range o.body {
		*t.message = append(*t.message, piece...)
	}
	n, err := conn.Write(*t.message)
	t.written = int64(n)
	return err
}

// cut ends what goes on. Any goroutine may call it, at any time.
func (t *plainTrip) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.severed = true
	if t.conn != nil {
		t.conn.SetDeadline(longAgo)
	}
}

// end keeps the connection if the exchange is whole and the server has said
// nothing beyond it, and closes it otherwise.
func (t *plainTrip) end() {
	if t.stop != nil {
		t.stop() // where it came too late, cut finds no connection, or was before
	}
	t.mu.Lock()
	conn, whole := t.conn, !t.severed && !t.last
	t.conn = nil
	t.mu.Unlock()
	if conn != nil {
		t.part(conn, whole)
	}
	if cap(*t.message) <= 2*atOnce {
		t.pool.buffers.Put(t.message)
	}
}

func (t *plainTrip) part(conn *plainConn, whole bool) {
	if t.writing != nil {
		select {
		case t.written = <-t.writing:
			t.writing = nil
			whole = whole && t.written == t.size
		default:
			whole = false // answered before it was read
		}
	}
	if whole && t.body.seen && conn.r.Buffered() == 0 {
		t.pool.put(conn)
		return
	}
	conn.Close()
	if t.writing != nil {
		t.written = <-t.writing
		t.writing = nil
	}
}

// neverLeft reports whether nothing of the message was handed to the network.
// It is asked after end.
func (t *plainTrip) neverLeft() bool { return t.written == 0 }
