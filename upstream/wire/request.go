package wire

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"sync/atomic"

	"gatehouse/gate/rawjson"
)

// namespace is drawn once per process, so that an id of an earlier process or
// of a neighbour never matches. It begins with a letter: some servers turn a
// string of digits into a number and answer with that.
var namespace = newNamespace()

var counter atomic.Uint64

func newNamespace() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	b[0] = 0xa0 + b[0]%0x60
	return hex.EncodeToString(b[:])
}

func nextID() string {
	id := make([]byte, 0, len(namespace)+21)
	id = append(append(id, namespace...), '-')
	return string(strconv.AppendUint(id, counter.Add(1), 10))
}

// encode writes the message. Params are sent as the bytes they are.
func encode(r *Request, id string) []byte {
	b := make([]byte, 0, len(`{"jsonrpc":"2.0","id":"","method":"","params":}`)+len(id)+len(r.Method)+len(r.Params))
	b = append(b, `{"jsonrpc":"2.0"`...)
	if !r.Notification {
		b = rawjson.AppendString(append(b, `,"id":`...), id)
	}
	b = rawjson.AppendString(append(b, `,"method":`...), r.Method)
	if r.Params != nil {
		b = append(append(b, `,"params":`...), r.Params...)
	}
	return append(b, '}')
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
