package wire

import (
	"crypto/rand"
	"encoding/hex"
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

// encode writes the message around its params, which are sent as the bytes they
// are.
func encode(r *Request, id string) [][]byte {
	b := make([]byte, 0, len(`{"jsonrpc":"2.0","id":"","method":"","params":`)+len(id)+len(r.Method))
	b = append(b, `{"jsonrpc":"2.0"`...)
	if !r.Notification {
		b = rawjson.AppendString(append(b, `,"id":`...), id)
	}
	b = rawjson.AppendString(append(b, `,"method":`...), r.Method)
	if r.Params == nil {
		return [][]byte{append(b, '}')}
	}
	pieces := make([][]byte, 0, len(r.Params)+2)
	pieces = append(append(pieces, append(b, `,"params":`...)), r.Params...)
	return append(pieces, closing)
}

// closing ends a message. Nobody writes to it.
var closing = []byte("}")

func sizeOf(pieces [][]byte) (n int64) {
	for _, piece := range pieces {
		n += int64(len(piece))
	}
	return n
}
