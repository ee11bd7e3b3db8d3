package credential

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// clientMetadata describes us to an authorization server (RFC 7591), both in a
// registration and as a client id metadata document.
type clientMetadata struct {
	ClientID        string   `json:"client_id,omitempty"`
	ClientName      string   `json:"client_name"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	ApplicationType string   `json:"application_type"`
	Scope           string   `json:"scope,omitempty"`
}

func ourMetadata(redirects ...string) clientMetadata {
	return clientMetadata{ClientName: "Gatehouse", RedirectURIs: redirects, AuthMethod: "none", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"}}
}

// ClientDocument is the client id metadata document to serve at documentURL,
// which then is our client id wherever such documents are understood. Loopback
// redirects match on any port (RFC 8252 section 7.3).
func ClientDocument(documentURL string) ([]byte, error) {
	m := ourMetadata("http://127.0.0.1"+CallbackPath, "http://[::1]"+CallbackPath)
	m.ClientID = documentURL
	return json.Marshal(m)
}

// identity settles who we are at an authorization server.
func (b *Broker) identity(ctx context.Context, a Auth, m serverMetadata, o LoginOptions, l *login) error {
	switch {
	case a.ClientID != "":
		l.ClientID = a.ClientID
		l.Basic = !a.ClientSecret.IsZero() && !slices.Contains(m.AuthMethods, "client_secret_post")
		return nil
	case m.ClientIDDocuments && strings.HasPrefix(o.ClientDocument, "https://"):
		l.ClientID = o.ClientDocument
		return nil
	case m.RegistrationEndpoint != "":
		return b.register(ctx, a, m, o.Redirect, l)
	}
	return loginFailed("issuer %q registers no clients by itself; register one there and set client_id under [server.auth]", wire.Clip(m.Issuer))
}

// register makes us known to an authorization server for this login (RFC 7591).
func (b *Broker) register(ctx context.Context, a Auth, m serverMetadata, redirect string, l *login) error {
	u, err := b.checkNamed(a, m.RegistrationEndpoint)
	if err != nil {
		return err
	}
	about := ourMetadata(redirect)
	about.Scope = strings.Join(l.Scopes, " ")
	body, err := json.Marshal(about)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(string(body)))
	if err != nil {
		return loginFailed("the registration endpoint's url is not usable")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := b.client().Do(req)
	if err != nil {
		return b.unreachable(ctx, u, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return loginFailed("issuer %q refused to register us with HTTP %d; register a client there and set client_id under [server.auth]", wire.Clip(m.Issuer), resp.StatusCode)
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil || len(reply) > maxReply || rawjson.Check(reply) != nil {
		return loginFailed("the registration's answer is not usable")
	}
	defer clear(reply)
	members, err := rawjson.Object(reply)
	if err != nil {
		return loginFailed("the registration's answer is not a JSON object")
	}
	id, ok := word(members, "client_id")
	if !ok || !visibleToken(id) {
		return loginFailed("the registration's answer holds no usable client_id")
	}
	l.ClientID = id
	if secret, ok := word(members, "client_secret"); ok {
		method, _ := word(members, "token_endpoint_auth_method")
		l.ClientSecret, l.Basic = secret, method == "client_secret_basic"
	}
	return nil
}

// revoke tells the authorization server that a token is of no more use.
func (b *Broker) revoke(ctx context.Context, a Auth, l login, token string) error {
	if l.RevocationEndpoint == "" || token == "" {
		return nil
	}
	u, err := b.checkNamed(a, l.RevocationEndpoint)
	if err != nil {
		return err
	}
	r := request{form: url.Values{"token": {token}}}
	if err := b.identify(ctx, a, l, &r); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(r.form.Encode()))
	if err != nil {
		return loginFailed("the revocation endpoint's url is not usable")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if !r.basic.IsZero() {
		req.SetBasicAuth(url.QueryEscape(l.ClientID), url.QueryEscape(r.basic.Reveal()))
	}
	resp, err := b.client().Do(req)
	if err != nil {
		return b.unreachable(ctx, u, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &Error{Reason: ReasonRefused, Status: resp.StatusCode,
			Text: "the login is forgotten here, and the authorization server did not confirm that it revoked it"}
	}
	return nil
}
