package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendLine appends the line of e, which follows the entry with the hash prev,
// and returns e's own hash. Members are in the order of RFC 8785; what is zero is
// left out. Nothing is allocated but room in dst.
func appendLine(dst []byte, e *gate.Entry, prev gate.Digest) ([]byte, gate.Digest) {
	start := len(dst)
	w := writer{append(dst, '{')}
	w.text(`"answered_by":`, string(e.AnsweredBy))
	w.count(`"approval":`, e.Approval)
	w.digest(`"argument_digest":`, e.ArgumentDigest)
	w.text(`"arguments":`, e.Arguments)
	w.text(`"audience":`, e.Audience)
	w.integer(`"bytes_in":`, e.BytesIn)
	w.integer(`"bytes_out":`, e.BytesOut)
	w.text(`"caller":`, string(e.Caller))
	w.class(`"ceiling":`, e.Ceiling)
	w.class(`"class":`, e.Class)
	w.integer(`"count":`, int64(e.Count))
	w.digest(`"definition":`, e.Definition)
	w.text(`"detail":`, e.Detail)
	w.count(`"generation":`, e.Generation)
	hashAt := len(w.b)
	w.count(`"intent":`, e.Intent)
	w.text(`"kind":`, string(e.Kind))
	w.legs(`"legs":`, e.Legs)
	w.count(`"number":`, e.Number)
	w.text(`"origin":`, e.Origin)
	w.key(`"prev":`)
	w.hex(prev)
	w.text(`"reason":`, e.Reason)
	w.text(`"remote_name":`, string(e.RemoteName))
	w.text(`"request":`, e.Request)
	w.digest(`"result_digest":`, e.ResultDigest)
	w.text(`"server":`, string(e.Server))
	w.text(`"session":`, e.Session)
	w.text(`"signature":`, e.Signature)
	w.integer(`"status":`, int64(e.Status))
	w.text(`"subject":`, e.Subject)
	w.count(`"through":`, e.Through)
	w.time(`"time":`, e.Time)
	w.text(`"tool":`, string(e.Tool))
	w.text(`"trace":`, e.Trace)
	w.time(`"until":`, e.Until)
	w.text(`"verdict":`, string(e.Verdict))
	w.text(`"via":`, e.Via)
	w.text(`"zone":`, e.Zone)
	w.b = append(w.b, '}')
	hash := gate.Digest(sha256.Sum256(w.b[start:]))
	return append(insertHash(w.b, hashAt, hash), '\n'), hash
}

// The hash member as it stands in a line: hashOpen, the digits, hashClose. It is
// never the first member in order of writing, because "generation" and "caller"
// may be missing; so the comma is on whichever side has a neighbour.
const (
	hashKey  = `"hash":"`
	hashSize = len(hashKey) + 2*sha256.Size + len(`",`)
)

// insertHash puts the hash member in at a place where a member ends or the object
// begins. There is always a member after it, "kind" or "number".
func insertHash(b []byte, at int, hash gate.Digest) []byte {
	if b[at] == ',' {
		at++
	}
	b = append(b, make([]byte, hashSize)...)
	copy(b[at+hashSize:], b[at:])
	n := copy(b[at:], hashKey)
	n += hex.Encode(b[at+n:], hash[:])
	copy(b[at+n:], `",`)
	return b
}

// A writer appends the members of one object.
type writer struct{ b []byte }

// key begins a member; name has quotes and colon already.
func (w *writer) key(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, name...)
}

func (w *writer) text(name, s string) {
	if s != "" {
		w.key(name)
		w.b = rawjson.AppendString(w.b, s)
	}
}

func (w *writer) count(name string, n uint64) {
	if n != 0 {
		w.key(name)
		w.b = strconv.AppendUint(w.b, n, 10)
	}
}

func (w *writer) integer(name string, n int64) {
	if n != 0 {
		w.key(name)
		w.b = strconv.AppendInt(w.b, n, 10)
	}
}

func (w *writer) class(name string, c gate.Class) {
	if c != gate.Unclassified {
		w.text(name, c.String())
	}
}

func (w *writer) digest(name string, d gate.Digest) {
	if !d.IsZero() {
		w.key(name)
		w.hex(d)
	}
}

func (w *writer) hex(d gate.Digest) {
	w.b = append(w.b, '"')
	w.b = hex.AppendEncode(w.b, d[:])
	w.b = append(w.b, '"')
}

func (w *writer) time(name string, t time.Time) {
	if !t.IsZero() {
		w.key(name)
		w.b = append(w.b, '"')
		w.b = t.UTC().AppendFormat(w.b, timeLayout)
		w.b = append(w.b, '"')
	}
}

func (w *writer) legs(name string, legs []gate.Leg) {
	if len(legs) == 0 {
		return
	}
	w.key(name)
	w.b = append(w.b, '[')
	for i, leg := range legs {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.b = append(w.b, '{')
		w.key(`"name":`)
		w.b = rawjson.AppendString(w.b, leg.Name)
		w.integer(`"status":`, int64(leg.Status))
		w.key(`"took_ns":`)
		w.b = strconv.AppendInt(w.b, int64(leg.Took), 10)
		w.b = append(w.b, '}')
	}
	w.b = append(w.b, ']')
}
