package credential

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

const (
	// maxReply bounds what a token endpoint may answer.
	maxReply = 64 << 10
	// maxToken bounds an access token. A longer one would not fit the header
	// limits of common servers.
	maxToken = 8192
	// tokenTimeout bounds a token request whose operation brought no deadline.
	tokenTimeout = 20 * time.Second
	// tokenAttempts bounds how often one token is asked for.
	tokenAttempts = 3
)

// A request is one question to a token endpoint.
type request struct {
	endpoint *url.URL // past the host gate
	form     url.Values
	scopes   []string // what may be granted at most; nil: the server decides
	audience string   // a JWT that names audiences must name this one; "": any

	exchange  bool   // RFC 8693: issued_token_type is required
	notToken  Secret // the answer must not be this one (an exchange that exchanges nothing)
	refresh   bool   // a refresh token may come back
	resendNot bool   // never ask twice: the request uses something up
	basic     Secret // client_secret_basic with the form's client_id; zero: whatever the form says
}

// A grant is what a token endpoint answered.
type grant struct {
	access  Secret
	refresh Secret    // zero when none came
	expires time.Time // on the clock of the broker, counted from before the request
	stated  bool      // the endpoint said how long
}

// ask sends a request, again where that is harmless and may help, and reads the
// answer strictly. Each attempt becomes a leg.
func (b *Broker) ask(ctx context.Context, r request, leg func(gate.Leg)) (grant, error) {
	if b.options.Client == nil {
		return grant{}, &Error{Reason: ReasonRefused, Text: "no client for token requests is set up"}
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	attempts := uint64(tokenAttempts - 1)
	if r.resendNot {
		attempts = 0
	}
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(2*time.Second))
	var g grant
	err := backoff.Retry(func() error {
		var again bool
		var err error
		g, again, err = b.askOnce(ctx, r, leg)
		if err != nil && !again {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(policy, attempts), ctx))
	if err == nil {
		return g, nil
	}
	if ctx.Err() != nil {
		return grant{}, outOfTime(ctx)
	}
	var e *Error
	if errors.As(err, &e) {
		return grant{}, e
	}
	return grant{}, &Error{Reason: ReasonRefused, Text: "the token endpoint did not answer"}
}

func hostRefused(err error) *Error {
	text := "the host of a token endpoint or of its metadata is refused"
	var host *wire.HostError
	if errors.As(err, &host) {
		text = host.Error()
	}
	return &Error{Reason: ReasonHostRefused, Text: text, Cause: err}
}

func outOfTime(ctx context.Context) *Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &Error{Reason: ReasonCancelled, Text: "the caller gave up before there was a token", Cause: ctx.Err()}
	}
	return &Error{Reason: ReasonBudget, Text: "the time is spent and the token endpoint has not answered; raise [operation] timeout, or look at the token endpoint", Cause: ctx.Err()}
}

// askOnce reports again when another attempt may go better.
func (b *Broker) askOnce(ctx context.Context, r request, leg func(gate.Leg)) (g grant, again bool, err error) {
	host := r.endpoint.Host
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.endpoint.String(), strings.NewReader(r.form.Encode()))
	if err != nil {
		return grant{}, false, &Error{Reason: ReasonRefused, Text: "the token endpoint's url is not usable"}
	}
	if r.resendNot {
		req.GetBody = nil // or net/http would send it again on a reused connection
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !r.basic.IsZero() {
		req.SetBasicAuth(url.QueryEscape(r.form.Get("client_id")), url.QueryEscape(r.basic.Reveal()))
	}

	start := b.options.Now()
	status := 0
	defer func() { leg(gate.Leg{Name: "token", Took: b.options.Now().Sub(start), Status: status}) }()
	resp, err := b.client().Do(req)
	if err != nil {
		var refused *wire.HostError
		if errors.As(err, &refused) {
			return grant{}, false, hostRefused(err)
		}
		return grant{}, true, &Error{Reason: ReasonRefused, Text: "the token endpoint at " + host + " cannot be reached", Cause: scrubbed(err)}
	}
	defer resp.Body.Close()
	status = resp.StatusCode
	if status < 200 || status > 299 {
		return grant{}, transient(status), &Error{Reason: ReasonRefused, Status: status, code: errorCode(resp.Body),
			Text: fmt.Sprintf("the token endpoint at %s refused with HTTP %d", host, status)}
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return grant{}, true, malformed(status, "its body ended early")
	case len(reply) > maxReply:
		return grant{}, false, malformed(status, "it is larger than 64 KiB")
	}
	defer clear(reply)
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return grant{}, false, malformed(status, "it is not application/json")
	}
	g, wrong := r.read(reply, start)
	if wrong != "" {
		return grant{}, false, malformed(status, wrong)
	}
	return g, false, nil
}

