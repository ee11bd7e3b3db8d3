package probe

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// legacyVersions are those that ever were.
var legacyVersions = []string{legacy, "2025-06-18", "2025-03-26", "2024-11-05"}

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	maxSessionID  = 512
)

// A session is what a handshake agreed on; id is "" when none was issued.
type session struct{ version, id string }

func (s session) header() http.Header {
	h := http.Header{versionHeader: {s.version}}
	if s.id != "" {
		h[sessionHeader] = []string{s.id}
	}
	return h
}

func (p *prober) initialize(version string) wire.Request {
	params := `{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"gatehouse-probe","version":`
	return wire.Request{Method: "initialize", Params: [][]byte{append(rawjson.AppendString([]byte(params), p.options.Version), '}', '}')}}
}

// speakLegacy meets the server in the 2025 era, if it knows that.
func (p *prober) speakLegacy(ctx context.Context) error {
	s, ok, err := p.greet(ctx)
	if err != nil || !ok {
		return err
	}
	p.spoke(s.version)
	steps := []func(context.Context, session) error{p.initialized, p.legacyTools, p.ping, p.legacyUnknown, p.strangeVersion,
		p.withoutSession, p.negotiate, p.legacyOrigin, p.get, p.end}
	for _, step := range steps {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// greet shakes hands.
func (p *prober) greet(ctx context.Context) (s session, ok bool, err error) {
	const step = "initialize"
	r := p.initialize(legacy)
	a, err := p.ask(ctx, r)
	if err != nil {
		return s, false, err
	}
	if p.modern && a.failure != nil && (a.failure.Kind == wire.RPCError || a.failure.Kind == wire.HTTPStatus) {
		return s, false, nil // it speaks the newer era alone, and says so
	}
	if !p.good(ctx, step, r, a) {
		return s, false, nil
	}
	version := a.member("protocolVersion")
	s.version = text(version)
	if !p.look(step, ruleVersion, slices.Contains(legacyVersions, s.version), "protocolVersion is "+show(version), a) {
		return s, false, nil
	}
	info := a.member("serverInfo")
	p.look(step, ruleHello, isObject(a.member("capabilities")) && text(member(info, "name")) != "" && member(info, "version") != nil,
		"capabilities is "+show(a.member("capabilities"))+", serverInfo is "+show(info), a)
	p.introduce(info)
	p.declares = isObject(member(a.member("capabilities"), "tools"))
	s.id, ok = p.sessionID(step, a)
	return s, ok, nil
}

func (p *prober) introduce(info []byte) {
	if p.report.Server == "" {
		p.report.Server, p.report.Version = wire.Clip(text(member(info, "name"))), wire.Clip(text(member(info, "version")))
	}
}

// sessionID reads the id that was issued; none is fine.
func (p *prober) sessionID(step string, a answer) (string, bool) {
	ids := a.header[sessionHeader]
	if len(ids) == 0 || len(ids) == 1 && ids[0] == "" {
		return "", true
	}
	found := ""
	switch outside := func(r rune) bool { return r < 0x21 || r > 0x7e }; {
	case len(ids) > 1:
		found = fmt.Sprintf("%d session ids", len(ids))
	case len(ids[0]) > maxSessionID:
		found = fmt.Sprintf("a session id of %d bytes", len(ids[0]))
	case strings.ContainsFunc(ids[0], outside):
		found = "a session id with a byte that is not visible ASCII"
	}
	return ids[0], p.look(step, ruleSessionID, found == "", found, a)
}

func (p *prober) initialized(ctx context.Context, s session) error {
	const step = "notifications/initialized"
	r := wire.Request{Method: step, Notification: true, Header: s.header()}
	a, err := p.ask(ctx, r)
	if err != nil {
		return err
	}
	if a.failure != nil && a.failure.Kind != wire.HTTPStatus {
		p.sound(ctx, step, r, a)
		return nil
	}
	p.look(step, ruleInitialized, a.status == http.StatusAccepted && p.heard.read == 0, a.answered()+bodySize(p.heard.read), a)
	return nil
}

func bodySize(n int) string {
	if n == 0 {
		return ""
	}
	return " with a body"
}

func (p *prober) legacyTools(ctx context.Context, s session) error {
	return p.tools(ctx, legacy, func(cursor []byte) wire.Request {
		params := []byte("{}")
		if cursor != nil {
			params = append(append([]byte(`{"cursor":`), cursor...), '}')
		}
		return wire.Request{Method: "tools/list", Params: [][]byte{params}, Header: s.header()}
	})
}

func (p *prober) ping(ctx context.Context, s session) error {
	r := wire.Request{Method: "ping", Header: s.header()}
	a, err := p.ask(ctx, r)
	if err != nil || !p.sound(ctx, "ping", r, a) {
		return err
	}
	p.look("ping", rulePing, a.failure == nil, a.says(), a)
	return nil
}

// unknownMethod is one that no revision has or will have.
const unknownMethod = "gatehouse/no-such-method"

func (p *prober) legacyUnknown(ctx context.Context, s session) error {
	const step = "an unknown method"
	r := wire.Request{Method: unknownMethod, Header: s.header()}
	a, err := p.ask(ctx, r)
	if err != nil || !p.sound(ctx, step, r, a) {
		return err
	}
	code, _ := a.code()
	p.look(step, ruleUnknown, code == -32601, a.says(), a)
	return nil
}

// strangeVersion names a revision that never was in the header.
func (p *prober) strangeVersion(ctx context.Context, s session) error {
	const step = "tools/list with an unknown version header"
	h := s.header()
	h[versionHeader] = []string{"1999-01-01"}
	return p.wantStatus(ctx, step, ruleBadVersion, wire.Request{Method: "tools/list", Header: h}, http.StatusBadRequest)
}

// wantStatus sends a request that has to be refused with a status.
func (p *prober) wantStatus(ctx context.Context, step string, rule Rule, r wire.Request, want int) error {
	a, err := p.ask(ctx, r)
	if err != nil {
		return err
	}
	if a.failure != nil && a.failure.Kind != wire.HTTPStatus && a.failure.Kind != wire.RPCError && !p.sound(ctx, step, r, a) {
		return nil
	}
	p.look(step, rule, a.status == want, a.says(), a)
	return nil
}

func (p *prober) withoutSession(ctx context.Context, s session) error {
	if s.id == "" {
		return nil
	}
	without := session{version: s.version}
	err := p.wantStatus(ctx, "tools/list without a session", ruleNoSession,
		wire.Request{Method: "tools/list", Header: without.header()}, http.StatusBadRequest)
	if err != nil {
		return err
	}
	foreign := session{s.version, "gatehouse-probe-unknown-session"}
	return p.wantStatus(ctx, "tools/list in an unknown session", ruleForeign,
		wire.Request{Method: "tools/list", Header: foreign.header()}, http.StatusNotFound)
}

// negotiate offers a version that nobody knows.
func (p *prober) negotiate(ctx context.Context, _ session) error {
	const step = "initialize with an unknown version"
	r := p.initialize("1999-01-01")
	a, err := p.ask(ctx, r)
	if err != nil || !p.sound(ctx, step, r, a) {
		return err
	}
	version := a.member("protocolVersion")
	found := "protocolVersion is " + show(version)
	if a.failure != nil {
		found = a.says()
	}
	p.look(step, ruleNegotiate, slices.Contains(legacyVersions, text(version)), found, a)
	if ids := a.header[sessionHeader]; len(ids) == 1 && ids[0] != "" && a.failure == nil {
		p.fetch(ctx, http.MethodDelete, session{text(version), ids[0]}.header()) // it was opened for nothing
	}
	return nil
}

// foreignOrigin is no server's own.
const foreignOrigin = "https://gatehouse-probe.invalid"

func (p *prober) legacyOrigin(ctx context.Context, s session) error {
	h := s.header()
	h["Origin"] = []string{foreignOrigin}
	return p.wantStatus(ctx, "tools/list from a foreign Origin", ruleOrigin, wire.Request{Method: "tools/list", Header: h}, http.StatusForbidden)
}

func (p *prober) get(ctx context.Context, s session) error {
	a := p.fetch(ctx, http.MethodGet, s.header())
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	opened := a.status == http.StatusOK && strings.EqualFold(strings.TrimSpace(media), "text/event-stream")
	p.look("GET", ruleGet, opened || a.status == http.StatusMethodNotAllowed, a.answered(), a)
	return nil
}

// end ends the session, and sees that it is over.
func (p *prober) end(ctx context.Context, s session) error {
	if s.id == "" {
		return nil
	}
	a := p.fetch(ctx, http.MethodDelete, s.header())
	ended := a.status >= 200 && a.status <= 299
	p.look("DELETE", ruleDelete, ended || a.status == http.StatusMethodNotAllowed, a.answered(), a)
	if !ended {
		return nil
	}
	return p.wantStatus(ctx, "tools/list in a session that was ended", ruleForeign,
		wire.Request{Method: "tools/list", Header: s.header()}, http.StatusNotFound)
}

// show describes a raw value for people.
func show(raw []byte) string {
	if raw == nil {
		return "missing"
	}
	return wire.Clip(string(raw))
}
