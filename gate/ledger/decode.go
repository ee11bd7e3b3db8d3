package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// decode reads a line back. Members it does not know are left alone: an entry
// written by a later version still chains.
func decode(line []byte) (e gate.Entry, err error) {
	members, err := rawjson.Object(line)
	if err != nil {
		return e, err
	}
	for _, m := range members {
		if err := setMember(&e, m.Key, m.Value); err != nil {
			return e, fmt.Errorf("member %q: %w", m.Key, err)
		}
	}
	if e.Number == 0 || e.Kind == "" {
		return e, errors.New("an entry has a number and a kind")
	}
	return e, nil
}

func setMember(e *gate.Entry, key string, v []byte) error {
	switch key {
	case "approval":
		return setUint(&e.Approval, v)
	case "generation":
		return setUint(&e.Generation, v)
	case "intent":
		return setUint(&e.Intent, v)
	case "number":
		return setUint(&e.Number, v)
	case "through":
		return setUint(&e.Through, v)
	case "bytes_in":
		return json.Unmarshal(v, &e.BytesIn)
	case "bytes_out":
		return json.Unmarshal(v, &e.BytesOut)
	case "count":
		return json.Unmarshal(v, &e.Count)
	case "status":
		return json.Unmarshal(v, &e.Status)
	case "legs":
		return json.Unmarshal(v, &e.Legs)
	}
	if set := textMembers[key]; set != nil {
		s, err := rawjson.String(v)
		if err != nil {
			return err
		}
		return set(e, s)
	}
	return nil
}

func setUint(to *uint64, v []byte) (err error) {
	*to, err = strconv.ParseUint(string(v), 10, 64)
	return err
}

// textMembers sets the members that are strings.
var textMembers = map[string]func(e *gate.Entry, s string) error{
	"answered_by":     func(e *gate.Entry, s string) error { e.AnsweredBy = gate.CallerName(s); return nil },
	"argument_digest": func(e *gate.Entry, s string) error { return e.ArgumentDigest.UnmarshalText([]byte(s)) },
	"arguments":       func(e *gate.Entry, s string) error { e.Arguments = s; return nil },
	"audience":        func(e *gate.Entry, s string) error { e.Audience = s; return nil },
	"caller":          func(e *gate.Entry, s string) error { e.Caller = gate.CallerName(s); return nil },
	"ceiling":         func(e *gate.Entry, s string) error { return e.Ceiling.UnmarshalText([]byte(s)) },
	"class":           func(e *gate.Entry, s string) error { return e.Class.UnmarshalText([]byte(s)) },
	"definition":      func(e *gate.Entry, s string) error { return e.Definition.UnmarshalText([]byte(s)) },
	"detail":          func(e *gate.Entry, s string) error { e.Detail = s; return nil },
	"kind":            func(e *gate.Entry, s string) error { e.Kind = gate.Kind(s); return nil },
	"origin":          func(e *gate.Entry, s string) error { e.Origin = s; return nil },
	"reason":          func(e *gate.Entry, s string) error { e.Reason = s; return nil },
	"remote_name":     func(e *gate.Entry, s string) error { e.RemoteName = gate.RemoteName(s); return nil },
	"request":         func(e *gate.Entry, s string) error { e.Request = s; return nil },
	"result_digest":   func(e *gate.Entry, s string) error { return e.ResultDigest.UnmarshalText([]byte(s)) },
	"server":          func(e *gate.Entry, s string) error { e.Server = gate.ServerID(s); return nil },
	"session":         func(e *gate.Entry, s string) error { e.Session = s; return nil },
	"signature":       func(e *gate.Entry, s string) error { e.Signature = s; return nil },
	"subject":         func(e *gate.Entry, s string) error { e.Subject = s; return nil },
	"time":            func(e *gate.Entry, s string) error { return setTime(&e.Time, s) },
	"tool":            func(e *gate.Entry, s string) error { e.Tool = gate.LocalName(s); return nil },
	"trace":           func(e *gate.Entry, s string) error { e.Trace = s; return nil },
	"until":           func(e *gate.Entry, s string) error { return setTime(&e.Until, s) },
	"verdict":         func(e *gate.Entry, s string) error { e.Verdict = gate.Verdict(s); return nil },
	"via":             func(e *gate.Entry, s string) error { e.Via = s; return nil },
	"zone":            func(e *gate.Entry, s string) error { e.Zone = s; return nil },
}

func setTime(to *time.Time, s string) (err error) {
	*to, err = time.Parse(timeLayout, s)
	return err
}

// A link is what chains a line, and what has to be known of every entry when a
// ledger is opened. It is found without decoding the line: a name in quotes with
// its colon cannot stand inside a JSON string, whose quotes are escaped.
type link struct {
	number     uint64
	prev, hash gate.Digest
	kind       gate.Kind
	approval   uint64
	intent     uint64
}

func linkOf(line []byte) (l link, ok bool) {
	l.number, ok = uintAfter(line, `"number":`)
	l.kind = gate.Kind(textAfter(line, `"kind":"`))
	l.approval, _ = uintAfter(line, `"approval":`)
	l.intent, _ = uintAfter(line, `"intent":`)
	return l, ok &&
		l.prev.UnmarshalText(textAfter(line, `"prev":"`)) == nil &&
		l.hash.UnmarshalText(textAfter(line, hashKey)) == nil
}

// textAfter returns the rest of a string that begins with name, up to its end.
// It is for strings that need no escapes.
func textAfter(line []byte, name string) []byte {
	at := bytes.Index(line, []byte(name))
	if at < 0 {
		return nil
	}
	rest := line[at+len(name):]
	return rest[:max(bytes.IndexByte(rest, '"'), 0)]
}

func uintAfter(line []byte, name string) (n uint64, ok bool) {
	at := bytes.Index(line, []byte(name))
	if at < 0 {
		return 0, false
	}
	for _, c := range line[at+len(name):] {
		if c < '0' || c > '9' {
			break
		}
		n, ok = n*10+uint64(c-'0'), true
	}
	return n, ok
}

// intact reports whether the line's hash is the hash of the line. It says
// nothing about the entry before.
func intact(line []byte) bool {
	at := bytes.Index(line, []byte(hashKey))
	if at < 0 || at+hashSize > len(line) {
		return false
	}
	h := sha256.New()
	h.Write(line[:at])
	h.Write(line[at+hashSize:])
	// The member is compared as text: 'a' and 'A' are one digit, and two bytes.
	member := hashKey + hex.EncodeToString(h.Sum(nil)) + `",`
	return string(line[at:at+hashSize]) == member
}