// client is the given client with redirects switched off for certain: a secret
// that was meant for one url must not arrive at another.
func (b *Broker) client() *http.Client {
	client := *b.options.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// errorCode is the error member of RFC 6749 section 5.2, when it is a code that
// we act on. Everything else the endpoint says stays unread.
func errorCode(body io.Reader) string {
	reply, err := io.ReadAll(io.LimitReader(body, maxReply))
	if err != nil {
		return ""
	}
	members, err := rawjson.Object(reply)
	if err != nil {
		return ""
	}
	if code, _ := word(members, "error"); code == codeInvalidGrant || code == codeInvalidClient {
		return code
	}
	return ""
}

const (
	codeInvalidGrant  = "invalid_grant"
	codeInvalidClient = "invalid_client"
)

// scrubbed is what may be kept of a transport error: a *url.Error would carry
// the url with its query.
func scrubbed(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// transient are the statuses of a server that is not well, as opposed to one
// that says no.
func transient(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func malformed(status int, what string) *Error {
	return &Error{Reason: ReasonMalformed, Status: status, Text: "the token endpoint's answer is not usable: " + what}
}

const accessTokenType = "urn:ietf:params:oauth:token-type:access_token"

// read judges the answer member by member. Its verdicts name the member and
// never quote it.
func (r request) read(reply []byte, start time.Time) (g grant, wrong string) {
	if rawjson.Check(reply) != nil {
		return grant{}, "it is not one JSON value without duplicate keys"
	}
	members, err := rawjson.Object(reply)
	if err != nil {
		return grant{}, "it is not a JSON object"
	}
	access, ok := word(members, "access_token")
	if !ok || !visibleToken(access) {
		return grant{}, "access_token is missing or not 1 to 8192 visible characters"
	}
	if kind, ok := word(members, "token_type"); !ok || !strings.EqualFold(kind, "Bearer") {
		return grant{}, "token_type is not Bearer"
	}
	if kind, ok := word(members, "issued_token_type"); r.exchange && (!ok || kind != accessTokenType) {
		return grant{}, "issued_token_type is not that of an access token"
	}
	life, stated, ok := lifetime(members)
	if !ok || r.exchange && !stated {
		return grant{}, "expires_in is not a number of at least 1"
	}
	if wrong := r.judgeScope(members); wrong != "" {
		return grant{}, wrong
	}
	if !r.notToken.IsZero() && r.notToken.Reveal() == access {
		return grant{}, "it is the very token that was to be exchanged"
	}
	if !audienceFits(access, r.audience) {
		return grant{}, "the token is meant for somebody else"
	}
	g = grant{access: SecretString(access), expires: start.Add(life), stated: stated}
	if refresh, ok := word(members, "refresh_token"); ok && r.refresh && visibleToken(refresh) {
		g.refresh = SecretString(refresh)
	}
	return g, ""
}

// word is the string member of that name.
func word(members []rawjson.Member, key string) (string, bool) {
	raw, ok := rawjson.Get(members, key)
	if !ok || !rawjson.IsString(raw) {
		return "", false
	}
	s, err := rawjson.String(raw)
	return s, err == nil
}

func visibleToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// longestLife bounds what an expires_in can say, so that no sum overflows.
const longestLife = 30 * 24 * time.Hour

// unstatedLife is how long a token is believed in whose endpoint does not say.
const unstatedLife = time.Minute

func lifetime(members []rawjson.Member) (life time.Duration, stated, ok bool) {
	raw, present := rawjson.Get(members, "expires_in")
	if !present {
		return unstatedLife, false, true
	}
	if !rawjson.IsNumber(raw) {
		return 0, false, false
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || !(seconds >= 1) {
		return 0, false, false
	}
	if seconds >= longestLife.Seconds() {
		return longestLife, true, true
	}
	return time.Duration(seconds * float64(time.Second)), true, true
}

// judgeScope refuses more than was asked for, which nobody here has checked.
func (r request) judgeScope(members []rawjson.Member) string {
	raw, present := rawjson.Get(members, "scope")
	if !present || r.scopes == nil {
		return ""
	}
	given, ok := word(members, "scope")
	if !ok || !rawjson.IsString(raw) {
		return "scope is not a string"
	}
	for s := range strings.SplitSeq(given, " ") {
		if s != "" && !slices.Contains(r.scopes, s) {
			return "scope holds more than was asked for"
		}
	}
	return ""
}

// audienceFits looks into a token that happens to be a JWT. Its signature is
// the receiver's business; a token that names other audiences only is not for
// the server we are about to hand it to.
func audienceFits(token, audience string) bool {
	parts := strings.Split(token, ".")
	if audience == "" || len(parts) != 3 {
		return true
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return true
	}
	defer clear(payload)
	var claims struct {
		Audience json.RawMessage `json:"aud"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Audience == nil {
		return true
	}
	var one string
	var many []string
	if json.Unmarshal(claims.Audience, &one) == nil {
		return one == audience
	}
	return json.Unmarshal(claims.Audience, &many) == nil && slices.Contains(many, audience)
}
