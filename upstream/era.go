package upstream

import (
	"fmt"
	"slices"
	"strings"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// The errors of 2026-07-28 that only a server of that era sends.
const (
	codeHeaderMismatch     = -32020
	codeCapabilityMissing  = -32021
	codeVersionUnsupported = -32022
	codeMethodNotFound     = -32601
	codeInvalidRequest     = -32600
)

// inEra does the operation's work in the era that the server speaks. A
// remembered era that proves wrong before any work was sent is looked up again,
// once; a pinned one is the operator's word and is not doubted.
func (op *operation) inEra(work func(era string) *fault) *fault {
	era, remembered := op.lane.knownEra(op.client)
	if era == "" {
		found, _, f := op.probe()
		if f != nil {
			return f
		}
		return work(found)
	}
	f := work(era)
	if f == nil || !remembered || op.settled || f.work && f.sent || !doubtful(f) {
		return f
	}
	found, _, pf := op.probe()
	if pf != nil || found == era {
		return f
	}
	return work(found)
}

// doubtful reports whether a fault may come from speaking the wrong era. What
// the probe would not take for an answer either, such as a dead connection or a
// missing credential, says nothing about it.
func doubtful(f *fault) bool {
	if f.wire == nil {
		return false
	}
	switch f.wire.Kind {
	case wire.RPCError, wire.Malformed, wire.ContentType, wire.HTTPStatus, wire.InputRequired:
		return !inconclusive(f)
	}
	return false
}

// inconclusive reports whether an answer to the probe says nothing about the
// era: the operation reports it and goes no further.
func inconclusive(f *fault) bool {
	if f.wire == nil {
		return true
	}
	switch f.wire.Kind {
	case wire.HostRefused, wire.CredentialFailed, wire.Transport, wire.Redirect, wire.Deadline, wire.Cancelled:
		return true
	}
	s := f.wire.Status
	return s == 401 || s == 403 || s == 429 || s >= 500
}

// probe asks with a request that every server of the 2026 era must know and
// that no server of an older era can mistake for work. The result is nil when
// the era showed in an error.
func (op *operation) probe() (era string, result []byte, f *fault) {
	reply, f := op.retried("server/discover", op.modernRequest("server/discover", [][]byte{opening}, ""))
	if f == nil {
		if slices.Contains(supported(reply.Result, "supportedVersions"), Modern) {
			op.found(Modern)
			return Modern, reply.Result, nil
		}
		return Legacy, reply.Result, nil
	}
	if inconclusive(f) {
		return "", nil, op.hinted(f)
	}
	if f.wire.HasCode {
		switch f.wire.Code {
		case codeHeaderMismatch, codeCapabilityMissing:
			op.found(Modern)
			return Modern, nil, nil
		case codeVersionUnsupported:
			return op.common(f)
		}
	}
	return Legacy, nil, nil
}

// hinted names the key that spares a server the probe. Some of the older era
// fail over a method that they do not know, instead of saying so.
func (op *operation) hinted(f *fault) *fault {
	if op.lane.server.Protocol == Auto && f.wire != nil && f.wire.Kind == wire.HTTPStatus && f.wire.Status >= 500 && !passing(f) {
		f.text += fmt.Sprintf("; if that server speaks the older era only, set protocol = %q for it", Legacy)
	}
	return f
}

// found settles the era and remembers it. The older era is remembered when a
// handshake succeeded, since anything at all can answer a probe with nonsense.
func (op *operation) found(era string) {
	op.settled = true
	op.lane.remember(op.client, era)
}

// common picks a version that both sides speak from a -32022.
func (op *operation) common(f *fault) (string, []byte, *fault) {
	theirs := supported(f.wire.Data, "supported")
	if slices.Contains(theirs, Modern) {
		op.found(Modern)
		return Modern, nil, nil
	}
	for _, version := range legacyVersions {
		if slices.Contains(theirs, version) {
			return Legacy, nil, nil
		}
	}
	ours := append([]string{Modern}, legacyVersions...)
	none := op.refuse(f.leg, ReasonVersion, "the server speaks [%s], we speak [%s]",
		wire.Clip(strings.Join(theirs, ", ")), strings.Join(ours, ", "))
	none.wire = f.wire
	return "", nil, none
}

// supported reads a list of versions; what is no list of strings is empty.
func supported(object []byte, key string) []string {
	if !rawjson.IsObject(object) {
		return nil
	}
	members, err := rawjson.Object(object)
	if err != nil {
		return nil
	}
	raw, _ := rawjson.Get(members, key)
	if !rawjson.IsArray(raw) {
		return nil
	}
	elements, err := rawjson.Array(raw)
	if err != nil {
		return nil
	}
	var versions []string
	for _, e := range elements {
		if !rawjson.IsString(e) {
			continue
		}
		if s, err := rawjson.String(e); err == nil {
			versions = append(versions, s)
		}
	}
	return versions
}
