package federation

import (
	"context"
	"net/http"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// serveLegacy answers one message of a revision that begins with initialize.
// Requests without a session are served as well, as far as they need none: a
// session is what a question and a notice travel through, nothing more.
func (g *Gateway) serveLegacy(w http.ResponseWriter, r *http.Request, who *gate.Caller, m *message) {
	if version := r.Header.Get(headerVersion); len(r.Header[headerVersion]) > 1 || version != "" && !isServedLegacy(version) {
		writeError(w, http.StatusBadRequest, m.id, &rpcError{code: codeUnsupportedVersion, message: "protocol version not supported",
			data: []byte(`{"supported":` + supportedVersions + `,"requested":"2024-11-05"}`)})
		return
	}
	if m.method == "initialize" && m.id != nil {
		g.initialize(w, who, m)
		return
	}
	s, ok := g.sessionOf(w, r, who, m)
	if !ok {
		return
	}
	switch {
	case m.isResponse():
		g.answered(w, r, who, s, m)
	case m.isNotification():
		if m.method == "notifications/cancelled" && s != nil {
			s.cancel(m.param("requestId"))
		}
		w.WriteHeader(http.StatusAccepted)
	case m.method == "ping":
		writeResult(w, m.id, []byte("{}"))
	case m.method == "tools/list":
		g.list(w, who, m, legacy)
	case m.method == "tools/call":
		g.callLegacy(w, r, who, s, m)
	default:
		writeError(w, http.StatusOK, m.id, &rpcError{code: codeMethodNotFound, message: "method not found"})
	}
}

func isServedLegacy(version string) bool { return isLegacyVersion(version) && version != "2024-11-05" }

// sessionOf finds the session that a request names. A request that names none
// has none; one that names a foreign or an ended one gets 404, the same for both.
func (g *Gateway) sessionOf(w http.ResponseWriter, r *http.Request, who *gate.Caller, m *message) (*session, bool) {
	ids := r.Header[headerSession]
	if len(ids) == 0 {
		return nil, true
	}
	if len(ids) == 1 {
		if s := g.sessions.find(ids[0], who.Name); s != nil {
			return s, true
		}
	}
	writeError(w, http.StatusNotFound, m.id, &rpcError{code: codeInvalidRequest, message: "session not found; begin again with initialize"})
	return nil, false
}

// initialize opens a session (MCP 2025-11-25, basic/lifecycle).
func (g *Gateway) initialize(w http.ResponseWriter, who *gate.Caller, m *message) {
	version, err := rawjson.String(m.param("protocolVersion"))
	if err != nil {
		writeError(w, http.StatusOK, m.id, &rpcError{code: codeInvalidParams, message: "params.protocolVersion is not a string"})
		return
	}
	if !isServedLegacy(version) {
		version = legacyVersions[0] // the caller decides whether it can use ours
	}
	capabilities := m.param("capabilities")
	// 2025-03-26 knows no elicitation, whatever is declared under that name.
	elicits := version != "2025-03-26" && rawjson.IsObject(capabilities) && declaresForm(capabilities)
	s, err := g.sessions.open(who.Name, version, elicits)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable, m.id, &rpcError{code: codeInternal, message: err.Error()})
		return
	}
	w.Header().Set(headerSession, s.id)
	result := []byte(`{"protocolVersion":"` + version + `","capabilities":{"tools":{"listChanged":true}},"serverInfo":`)
	result = append(append(result, g.serverInfo...), `,"instructions":`...)
	writeResult(w, m.id, append(rawjson.AppendString(result, g.instructions(who)), '}'))
}

