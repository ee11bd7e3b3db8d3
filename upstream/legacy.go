package upstream

import (
	"bytes"
	"context"
	"net/http"
	"slices"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// legacyVersions are the answers to initialize that we can work with, and the
// first is what we offer.
var legacyVersions = []string{Legacy, "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	maxSessionID  = 512
)

// A legacySession is what a 2025 handshake agreed on. The id is "" when the
// server issued none.
type legacySession struct{ version, id string }

// A welcome is what the server said about itself; for display only.
type welcome struct{ name, version string }

// header gives the headers of the legs after initialize.
func (s legacySession) header(t trace) http.Header {
	h := make(http.Header, 4)
	if s.version != "" {
		h[versionHeader] = []string{s.version}
	}
	if s.id != "" {
		h[sessionHeader] = []string{s.id}
	}
	t.setHeader(h)
	return h
}

// legacyParams closes params, which begins with its own members, each followed
// by a comma, with what of _meta there is in the 2025 era.
func (op *operation) legacyParams(params [][]byte, token string) [][]byte {
	if token == "" && op.trace.parent == "" {
		last := &params[len(params)-1]
		*last = bytes.TrimSuffix(*last, comma)
		return append(params, closing)
	}
	meta := append(make([]byte, 0, metaRoom), `"_meta":{`...)
	mark := len(meta)
	meta = op.trace.appendMeta(meta, token)
	meta = append(meta[:mark], meta[mark+1:]...) // the comma before the first member
	return append(params, append(meta, '}', '}'))
}

// Pieces of params that many share. Nobody writes to them.
var opening, comma, closing = []byte("{"), []byte(","), []byte("}")

// handshake opens a session. A handshake that fails after the server issued a
// session id leaves no session behind.
func (op *operation) handshake() (legacySession, welcome, *fault) {
	var none legacySession
	h := make(http.Header, 2)
	op.trace.setHeader(h)
	reply, f := op.retried("initialize", wire.Request{Method: "initialize", Params: [][]byte{op.client.initialize}, Header: h})
	if f != nil {
		return none, welcome{}, f
	}
	session := legacySession{}
	if session.id, f = op.sessionID(reply.Header); f != nil {
		return none, welcome{}, f
	}
	hello, f := op.agree(&session, reply.Result)
	if f != nil {
		op.part(session)
		return none, welcome{}, f
	}
	op.settled = true
	_, f = op.retried("initialized", wire.Request{Method: "notifications/initialized", Notification: true,
		Header: session.header(op.trace)})
	if f != nil {
		op.part(session)
		return none, welcome{}, f
	}
	op.lane.remember(op.client, Legacy)
	return session, hello, nil
}

// sessionID takes the id from where it may stand, the header of initialize's
// response, and only if it can be sent back unharmed.
func (op *operation) sessionID(h http.Header) (string, *fault) {
	ids := h[sessionHeader]
	switch {
	case len(ids) == 0 || len(ids) == 1 && ids[0] == "":
		return "", nil
	case len(ids) > 1:
		return "", op.refuse("initialize", ReasonMalformed, "the reply carries %d session ids", len(ids))
	}
	id := ids[0]
	if len(id) > maxSessionID {
		return "", op.refuse("initialize", ReasonMalformed, "the session id has %d bytes, more than %d", len(id), maxSessionID)
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return "", op.refuse("initialize", ReasonMalformed, "the session id has a byte that is not visible ASCII")
		}
	}
	return id, nil
}

// agree reads the result of initialize.
func (op *operation) agree(session *legacySession, result []byte) (welcome, *fault) {
	members, err := rawjson.Object(result)
	if err != nil {
		return welcome{}, op.refuse("initialize", ReasonMalformed, "%v", err)
	}
	raw, _ := rawjson.Get(members, "protocolVersion")
	if !rawjson.IsString(raw) {
		return welcome{}, op.refuse("initialize", ReasonVersion, "we offer version %s, the server names none", Legacy)
	}
	version, err := rawjson.String(raw)
	if err != nil || !slices.Contains(legacyVersions, version) {
		return welcome{}, op.refuse("initialize", ReasonVersion, "we offer version %s, the server wants %q", Legacy, wire.Clip(version))
	}
	session.version = version
	info, _ := rawjson.Get(members, "serverInfo")
	return introduction(info), nil
}

// introduction reads a serverInfo object; what is not there stays empty.
func introduction(raw []byte) welcome {
	if !rawjson.IsObject(raw) {
		return welcome{}
	}
	members, err := rawjson.Object(raw)
	if err != nil {
		return welcome{}
	}
	text := func(key string) string {
		value, _ := rawjson.Get(members, key)
		if !rawjson.IsString(value) {
			return ""
		}
		s, err := rawjson.String(value)
		if err != nil {
			return ""
		}
		return wire.Clip(s)
	}
	return welcome{text("name"), text("version")}
}

// initializeParams are the same for every handshake.
func initializeParams(version string) []byte {
	b := []byte(`{"protocolVersion":"` + Legacy + `","capabilities":{},"clientInfo":{"name":"gatehouse","version":`)
	return append(rawjson.AppendString(b, version), '}', '}')
}

// part has a session ended when the operation has handed its result back.
func (op *operation) part(s legacySession) { op.parting = s }

// abandon has the server told that nobody waits for a request any more.
func (op *operation) abandon(s legacySession, id string) { op.abandoned, op.abandonedIn = id, s }

// farewell sends what is owed after the operation, with what is left of the
// budget. It takes the credential over, and nothing waits for it but Close.
func (op *operation) farewell() {
	left := op.left()
	if op.credential == nil || left <= 0 || op.parting.id == "" && op.abandoned == "" {
		return
	}
	c, l, credential := op.client, op.lane, op.credential
	parting, abandoned, in := op.parting, op.abandoned, op.abandonedIn
	op.credential = nil
	c.errands.run(left, func(ctx context.Context) {
		defer credential.Close()
		if abandoned != "" {
			l.sendCancelled(ctx, c.log, in, abandoned, credential)
		}
		if parting.id != "" {
			l.sendDelete(ctx, c.log, parting, credential)
		}
	})
}
