package credential

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gatehouse/gate"
	"gatehouse/upstream/wire"
)

// clientCredentials fetches a token for ourselves (RFC 6749 section 4.4).
func (b *Broker) clientCredentials(a Auth) func(context.Context, func(gate.Leg)) (grant, error) {
	return func(ctx context.Context, leg func(gate.Leg)) (grant, error) {
		endpoint, err := b.checkEndpoint(a.TokenEndpoint)
		if err != nil {
			return grant{}, err
		}
		secret, err := resolve(ctx, b.options.Secrets, a.ClientSecret)
		if err != nil {
			return grant{}, err
		}
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {a.ClientID}, "client_secret": {secret.Reveal()}}
		setScopes(form, a.Scopes)
		if a.Audience != "" {
			form.Set("audience", a.Audience)
		}
		if a.Resource != "" {
			form.Set("resource", a.Resource)
		}
		return b.ask(ctx, request{endpoint: endpoint, form: form, scopes: a.Scopes, audience: a.Audience}, leg)
	}
}

// checkEndpoint is the host gate, which stands before any secret is looked up.
func (b *Broker) checkEndpoint(raw string) (*url.URL, error) {
	if b.options.CheckURL == nil {
		return nil, &Error{Reason: ReasonHostRefused, Text: "no host gate is set up, so no host is allowed"}
	}
	u, err := b.options.CheckURL(raw, true)
	if err != nil {
		return nil, hostRefused(err)
	}
	return u, nil
}

// checkNamed is the host gate for a url that a server named. What the operator
// said in private_hosts is about the servers of the file: no server can use it to
// send us to a private address, unless the host is its own, whose ports it reaches
// without us, or that of the issuer in the file.
func (b *Broker) checkNamed(a Auth, raw string) (*url.URL, error) {
	u, err := b.checkEndpoint(raw)
	if err != nil || b.options.Private == nil || !b.options.Private(u.Hostname()) {
		return u, err
	}
	for _, known := range []string{a.ServerURL, a.Issuer} {
		if known == "" {
			continue
		}
		if k, err := b.checkEndpoint(known); err == nil && k.Hostname() == u.Hostname() {
			return u, nil
		}
	}
	return nil, &Error{Reason: ReasonHostRefused, Text: fmt.Sprintf(
		"the server names %q, which private_hosts allows for hosts of the file only; if tokens are to come from there, set issuer under [server.auth]",
		wire.Clip(u.Host))}
}

// setScopes asks for scopes in a fixed order.
func setScopes(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		sorted := slices.Clone(scopes)
		slices.Sort(sorted)
		form.Set("scope", strings.Join(sorted, " "))
	}
}
