package credential

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"gatehouse/gate"
	"gatehouse/upstream/wire"
)

// LoginOptions says how a person logs in.
type LoginOptions struct {
	// Redirect is where the browser comes back to: a loopback url that a
	// Receiver listens on, or one that nobody listens on, whose address the
	// person copies from the browser.
	Redirect string
	// ClientDocument is the https url of our client id metadata document, when
	// we serve one; "" = we do not.
	ClientDocument string
}

// A Login is an authorization under way. It is used once.
type Login struct {
	// URL is what the person opens in a browser.
	URL string
	// Issuer is who will ask the person to agree.
	Issuer string

	broker   *Broker
	auth     Auth
	login    login
	redirect string
	state    string
	verifier Secret
	iss      bool // the response must name the issuer
}

// BeginLogin discovers the authorization server of an upstream, settles who we
// are there (configured, by metadata document, or registered now, in that order)
// and returns the url to open.
func (b *Broker) BeginLogin(ctx context.Context, a Auth, o LoginOptions) (*Login, error) {
	if a.Mode != OAuth {
		return nil, loginFailed("only a server with auth mode %q is logged in at", OAuth)
	}
	if _, err := b.keep(); err != nil {
		return nil, err
	}
	if b.options.Client == nil {
		return nil, loginFailed("no client for requests is set up")
	}
	m, resource, wanted, err := b.discover(ctx, a)
	if err != nil {
		return nil, err
	}
	scopes := a.Scopes
	if len(scopes) == 0 {
		if before, err := b.loadLogin(ctx, a); err == nil && len(before.Wanted) > 0 {
			wanted = mergeScopes(before.Scopes, wanted, before.Wanted) // to gain one is not to lose others
		}
		scopes = wanted
		if slices.Contains(m.ScopesSupported, "offline_access") {
			scopes = mergeScopes(scopes, []string{"offline_access"}) // what a refresh token is called there
		}
	}
	l := &Login{Issuer: m.Issuer, broker: b, auth: a, redirect: o.Redirect, iss: m.IssInResponse,
		state: random(), verifier: SecretString(random())}
	l.login = login{Issuer: m.Issuer, TokenEndpoint: m.TokenEndpoint, RevocationEndpoint: m.RevocationEndpoint,
		Resource: resource, Scopes: scopes}
	if err := b.identity(ctx, a, m, o, &l.login); err != nil {
		return nil, err
	}
	l.URL, err = l.authorizationURL(m.AuthorizationEndpoint)
	return l, err
}

// random is 256 bits of it, in characters that need no escaping.
func random() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b)
}

func (l *Login) authorizationURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", loginFailed("the authorization endpoint of %q is not a url", wire.Clip(l.Issuer))
	}
	challenge := sha256.Sum256([]byte(l.verifier.Reveal()))
	q := u.Query()
	q.Set("response_type", "code")
	q.Set("client_id", l.login.ClientID)
	q.Set("redirect_uri", l.redirect)
	q.Set("state", l.state)
	q.Set("code_challenge", base64.RawURLEncoding.EncodeToString(challenge[:]))
	q.Set("code_challenge_method", "S256")
	q.Set("resource", l.login.Resource)
	if len(l.login.Scopes) > 0 {
		q.Set("scope", strings.Join(l.login.Scopes, " "))
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// sameState reports whether an answer carries the state of a login.
func sameState(answer url.Values, state string) bool {
	return subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(state)) == 1
}

// Finish takes the query of the url that the browser came back to, exchanges
// the code and keeps what it got. The answer must belong to this very login:
// its state, and the issuer where one is named or promised (RFC 9207).
func (l *Login) Finish(ctx context.Context, query url.Values) error {
	if l.verifier.IsZero() {
		return loginFailed("this login is over; begin another")
	}
	verifier := l.verifier
	l.verifier = Secret{}
	if !sameState(query, l.state) {
		return loginFailed("the answer does not belong to this login; begin another and use its url")
	}
	if iss := query.Get("iss"); iss != l.Issuer && (query.Has("iss") || l.iss) {
		return loginFailed("the answer is from issuer %q and not from %q", wire.Clip(iss), wire.Clip(l.Issuer))
	}
	if query.Has("error") {
		return loginFailed("the authorization server answered %q", wire.Clip(query.Get("error")))
	}
	code := query.Get("code")
	if !visibleToken(code) {
		return loginFailed("the answer holds no code")
	}
	b := l.broker
	endpoint, err := b.checkNamed(l.auth, l.login.TokenEndpoint)
	if err != nil {
		return err
	}
	r := request{endpoint: endpoint, refresh: true, resendNot: true, form: url.Values{"grant_type": {"authorization_code"},
		"code": {code}, "redirect_uri": {l.redirect}, "code_verifier": {verifier.Reveal()}, "resource": {l.login.Resource}}}
	if err := b.identify(ctx, l.auth, l.login, &r); err != nil {
		return err
	}
	g, err := b.ask(ctx, r, func(gate.Leg) {})
	if err != nil {
		return err
	}
	return l.save(ctx, g)
}

func (l *Login) save(ctx context.Context, g grant) error {
	l.login.RefreshToken, l.login.AccessToken, l.login.Expires = g.refresh.Reveal(), "", g.expires.UTC()
	if g.refresh.IsZero() {
		l.login.AccessToken = g.access.Reveal()
	}
	if err := l.broker.saveLogin(ctx, l.auth, l.login); err != nil {
		return &Error{Reason: ReasonLoginFailed, Text: "the login succeeded and could not be kept: " + err.Error(), Cause: err}
	}
	l.broker.spent.Delete(l.auth.loginKey())
	l.broker.standings.forgive(l.auth.standingKey())
	return l.broker.tokens.put(ctx, l.auth.loginKey(), g)
}
