package wire

import (
	"bytes"
	"errors"
	"io"
)

// errTooLarge says that a body has more bytes than the limit.
var errTooLarge = errors.New("the body is over the size limit")

// A capReader reads at most one byte more than its limit: enough to know that
// there is more, and no further.
type capReader struct {
	src   io.Reader
	limit int64
	count int64 // bytes read so far
}

func (c *capReader) Read(p []byte) (int, error) {
	if most := c.limit + 1 - c.count; int64(len(p)) > most {
		p = p[:most]
	}
	n, err := c.src.Read(p)
	c.count += int64(n)
	if c.count > c.limit {
		return n, errTooLarge
	}
	return n, err
}

const (
	eventBuffer    = 8 << 10  // what an eventReader begins with
	keptEventBytes = 64 << 10 // a reader that grew beyond this is not reused
)

// An eventReader takes messages out of an event stream (WHATWG HTML, 9.2.6).
// Chunks mean nothing to it: any cut of the same bytes gives the same events.
// It sets no limit of its own to a line; its source does.
type eventReader struct {
	src    io.Reader
	buf    []byte // read and not yet consumed: buf[start:]
	start  int
	scan   int // buf[start:scan] holds no line end
	err    error
	begun  bool // the byte order mark has been looked for
	skipLF bool // the last line ended with CR, so LF is its second half

	data    []byte // the data of the event so far
	lines   int    // how many data lines it has
	skipped bool   // its type is one we do not read
}

func (r *eventReader) reset(src io.Reader) {
	*r = eventReader{src: src, buf: r.buf[:0], data: r.data[:0]}
}

// release gives the reader back for reuse, unless a large stream has made its
// buffers large.
func (r *eventReader) release() {
	if cap(r.buf) <= keptEventBytes && cap(r.data) <= keptEventBytes {
		r.reset(nil)
		readers.Put(r)
	}
}

// next returns the data of the next event that has data and is of the type
// message. The bytes are valid until the next call. io.EOF is a clean end, and
// only then has the event before it been complete without its blank line.
func (r *eventReader) next() ([]byte, error) {
	r.data, r.lines, r.skipped = r.data[:0], 0, false
	for {
		line, err := r.line()
		switch {
		case err == nil && len(line) > 0:
			r.field(line)
		case err == nil:
			if r.wanted() {
				return r.data, nil
			}
			r.data, r.lines, r.skipped = r.data[:0], 0, false
		case err == io.EOF && r.wanted():
			return r.data, nil // the next call finds the end again
		default:
			return nil, err
		}
	}
}

func (r *eventReader) wanted() bool { return len(r.data) > 0 && !r.skipped }

// field takes one line that is not blank. Fields without meaning here, comments
// and unknown names pass.
func (r *eventReader) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if r.lines > 0 {
			r.data = append(r.data, '\n')
		}
		r.data = append(r.data, value...)
		r.lines++
	case "event":
		r.skipped = len(value) > 0 && string(value) != "message"
	}
}

// line returns the next line without its end. At the end of the source a last
// line that lacks its end is a line like any other if the end is a clean one.
func (r *eventReader) line() ([]byte, error) {
	for {
		if line, ok := r.cut(); ok {
			return line, nil
		}
		if r.err == nil {
			r.fill()
			continue
		}
		if rest := r.buf[r.start:]; r.err == io.EOF && len(rest) > 0 {
			r.start, r.scan = len(r.buf), len(r.buf)
			return rest, nil
		}
		return nil, r.err
	}
}

// cut takes a line out of the buffer, if a whole one is there.
func (r *eventReader) cut() ([]byte, bool) {
	if r.skipLF && r.start < len(r.buf) {
		if r.skipLF = false; r.buf[r.start] == '\n' {
			r.start++
			r.scan = r.start
		}
	}
	if !r.begun && !r.mark() {
		return nil, false
	}
	for i := r.scan; i < len(r.buf); i++ {
		if c := r.buf[i]; c == '\n' || c == '\r' {
			line := r.buf[r.start:i]
			r.start, r.scan, r.skipLF = i+1, i+1, c == '\r'
			return line, true
		}
	}
	r.scan = len(r.buf)
	return nil, false
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// mark drops one byte order mark at the very start and reports whether enough
// was read to know.
func (r *eventReader) mark() bool {
	if len(r.buf) < len(byteOrderMark) && r.err == nil && bytes.HasPrefix(byteOrderMark, r.buf) {
		return false
	}
	if bytes.HasPrefix(r.buf, byteOrderMark) {
		r.start, r.scan = len(byteOrderMark), len(byteOrderMark)
	}
	r.begun = true
	return true
}

// fill reads once. The buffer grows only when one line does not fit.
func (r *eventReader) fill() {
	if r.start > 0 {
		n := copy(r.buf, r.buf[r.start:])
		r.buf, r.scan, r.start = r.buf[:n], r.scan-r.start, 0
	}
	if len(r.buf) == cap(r.buf) {
		grown := make([]byte, len(r.buf), max(eventBuffer, 2*cap(r.buf)))
		copy(grown, r.buf)
		r.buf = grown
	}
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	r.err = err
}
