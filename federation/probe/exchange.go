package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// quoted is how much of a reply is kept to be shown.
const quoted = 2 << 10

// An answer is what came of one request.
type answer struct {
	result  []byte // of an accepted reply
	header  http.Header
	status  int // 0: there was no response
	failure *wire.Error
	quote   string // the reply, for people
}

// code is the JSON-RPC error code, if there is one.
func (a *answer) code() (int64, bool) {
	if a.failure == nil || !a.failure.HasCode {
		return 0, false
	}
	return a.failure.Code, true
}

// member is one member of the result, raw; nil when it is absent.
func (a *answer) member(key string) []byte { return member(a.result, key) }

// says describes an answer by status and code.
func (a *answer) says() string {
	switch {
	case a.failure != nil:
		return a.failure.Error()
	case a.status != 0:
		return fmt.Sprintf("HTTP %d %s with a result", a.status, statusName(a.status))
	}
	return "nothing"
}

// heard keeps the beginning of the response under way.
type heard struct {
	status int
	header http.Header
	body   []byte
	read   int
}

func (h *heard) tap(res *http.Response) {
	h.status, h.header = res.StatusCode, res.Header
	res.Body = &listener{res.Body, h}
}

type listener struct {
	io.ReadCloser
	heard *heard
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.heard.read += n
	l.heard.body = append(l.heard.body, p[:min(n, quoted-len(l.heard.body))]...)
	return n, err
}

// quote shows a response on one line.
func (h *heard) quote() string {
	if h.status == 0 {
		return ""
	}
	text := fmt.Sprintf("HTTP %d", h.status)
	if media := h.header.Get("Content-Type"); media != "" {
		text += " " + wire.Clip(media)
	}
	if body := wire.Clip(string(h.body)); body != "" {
		text += ": " + body
	}
	return text
}

// mostLate is how many requests may go unanswered before the rest is not asked:
// a server that hangs would keep its author waiting for minutes.
const mostLate = 3

var errLate = errors.New("too many requests were not answered in time")

// ask sends one message and says what came of it. The error is the operator's:
// the server is not there at all, or they gave up.
func (p *prober) ask(ctx context.Context, r wire.Request) (answer, error) {
	if p.late == mostLate {
		return answer{}, errLate
	}
	*p.heard = heard{}
	r.Credential = p.options.Credential
	limited, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	reply, err := p.endpoint.Do(limited, r)
	a := answer{status: p.heard.status, header: p.heard.header, quote: p.heard.quote()}
	if err == nil {
		a.result = reply.Result
		return a, nil
	}
	if ctx.Err() != nil {
		return a, ctx.Err()
	}
	errors.As(err, &a.failure) // Do returns nothing else
	switch f := a.failure; {
	case f.Kind == wire.Deadline:
		p.late++
	case f.Kind == wire.HostRefused || f.Kind == wire.CredentialFailed || f.Kind == wire.Transport && !f.Wrote:
		return a, f
	case f.Status == http.StatusUnauthorized:
		p.look(r.Method, ruleChallenge, f.Challenge != "", "HTTP 401 without WWW-Authenticate", a)
		return a, ErrUnauthorized
	}
	return a, nil
}

// sound judges what any reply has to be. It reports whether there is a reply to
// judge further: a result, an error of the server's, or a status.
func (p *prober) sound(ctx context.Context, step string, r wire.Request, a answer) bool {
	f := a.failure
	if f == nil {
		return p.look(step, ruleReply, true, "", a)
	}
	rule := ruleReply
	switch f.Kind {
	case wire.RPCError, wire.HTTPStatus:
		return p.look(step, ruleReply, true, "", a)
	case wire.Malformed:
		rule = malformedRules[f.Rule]
	case wire.TooLarge:
		rule = ruleSize
	case wire.ContentType:
		rule = ruleType
	case wire.InputRequired:
		rule = ruleUninvited
	case wire.Redirect:
		rule = ruleRedirect
	case wire.Deadline:
		rule = ruleTime
	case wire.Transport:
		rule = ruleReached
		if size := p.headerSize(ctx, r); size > maxHeader {
			return p.look(step, ruleHeaders, false, fmt.Sprintf("the headers have about %d KiB", size>>10), a)
		}
	}
	found := f.Error()
	if f.Kind == wire.Deadline {
		found += fmt.Sprintf(" of %s", p.options.Timeout)
	}
	return p.look(step, rule, false, found, a)
}

// good is sound for a request that has to be answered with a result.
func (p *prober) good(ctx context.Context, step string, r wire.Request, a answer) bool {
	return p.sound(ctx, step, r, a) && p.look(step, ruleStatus, a.failure == nil, a.says(), a)
}

const (
	// maxHeader is what the strict client takes, mostHeader what is looked at.
	maxHeader  = 64 << 10
	mostHeader = 8 << 20
)

// headerSize asks once more without the strict limit, after a reply that broke
// off: net/http does not say that it was the headers.
func (p *prober) headerSize(ctx context.Context, r wire.Request) (size int) {
	t, err := p.network.Transport(p.options.TLS)
	if err != nil {
		return 0
	}
	t.MaxResponseHeaderBytes = mostHeader
	defer t.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	body := `{"jsonrpc":"2.0","id":"probe-again","method":` + string(rawjson.AppendString(nil, r.Method))
	if r.Params != nil {
		body += `,"params":` + string(bytes.Join(r.Params, nil))
	}
	req, err := p.plain(ctx, http.MethodPost, r.Header, strings.NewReader(body+"}"))
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := t.RoundTrip(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	for name, values := range res.Header {
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return size
}

// plain makes a request that is no message.
func (p *prober) plain(ctx context.Context, method string, header http.Header, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.options.URL, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "gatehouse-probe")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if p.options.Credential != nil {
		name, value, err := p.options.Credential(ctx)
		if err != nil {
			return nil, err
		}
		if name != "" {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// fetch sends a request that is no message and returns status and headers; the
// body is nobody's concern. A failure has status 0.
func (p *prober) fetch(ctx context.Context, method string, header http.Header) answer {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	req, err := p.plain(ctx, method, header, nil)
	if err != nil {
		return answer{}
	}
	res, err := p.client.Do(req)
	if err != nil {
		return answer{}
	}
	res.Body.Close()
	h := heard{status: res.StatusCode, header: res.Header}
	return answer{status: res.StatusCode, header: res.Header, quote: h.quote()}
}

// answered describes an answer to fetch.
func (a *answer) answered() string {
	if a.status == 0 {
		return "no answer"
	}
	return fmt.Sprintf("HTTP %d %s", a.status, statusName(a.status))
}

// member is one member of a raw object; nil when it is absent or that is none.
func member(raw []byte, key string) []byte {
	if raw == nil || !rawjson.IsObject(raw) {
		return nil
	}
	members, err := rawjson.Object(raw)
	if err != nil {
		return nil
	}
	value, _ := rawjson.Get(members, key)
	return value
}

// text is a raw string, decoded; "" for anything else.
func text(raw []byte) string {
	if raw == nil || !rawjson.IsString(raw) {
		return ""
	}
	s, err := rawjson.String(raw)
	if err != nil {
		return ""
	}
	return s
}

func isObject(raw []byte) bool { return raw != nil && rawjson.IsObject(raw) }