// serveDelete ends a session.
func (g *Gateway) serveDelete(w http.ResponseWriter, r *http.Request, who *gate.Caller) {
	ids := r.Header[headerSession]
	if len(ids) == 0 {
		methodNotAllowed(w) // the modern era has nothing to delete
		return
	}
	s := g.sessions.find(ids[0], who.Name)
	if s == nil || len(ids) > 1 {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	g.sessions.close(s)
	w.WriteHeader(http.StatusNoContent)
}

// answered takes the response to a question of ours. It counts only in the
// session that was asked, and only while somebody waits for it.
func (g *Gateway) answered(w http.ResponseWriter, r *http.Request, who *gate.Caller, s *session, m *message) {
	delivered := false
	if s != nil && rawjson.IsString(m.id) {
		if id, err := rawjson.String(m.id); err == nil {
			reply := m.result
			if reply == nil {
				reply = []byte{} // an error: an answer that answers nothing
			}
			delivered = s.deliver(id, reply)
		}
	}
	if !delivered {
		call := gate.Call{Request: string(m.id)}
		if s != nil {
			call.Session = s.label
		}
		g.Gate.Deny(r.Context(), g.Catalog.Snapshot(), who, call, gate.ApprovalInvalid, "an answer to no open question of this session")
	}
	w.WriteHeader(http.StatusAccepted)
}

// callLegacy runs one tools/call. A question travels on this response's own
// stream, and its answer comes back as another POST of the same session.
func (g *Gateway) callLegacy(w http.ResponseWriter, r *http.Request, who *gate.Caller, s *session, m *message) {
	a := &answer{w: w, streams: accepts(r)}
	// A lost connection is no cancel before 2026-07-28; only notifications/cancelled
	// and the end of the session are. What was sent is finished and recorded.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	inv, fault := g.newInvocation(r, who, m, legacy)
	if fault != nil {
		g.recordFault(r, who, &faultyMessage{text: fault.message, id: m.id})
		writeError(w, http.StatusOK, m.id, fault)
		return
	}
	inv.connection = r.Context()
	if s != nil {
		if !s.begin(m.id, cancel) {
			writeError(w, http.StatusOK, m.id, &rpcError{code: codeInvalidRequest, message: "a request with this id is in flight"})
			return
		}
		defer s.finish(m.id)
		defer context.AfterFunc(s.ctx, cancel)()
		inv.session, inv.sessionKey = s.label, s.id
		inv.canAsk = s.elicits && a.streams
		inv.ask = func(ctx context.Context, q *gate.Question) *gate.Answer {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(g.leaving, cancel)()
			return s.question(ctx, r.Context(), a, q)
		}
	}
	inv.holder = inv.sessionKey
	g.answerCall(ctx, a, m, inv)
}

// question asks the session's client and waits for its answer, the question's
// end, or the loss of the connection, whichever comes first.
func (n *session) question(ctx, connection context.Context, a *answer, q *gate.Question) *gate.Answer {
	id, answer := n.ask()
	defer n.forget(id)
	if a.event(elicitation(id, q)) != nil {
		return &gate.Answer{Failure: "lost"}
	}
	a.keepAlive()
	ctx, cancel := context.WithDeadline(ctx, q.Until)
	defer cancel()
	select {
	case body := <-answer:
		return parseAnswer(body)
	case <-connection.Done():
		return &gate.Answer{Failure: "lost"}
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			return &gate.Answer{Failure: "timeout"}
		}
		return &gate.Answer{Failure: "lost"}
	}
}

// elicitation is the request that asks a question (MCP 2025-11-25, client/elicitation).
func elicitation(id string, q *gate.Question) []byte {
	b := rawjson.AppendString([]byte(`{"jsonrpc":"2.0","id":`), id)
	b = append(b, `,"method":"elicitation/create","params":`...)
	return append(appendForm(b, q, legacy), '}')
}

// appendForm appends the params of elicitation/create. The mode is named only
// where every client of the era knows it.
func appendForm(dst []byte, q *gate.Question, e era) []byte {
	dst = append(dst, '{')
	if e == modern {
		dst = append(dst, `"mode":"form",`...)
	}
	dst = rawjson.AppendString(append(dst, `"message":`...), q.Message)
	dst = append(append(dst, `,"requestedSchema":`...), q.Schema...)
	return append(dst, '}')
}

// parseAnswer reads an elicitation result. Anything that is not one is an answer
// that approves nothing.
func parseAnswer(raw []byte) *gate.Answer {
	members, err := rawjson.UniqueObject(raw)
	if err != nil {
		return &gate.Answer{Failure: "client_error"}
	}
	value, _ := rawjson.Get(members, "action")
	action, err := rawjson.String(value)
	if value == nil || err != nil {
		return &gate.Answer{Failure: "client_error"}
	}
	content, _ := rawjson.Get(members, "content")
	return &gate.Answer{Action: action, Content: content}
}
