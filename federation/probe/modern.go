package probe

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

const metaPrefix = "io.modelcontextprotocol/"

// request is one of the 2026 era. Members come before _meta, each followed by a
// comma.
func (p *prober) request(method, members string) wire.Request {
	params := []byte("{" + members + `"_meta":{"` + metaPrefix + `protocolVersion":"` + modern + `","` + metaPrefix + `clientCapabilities":{},"` +
		metaPrefix + `clientInfo":{"name":"gatehouse-probe","version":`)
	return wire.Request{Method: method, Params: [][]byte{append(rawjson.AppendString(params, p.options.Version), '}', '}', '}')},
		Header: http.Header{versionHeader: {modern}, methodHeader: {method}}}
}

// speakModern meets the server in the 2026 era, if it knows that. Whoever knows
// only the older one may answer the question with any error.
func (p *prober) speakModern(ctx context.Context) error {
	const step = "server/discover"
	r := p.request(step, "")
	a, err := p.ask(ctx, r)
	if err != nil {
		return err
	}
	if !p.sound(ctx, step, r, a) {
		return nil
	}
	if code, ok := a.code(); ok && (code == -32020 || code == -32021 || code == -32022) {
		p.modern = true
		p.look(step, ruleStatus, false, a.says(), a) // our request names the right version and needs nothing
		return nil
	}
	if a.failure != nil {
		return nil
	}
	p.modern = slices.Contains(stringsIn(a.member("supportedVersions")), modern)
	if !p.modern {
		return nil
	}
	p.look(step, ruleVersions, true, "", a)
	p.spoke(modern)
	p.declares = isObject(member(a.member("capabilities"), "tools"))
	p.look(step, ruleCapabilities, isObject(a.member("capabilities")), "capabilities is "+show(a.member("capabilities")), a)
	info := member(a.member("_meta"), metaPrefix+"serverInfo")
	p.look(step, ruleServerInfo, isObject(info), "serverInfo is "+show(info), a)
	p.introduce(info)
	p.cacheable(step, a)
	for _, next := range []func(context.Context) error{p.modernTools, p.modernUnknown, p.refusals, p.modernOrigin, p.otherVerbs} {
		if err := next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// cacheable judges what complete results of this era carry, and returns the
// scope.
func (p *prober) cacheable(step string, a answer) string {
	p.look(step, ruleResultType, text(a.member("resultType")) == "complete", "resultType is "+show(a.member("resultType")), a)
	ttl, err := strconv.ParseInt(string(a.member("ttlMs")), 10, 64)
	p.look(step, ruleTTL, err == nil && ttl >= 0, "ttlMs is "+show(a.member("ttlMs")), a)
	scope := text(a.member("cacheScope"))
	p.look(step, ruleScope, scope == "public" || scope == "private", "cacheScope is "+show(a.member("cacheScope")), a)
	p.look(step, ruleNoMint, len(a.header[sessionHeader]) == 0, "the reply has a session id", a)
	return scope
}

func (p *prober) modernTools(ctx context.Context) error {
	return p.tools(ctx, modern, func(cursor []byte) wire.Request {
		if cursor == nil {
			return p.request("tools/list", "")
		}
		return p.request("tools/list", `"cursor":`+string(cursor)+",")
	})
}

func (p *prober) modernUnknown(ctx context.Context) error {
	return p.wantCode(ctx, "an unknown method (2026)", ruleNotFound, p.request(unknownMethod, ""), http.StatusNotFound, -32601)
}

// wantCode sends a request that has to be refused with a status and a code.
func (p *prober) wantCode(ctx context.Context, step string, rule Rule, r wire.Request, status int, code int64) error {
	a, err := p.ask(ctx, r)
	if err != nil || !p.sound(ctx, step, r, a) {
		return err
	}
	got, _ := a.code()
	p.look(step, rule, a.status == status && got == code, a.says(), a)
	return nil
}

// refusals sends requests that contradict themselves.
func (p *prober) refusals(ctx context.Context) error {
	header := p.request("server/discover", "")
	header.Header[versionHeader] = []string{legacy}
	method := p.request("server/discover", "")
	method.Header[methodHeader] = []string{"tools/list"}
	missing := p.request("server/discover", "")
	delete(missing.Header, methodHeader)
	meta := p.request("server/discover", "")
	meta.Params = [][]byte{[]byte(`{"_meta":{"` + metaPrefix + `protocolVersion":"` + modern + `"}}`)}
	for _, c := range []struct {
		step string
		rule Rule
		r    wire.Request
		code int64
	}{
		{"server/discover with another version in the header", ruleVersionHeader, header, -32020},
		{"server/discover with another method in the header", ruleMethodHeader, method, -32020},
		{"server/discover without Mcp-Method", ruleMethodHeader, missing, -32020},
		{"server/discover without clientCapabilities", ruleMeta, meta, -32602},
	} {
		if err := p.wantCode(ctx, c.step, c.rule, c.r, http.StatusBadRequest, c.code); err != nil {
			return err
		}
	}
	return p.strangeModern(ctx)
}

// strangeModern names a version that never was, in header and body alike.
func (p *prober) strangeModern(ctx context.Context) error {
	const step = "server/discover in an unknown version"
	r := wire.Request{Method: "server/discover", Header: http.Header{versionHeader: {"2199-01-01"}, methodHeader: {"server/discover"}},
		Params: [][]byte{[]byte(`{"_meta":{"` + metaPrefix + `protocolVersion":"2199-01-01","` + metaPrefix + `clientCapabilities":{}}}`)}}
	a, err := p.ask(ctx, r)
	if err != nil || !p.sound(ctx, step, r, a) {
		return err
	}
	code, _ := a.code()
	holds := a.status == http.StatusBadRequest && code == -32022 &&
		len(stringsIn(member(a.failure.Data, "supported"))) > 0 && text(member(a.failure.Data, "requested")) == "2199-01-01"
	p.look(step, ruleUnsupported, holds, a.says(), a)
	return nil
}

func (p *prober) modernOrigin(ctx context.Context) error {
	r := p.request("server/discover", "")
	r.Header["Origin"] = []string{foreignOrigin}
	return p.wantStatus(ctx, "server/discover from a foreign Origin", ruleOrigin, r, http.StatusForbidden)
}

func (p *prober) otherVerbs(ctx context.Context) error {
	h := http.Header{versionHeader: {modern}}
	for _, verb := range []string{http.MethodGet, http.MethodDelete} {
		a := p.fetch(ctx, verb, h)
		p.look(verb+" (2026)", ruleModernGet, a.status == http.StatusMethodNotAllowed, a.answered(), a)
	}
	return nil
}

// stringsIn are the strings of a raw array.
func stringsIn(raw []byte) (out []string) {
	if raw == nil || !rawjson.IsArray(raw) {
		return nil
	}
	elements, err := rawjson.Array(raw)
	if err != nil {
		return nil
	}
	for _, e := range elements {
		if rawjson.IsString(e) {
			out = append(out, text(e))
		}
	}
	return out
}
