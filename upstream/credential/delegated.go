package credential

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"gatehouse/gate"
)

// longestDelegation bounds a delegated token, however long the endpoint says it
// lives. It never outlives its operation anyway.
const longestDelegation = 5 * time.Minute

// shortestDelegation is what must be left of a token that has just arrived.
const shortestDelegation = time.Second

// delegated is the execution session of mode "delegated": a token exchanged for
// the initiating caller (RFC 8693). It lives in memory for one operation.
type delegated struct {
	broker  *Broker
	auth    Auth
	caller  gate.CallerName
	inbound Secret
	verdict

	turn    chan struct{} // capacity 1; guards everything below
	token   Secret
	expires time.Time
	legs    []gate.Leg
	closed  bool
}

// openDelegated refuses before anything is sent whom no grant covers.
func (b *Broker) openDelegated(a Auth, p Purpose) (Session, error) {
	if p.kind == discovery {
		if a.DiscoveryCredential.IsZero() {
			return nil, &Error{Reason: ReasonNoDiscovery,
				Text: "import and test speak for no caller and need a credential of their own; set discovery_credential under [server.auth]"}
		}
		return &static{secrets: b.options.Secrets, ref: a.DiscoveryCredential, name: "Authorization", prefix: "Bearer ",
			verdict: verdict{&b.standings, a}}, nil
	}
	if _, _, err := b.granted(a, p.caller); err != nil {
		return nil, err
	}
	return &delegated{broker: b, auth: a, caller: p.caller, inbound: p.inbound, turn: make(chan struct{}, 1), verdict: verdict{&b.standings, a}}, nil
}

// granted returns the profile and the grant that cover caller and server, as
// they are now.
func (b *Broker) granted(a Auth, caller gate.CallerName) (Profile, Grant, error) {
	refuse := func(reason, format string, args ...any) (Profile, Grant, error) {
		return Profile{}, Grant{}, &Error{Reason: reason, Text: fmt.Sprintf(format, args...)}
	}
	if caller == "" {
		return refuse(ReasonCallerWithout, "nobody is asking, and nobody has no grant")
	}
	var p Profile
	ok := false
	if profiles := b.profiles.Load(); profiles != nil {
		p, ok = (*profiles)[a.Profile]
	}
	if !ok {
		return refuse(ReasonCallerWithout, "there is no [delegation.%s], so nobody has a grant of it", a.Profile)
	}
	g, ok := p.Grants[string(caller)]
	if !ok || !g.Enabled {
		return refuse(ReasonCallerWithout, "caller %q has no enabled grant under [delegation.%s.grants]", caller, a.Profile)
	}
	if a.Audience == "" || !slices.Contains(p.AllowedAudiences, a.Audience) || !slices.Contains(g.AllowedAudiences, a.Audience) {
		return refuse(ReasonAudience, "audience %q is not within the allowed_audiences of [delegation.%s] and of the grant of caller %q", a.Audience, a.Profile, caller)
	}
	for _, s := range a.Scopes {
		if !slices.Contains(p.AllowedScopes, s) || !slices.Contains(g.AllowedScopes, s) {
			return refuse(ReasonScope, "scope %q is not within the allowed_scopes of [delegation.%s] and of the grant of caller %q", s, a.Profile, caller)
		}
	}
	return p, g, nil
}

// Header exchanges when there is no token, or it has expired. Everything that
// allowed the first exchange is checked again for the next one.
func (d *delegated) Header(ctx context.Context) (name, value string, err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return "", "", outOfTime(ctx)
	}
	defer func() { <-d.turn }()
	if d.closed {
		return "", "", errClosed()
	}
	if d.token.IsZero() || !d.broker.options.Now().Before(d.expires) {
		if err := d.exchange(ctx); err != nil {
			return "", "", err
		}
	}
	return "Authorization", "Bearer " + d.token.Reveal(), nil
}

func (d *delegated) exchange(ctx context.Context) error {
	d.wipe()
	b := d.broker
	p, g, err := b.granted(d.auth, d.caller)
	if err != nil {
		return err
	}
	endpoint, err := b.checkEndpoint(p.TokenEndpoint)
	if err != nil {
		return err
	}
	subject, err := d.subject(ctx, g)
	if err != nil {
		return err
	}
	form := url.Values{
		"grant_type":           {"urn:ietf:params:oauth:grant-type:token-exchange"},
		"subject_token":        {subject.Reveal()},
		"subject_token_type":   {accessTokenType},
		"requested_token_type": {accessTokenType},
		"audience":             {d.auth.Audience},
		"client_id":            {p.ClientID},
	}
	setScopes(form, d.auth.Scopes)
	if !p.ClientSecret.IsZero() {
		secret, err := resolve(ctx, b.options.Secrets, p.ClientSecret)
		if err != nil {
			return err
		}
		form.Set("client_secret", secret.Reveal())
	}
	start := b.options.Now()
	got, err := b.ask(ctx, request{endpoint: endpoint, form: form, scopes: nonNil(d.auth.Scopes),
		audience: d.auth.Audience, exchange: true, notToken: subject}, func(l gate.Leg) { d.legs = append(d.legs, l) })
	if err != nil {
		return err
	}
	expires := got.expires
	if most := start.Add(longestDelegation); most.Before(expires) {
		expires = most
	}
	if expires.Sub(b.options.Now()) < shortestDelegation {
		got.access.Wipe()
		return &Error{Reason: ReasonExpired, Text: "the exchanged token had expired, or nearly, when it arrived"}
	}
	d.token, d.expires = got.access, expires
	return nil
}

// nonNil makes "none asked for" mean that none may be given.
func nonNil(scopes []string) []string {
	if scopes == nil {
		return []string{}
	}
	return scopes
}

// subject is the token that is exchanged, looked up anew each time.
func (d *delegated) subject(ctx context.Context, g Grant) (Secret, error) {
	if g.CallerToken {
		if d.inbound.IsZero() {
			return Secret{}, &Error{Reason: ReasonSubject,
				Text: fmt.Sprintf("the grant of caller %q exchanges the token the caller came with, and there is none", d.caller)}
		}
		return d.inbound, nil
	}
	subject, err := resolve(ctx, d.broker.options.Secrets, g.Subject)
	if err != nil {
		return Secret{}, &Error{Reason: ReasonSubject, Text: fmt.Sprintf("the subject of caller %q does not resolve: %s", d.caller, err), Cause: err}
	}
	return subject, nil
}

func (d *delegated) Legs() []gate.Leg {
	d.turn <- struct{}{} // held by Header for as long as its context allows
	defer func() { <-d.turn }()
	return append([]gate.Leg(nil), d.legs...)
}

// Close wipes the token. An exchange under way ends with its own context.
func (d *delegated) Close() {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	d.closed = true
	d.wipe()
}

func (d *delegated) wipe() {
	d.token.Wipe()
	d.token, d.expires = Secret{}, time.Time{}
}
