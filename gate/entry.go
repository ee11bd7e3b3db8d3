package gate

import (
	"strconv"
	"unicode/utf8"
)

const detailLimit = 400

// entry starts a record of the call: who, what, where, and what it was judged by.
func (r *request) entry(kind Kind) Entry {
	e := Entry{
		Kind:           kind,
		Session:        clipText(r.call.Session, 64),
		Request:        clipText(r.call.Request, 128),
		Tool:           LocalName(clipText(string(r.call.Tool), 128)),
		ArgumentDigest: r.arguments,
		Generation:     r.generation,
		Trace:          clipText(r.call.Trace, 64),
	}
	if kind != KindDenied || r.offered() {
		e.Arguments = recorded(r.settings.Arguments, r.raw)
	}
	if c := r.caller; c != nil {
		e.Caller, e.Via, e.Zone, e.Ceiling = c.Name, c.AuthenticatedBy, c.Zone.String(), c.Zone.Ceiling()
	}
	if t := r.Tool; t != nil {
		e.Server, e.Origin, e.RemoteName = t.Server, t.Origin, RemoteName(clipText(string(t.Remote), 256))
		e.Definition, e.Class = t.Definition, t.Class
	}
	return e
}

// offered reports whether the tool is the caller's to use. Whoever may use nothing
// must not be able to fill the disk with arguments.
func (r *request) offered() bool {
	reason, _ := Offered(r.Tool, r.caller, r.settings.Enforcement)
	return reason == ""
}

// recorded is what the ledger keeps of a call's arguments.
func recorded(keep ArgumentRecord, raw []byte) string {
	switch keep {
	case KeepAll:
		return string(raw)
	case KeepRedacted:
		return redact(raw)
	}
	return ""
}

// redact returns raw with every string that is a value replaced by its length.
// Keys, numbers, booleans and the structure stay. raw is JSON; of anything else
// nothing is kept.
func redact(raw []byte) string {
	if !utf8.Valid(raw) {
		return ""
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			out = append(out, raw[i])
			i++
			continue
		}
		end := stringEnd(raw, i)
		if next := skipSpace(raw, end); next < len(raw) && raw[next] == ':' {
			out = append(out, raw[i:end]...)
		} else {
			out = append(out, `"[`...)
			out = strconv.AppendInt(out, int64(max(end-i-2, 0)), 10)
			out = append(out, ` bytes]"`...)
		}
		i = end
	}
	return string(out)
}

// stringEnd returns the index after the JSON string that begins at i.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}
