package credential

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/gate"
)

// Keep is where logins are kept between one start and the next: the vault.
type Keep interface {
	Keeper
	Set(ctx context.Context, name string, value Secret, by string) error
	Remove(name string) (bool, error)
}

// A login is what one authorization obtained, as the vault holds it.
type login struct {
	Issuer             string    `json:"issuer"`
	TokenEndpoint      string    `json:"token_endpoint"`
	RevocationEndpoint string    `json:"revocation_endpoint,omitempty"`
	ClientID           string    `json:"client_id"`
	ClientSecret       string    `json:"client_secret,omitempty"` // of a registration; a configured one stays a reference
	Basic              bool      `json:"client_secret_basic,omitempty"`
	Resource           string    `json:"resource"`
	Scopes             []string  `json:"scopes,omitempty"`
	Wanted             []string  `json:"wanted_scopes,omitempty"` // the server has said that they are missing
	RefreshToken       string    `json:"refresh_token,omitempty"`
	AccessToken        string    `json:"access_token,omitempty"` // only when there is no refresh token
	Expires            time.Time `json:"expires"`
}

// loginKey names the login of a server in the vault. It changes with the server
// and with everything that makes us somebody else there, so that a token never
// goes to a server that it was not obtained for.
func (a Auth) loginKey() string {
	sum := sha256.Sum256([]byte(a.Identity() + "\n" + a.ServerURL))
	return "oauth-" + hex.EncodeToString(sum[:8])
}

// resource is the RFC 8707 indicator of the server.
func (a Auth) resource() string {
	if a.Resource != "" {
		return a.Resource
	}
	return a.ServerURL
}

func loginNeeded(text string) *Error {
	return &Error{Reason: ReasonLoginNeeded, Text: text + "; log in with: gatehouse login <id>"}
}

// refreshed fetches an access token with the refresh token of a login.
func (b *Broker) refreshed(a Auth) func(context.Context, func(gate.Leg)) (grant, error) {
	return func(ctx context.Context, leg func(gate.Leg)) (grant, error) {
		l, err := b.loadLogin(ctx, a)
		if err != nil {
			return grant{}, err
		}
		if l.RefreshToken == "" {
			if !b.options.Now().Before(l.Expires) {
				return grant{}, loginNeeded("the login has expired, and the authorization server gave no means to renew it")
			}
			return grant{access: SecretString(l.AccessToken), expires: l.Expires}, nil
		}
		if b.isSpent(a, l) {
			return grant{}, errSpent()
		}
		endpoint, err := b.checkNamed(a, l.TokenEndpoint)
		if err != nil {
			return grant{}, err
		}
		r := request{endpoint: endpoint, refresh: true, resendNot: true, form: url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {l.RefreshToken}, "resource": {l.Resource}}}
		if err := b.identify(ctx, a, l, &r); err != nil {
			return grant{}, err
		}
		g, err := b.ask(ctx, r, leg)
		if e, ok := errors.AsType[*Error](err); ok && e.code != "" {
			if e.code == codeInvalidGrant {
				b.spent.Store(a.loginKey(), fingerprint(SecretString(l.RefreshToken)))
			}
			return grant{}, errSpent()
		}
		if err != nil {
			return grant{}, err
		}
		if !g.refresh.IsZero() && g.refresh.Reveal() != l.RefreshToken {
			// The old one is spent. Losing the new one would mean a new login, so
			// hanging up must not be able to keep it from being written.
			l.RefreshToken = g.refresh.Reveal()
			if err := b.saveLogin(context.WithoutCancel(ctx), a, l); err != nil {
				b.options.Logger.Error("the renewed login could not be kept; it is lost with the next restart", "issuer", l.Issuer, "error", err)
			}
		}
		return g, nil
	}
}

// maxWanted bounds the scopes that a server can have us ask a person for.
const maxWanted = 32

// widen keeps the scopes that a server says are missing (RFC 6750 section 3.1),
// for the next login to ask for. Nothing happens by itself: whether we get them
// is for a person to agree to.
func (b *Broker) widen(a Auth) func(context.Context, string) {
	return func(ctx context.Context, challenge string) {
		at := strings.Index(strings.ToLower(challenge), "bearer ") // other schemes may stand before it
		if at < 0 {
			return
		}
		params := bearerParams([]string{challenge[at:]})
		missing := strings.Fields(params["scope"])
		if params["error"] != "insufficient_scope" || len(missing) == 0 || len(a.Scopes) > 0 {
			return // what the configuration asks for, nobody widens
		}
		b.tokens.hold(ctx, a.loginKey(), func() {
			l, err := b.loadLogin(ctx, a)
			if err != nil {
				return
			}
			wanted := mergeScopes(l.Wanted, missing)
			if len(wanted) > maxWanted || len(wanted) == len(l.Wanted) || strings.ContainsFunc(challenge, func(r rune) bool { return r < ' ' || r > '~' }) {
				return
			}
			l.Wanted = wanted
			if err := b.saveLogin(context.WithoutCancel(ctx), a, l); err != nil {
				b.options.Logger.Warn("the scopes that a server misses could not be kept", "issuer", l.Issuer, "error", err)
			}
		})
	}
}

