package credential

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"gatehouse/gate"
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

// setScopes asks for scopes in a fixed order.
func setScopes(form url.Values, scopes []string) {
	if len(scopes) > 0 {
		sorted := slices.Clone(scopes)
		slices.Sort(sorted)
		form.Set("scope", strings.Join(sorted, " "))
	}
}
