package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// maxMetadata bounds a discovery document.
const maxMetadata = 256 << 10

// resourceMetadata is what a server says about who may authorise (RFC 9728).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
}

// serverMetadata is what an authorization server says about itself (RFC 8414,
// OpenID Connect Discovery).
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	IssInResponse         bool     `json:"authorization_response_iss_parameter_supported"`
	ClientIDDocuments     bool     `json:"client_id_metadata_document_supported"`
}

func loginFailed(format string, args ...any) *Error {
	return &Error{Reason: ReasonLoginFailed, Text: fmt.Sprintf(format, args...)}
}

// discover finds the authorization server of an upstream, by which name the
// upstream is known there (RFC 8707), and the scopes that the upstream wants.
func (b *Broker) discover(ctx context.Context, a Auth) (m serverMetadata, name string, scopes []string, err error) {
	challenge, scopes, err := b.challenge(ctx, a.ServerURL)
	if err != nil {
		return m, "", nil, err
	}
	resource, found, err := b.resourceMetadata(ctx, a, challenge)
	if err != nil {
		return m, "", nil, err
	}
	if name = a.resource(); found && a.Resource == "" {
		name = resource.Resource // to the letter: its authorization server may compare letters
	}
	if len(scopes) == 0 {
		scopes = resource.ScopesSupported
	}
	issuer := a.Issuer
	switch {
	case issuer == "" && len(resource.AuthorizationServers) == 0:
		return m, "", nil, loginFailed("the server names no authorization server; set issuer under [server.auth]")
	case issuer == "":
		issuer = resource.AuthorizationServers[0]
	case found && len(resource.AuthorizationServers) > 0 && !slices.Contains(resource.AuthorizationServers, issuer):
		return m, "", nil, loginFailed("the server does not accept tokens of the configured issuer %q; it names %q", wire.Clip(issuer), wire.Clip(strings.Join(resource.AuthorizationServers, " ")))
	}
	m, err = b.serverMetadata(ctx, a, issuer)
	return m, name, scopes, err
}

// The requests that are made without a credential to see where the refusal
// points. Some servers greet everybody and refuse what comes after.
var knocks = []string{
	`{"jsonrpc":"2.0","id":"login","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"gatehouse","version":"1"}}}`,
	`{"jsonrpc":"2.0","id":"login","method":"tools/list","params":{}}`,
}

// challenge asks the server without a credential and returns where its 401
// points, and the scopes it asks for.
func (b *Broker) challenge(ctx context.Context, serverURL string) (metadataURL string, scopes []string, err error) {
	u, err := b.checkEndpoint(serverURL)
	if err != nil {
		return "", nil, err
	}
	for _, message := range knocks {
		params, err := b.knock(ctx, u, message)
		if err != nil || params != nil {
			return params["resource_metadata"], strings.Fields(params["scope"]), err
		}
	}
	return "", nil, nil
}