// identify adds who we are to a request: a registered or a configured client,
// with its secret where it has one.
func (b *Broker) identify(ctx context.Context, a Auth, l login, r *request) error {
	r.form.Set("client_id", l.ClientID)
	secret := SecretString(l.ClientSecret)
	if !a.ClientSecret.IsZero() {
		var err error
		if secret, err = resolve(ctx, b.options.Secrets, a.ClientSecret); err != nil {
			return err
		}
	}
	switch {
	case secret.IsZero():
	case l.Basic:
		r.basic = secret
	default:
		r.form.Set("client_secret", secret.Reveal())
	}
	return nil
}

// keep returns the vault, without which nobody can be logged in.
func (b *Broker) keep() (Keep, error) {
	if b.options.Keep == nil {
		return nil, &Error{Reason: ReasonLoginNeeded, Text: `auth mode "oauth" keeps its logins in the vault, and there is none; set [vault] identity`}
	}
	return b.options.Keep, nil
}

func (b *Broker) loadLogin(ctx context.Context, a Auth) (login, error) {
	keep, err := b.keep()
	if err != nil {
		return login{}, err
	}
	kept, err := keep.Reveal(ctx, a.loginKey())
	switch {
	case errors.Is(err, ErrNoSecret):
		return login{}, loginNeeded("nobody has logged in at this server")
	case err != nil:
		return login{}, &Error{Reason: ReasonUnresolved, Text: err.Error(), Cause: err}
	}
	text := kept.Bytes()
	defer clear(text)
	var l login
	if json.Unmarshal(text, &l) != nil || l.TokenEndpoint == "" || l.ClientID == "" {
		return login{}, loginNeeded("what is kept of the login is not readable")
	}
	if a.Issuer != "" && l.Issuer != a.Issuer {
		return login{}, loginNeeded("the login is of another issuer than the configured one")
	}
	return l, nil
}

func (b *Broker) saveLogin(ctx context.Context, a Auth, l login) error {
	keep, err := b.keep()
	if err != nil {
		return err
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return keep.Set(ctx, a.loginKey(), NewSecret(text), "login")
}

// loginState is the state of what is kept of a login.
func (b *Broker) loginState(ctx context.Context, a Auth) string {
	l, err := b.loadLogin(ctx, a)
	var e *Error
	switch {
	case errors.As(err, &e) && e.Reason == ReasonLoginNeeded:
		return StateLoginNeeded
	case err != nil:
		return StateRefused
	case l.RefreshToken != "" && b.isSpent(a, l):
		return StateLoginNeeded
	case l.RefreshToken == "" && !b.options.Now().Before(l.Expires):
		return StateExpired
	}
	return StateOK
}

// Ends says when a login ends that nothing can renew. It is zero for every other
// credential: nobody here knows when those end.
func (b *Broker) Ends(ctx context.Context, a Auth) time.Time {
	if a.Mode != OAuth {
		return time.Time{}
	}
	l, err := b.loadLogin(ctx, a)
	if err != nil || l.RefreshToken != "" {
		return time.Time{}
	}
	return l.Expires
}

// isSpent reports whether the authorization server has said that the refresh
// token of l is no good any more. Asking again would not change that, and some
// servers take it for an attack.
func (b *Broker) isSpent(a Auth, l login) bool {
	of, ok := b.spent.Load(a.loginKey())
	return ok && of == fingerprint(SecretString(l.RefreshToken))
}

func errSpent() *Error {
	return loginNeeded("the authorization server no longer accepts the login")
}

// state reads a slot unless it is busy: whoever fetches a token now will know.
func (c *cache) state(key string) string {
	s := c.slot(key)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return StateOK
	}
	e, known := errors.AsType[*Error](s.failure)
	switch {
	case s.failure == nil:
		return StateOK
	case known && e.Reason == ReasonLoginNeeded:
		return StateLoginNeeded
	case known && e.Reason == ReasonRefused && e.Status >= 400 && e.Status < 500:
		return StateRefused
	case !s.token.IsZero() && c.now().Before(s.expires):
		return StateOK // early renewal failed; there is time to try again
	case !s.token.IsZero():
		return StateExpired
	}
	return StateRefused
}

// Logout forgets a login and tells the authorization server (RFC 7009). The
// login is gone here even when the server cannot be told; the error then says so.
func (b *Broker) Logout(ctx context.Context, a Auth) error {
	l, err := b.loadLogin(ctx, a)
	if err != nil {
		return err
	}
	keep, err := b.keep()
	if err != nil {
		return err
	}
	if _, err := keep.Remove(a.loginKey()); err != nil {
		return err
	}
	if err := b.tokens.put(ctx, a.loginKey(), grant{}); err != nil {
		return err
	}
	b.standings.forgive(a.standingKey())
	token := l.RefreshToken
	if token == "" {
		token = l.AccessToken
	}
	return b.revoke(ctx, a, l, token)
}

// mergeScopes joins lists without repeating a scope.
func mergeScopes(lists ...[]string) []string {
	var out []string
	for _, list := range lists {
		for _, s := range list {
			if s != "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}