// knock makes one request without a credential and returns the parameters of
// the refusal; nil when it was none.
func (b *Broker) knock(ctx context.Context, u *url.URL, message string) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(message))
	if err != nil {
		return nil, loginFailed("the server's url is not usable")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := b.client().Do(req)
	if err != nil {
		return nil, b.unreachable(ctx, u, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return nil, nil
	}
	return bearerParams(resp.Header.Values("WWW-Authenticate")), nil
}

func (b *Broker) unreachable(ctx context.Context, u *url.URL, err error) error {
	if ctx.Err() != nil {
		return outOfTime(ctx)
	}
	var host *wire.HostError
	if errors.As(err, &host) {
		return hostRefused(err)
	}
	return &Error{Reason: ReasonLoginFailed, Text: u.Host + " cannot be reached", Cause: scrubbed(err)}
}

// resourceMetadata reads the RFC 9728 document at the place the challenge named,
// or at the well-known ones. What it is about must be the server it came from.
func (b *Broker) resourceMetadata(ctx context.Context, a Auth, challenged string) (m resourceMetadata, found bool, err error) {
	server, err := url.Parse(a.ServerURL)
	if err != nil {
		return m, false, loginFailed("the server's url is not usable")
	}
	places := []string{challenged}
	if challenged == "" {
		root := server.Scheme + "://" + server.Host + "/.well-known/oauth-protected-resource"
		places = []string{root}
		if path := strings.TrimSuffix(server.EscapedPath(), "/"); path != "" {
			places = []string{root + path, root}
		}
	}
	for _, place := range places {
		if found, err = b.document(ctx, a, place, &m); err != nil {
			return m, false, err
		}
		if !found {
			continue
		}
		if !covers(m.Resource, server) {
			return m, false, loginFailed("the metadata at %q is about %q and not about this server", wire.Clip(place), wire.Clip(m.Resource))
		}
		return m, true, nil
	}
	return m, false, nil
}

// covers reports whether resource is server or a parent path of it on the same origin.
func covers(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(r.Scheme, server.Scheme) || !strings.EqualFold(r.Host, server.Host) || r.RawQuery != "" && r.RawQuery != server.RawQuery {
		return false
	}
	parent := strings.TrimSuffix(r.EscapedPath(), "/")
	path := strings.TrimSuffix(server.EscapedPath(), "/")
	return path == parent || strings.HasPrefix(path, parent+"/")
}

// serverMetadata reads the document of an issuer, which must name that very
// issuer (RFC 8414 section 3.3), and refuses a server without PKCE.
func (b *Broker) serverMetadata(ctx context.Context, a Auth, issuer string) (m serverMetadata, err error) {
	u, err := b.checkNamed(a, issuer)
	if err != nil {
		return m, err
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	found := false
	for _, place := range []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
		origin + path + "/.well-known/openid-configuration",
	} {
		if found, err = b.document(ctx, a, place, &m); err != nil {
			return m, err
		}
		if found {
			break
		}
	}
	switch {
	case !found:
		return m, loginFailed("issuer %q has no metadata at any of the well-known places", wire.Clip(issuer))
	case m.Issuer != issuer:
		return m, loginFailed("the metadata of issuer %q calls itself %q", wire.Clip(issuer), wire.Clip(m.Issuer))
	case !slices.Contains(m.ChallengeMethods, "S256"):
		return m, loginFailed("issuer %q does not offer PKCE with S256", wire.Clip(issuer))
	case m.AuthorizationEndpoint == "" || m.TokenEndpoint == "":
		return m, loginFailed("the metadata of issuer %q names no authorization or no token endpoint", wire.Clip(issuer))
	}
	for _, endpoint := range []string{m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint, m.RevocationEndpoint} {
		if endpoint == "" {
			continue
		}
		if _, err := b.checkNamed(a, endpoint); err != nil {
			return m, err
		}
	}
	return m, nil
}

// document reads one JSON document. A 4xx is no document; anything but a JSON
// object is an error, because a second place must not answer for a broken first.
func (b *Broker) document(ctx context.Context, a Auth, place string, into any) (found bool, err error) {
	u, err := b.checkNamed(a, place)
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false, loginFailed("%q is not usable", wire.Clip(place))
	}
	req.Header.Set("Accept", "application/json")
	resp, err := b.client().Do(req)
	if err != nil {
		return false, b.unreachable(ctx, u, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 && resp.StatusCode < 500 {
		return false, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
	mediaType, _, typeErr := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode != http.StatusOK:
		return false, loginFailed("%q answered HTTP %d", wire.Clip(place), resp.StatusCode)
	case err != nil || len(body) > maxMetadata:
		return false, loginFailed("%q is larger than 256 KiB or ended early", wire.Clip(place))
	case typeErr != nil || mediaType != "application/json":
		return false, loginFailed("%q is not application/json", wire.Clip(place))
	case rawjson.Check(body) != nil || json.Unmarshal(body, into) != nil:
		return false, loginFailed("%q is not the JSON object it should be", wire.Clip(place))
	}
	return true, nil
}

// bearerParams reads the parameters of the first Bearer challenge (RFC 9110
// section 11.6.1).
func bearerParams(headers []string) map[string]string {
	for _, h := range headers {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(h), " ")
		if strings.EqualFold(scheme, "Bearer") {
			return authParams(rest)
		}
	}
	return nil
}

func authParams(s string) map[string]string {
	params := map[string]string{}
	for s = strings.TrimLeft(s, " ,\t"); s != ""; s = strings.TrimLeft(s, " ,\t") {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		rest = strings.TrimLeft(rest, " \t")
		value := ""
		if strings.HasPrefix(rest, `"`) {
			value, rest = quotedString(rest[1:])
		} else if i := strings.IndexAny(rest, ", \t"); i >= 0 {
			value, rest = rest[:i], rest[i:]
		} else {
			value, rest = rest, ""
		}
		if name = strings.ToLower(strings.TrimSpace(name)); params[name] == "" {
			params[name] = value
		}
		s = rest
	}
	return params
}

// quotedString reads up to the closing quotation mark, which it may have lost.
func quotedString(s string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}
