package config

import (
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"gatehouse/upstream/credential"
)

// authKeys says which keys each mode takes, and which of them it cannot do without.
var authKeys = map[credential.Mode]struct{ required, optional []string }{
	credential.None:   {},
	credential.Bearer: {required: []string{"credential"}},
	credential.Header: {required: []string{"header", "credential"}},
	credential.ClientCredentials: {
		required: []string{"token_endpoint", "client_id", "client_secret"},
		optional: []string{"audience", "scopes", "resource"},
	},
	credential.OAuth: {
		optional: []string{"issuer", "client_id", "client_secret", "scopes", "resource"},
	},
	credential.Delegated: {
		required: []string{"profile", "audience"},
		optional: []string{"scopes", "discovery_credential"},
	},
}

// fields are the leaves of the table that depend on the mode, by key.
func (t *authTable) fields() map[string]*field {
	return map[string]*field{
		"credential": &t.Credential.field, "header": &t.Header.field, "token_endpoint": &t.TokenEndpoint.field,
		"issuer": &t.Issuer.field, "client_id": &t.ClientID.field, "client_secret": &t.ClientSecret.field,
		"resource": &t.Resource.field, "profile": &t.Profile.field, "audience": &t.Audience.field,
		"scopes": &t.Scopes.field, "discovery_credential": &t.DiscoveryCredential.field,
	}
}

func (b *builder) auth(st *serverTable, s *Server, u *url.URL) credential.Auth {
	t := &st.Auth
	if !t.present {
		return credential.Auth{Mode: credential.None}
	}
	if !t.Mode.given {
		b.add(t.line, "server.auth.mode", "%s: mode is missing (want %s)", t.subject, strings.Join(credential.Modes(), ", "))
		return credential.Auth{}
	}
	mode := credential.Mode(b.oneOf(&t.table, &t.Mode, credential.Modes()...))
	if !t.Mode.ok() {
		return credential.Auth{}
	}
	b.modeKeys(t, mode)
	a := credential.Auth{
		Mode:                mode,
		Credential:          b.secret(&t.table, &t.Credential),
		Header:              b.headerName(t),
		TokenEndpoint:       b.endpoint(&t.table, &t.TokenEndpoint),
		Issuer:              b.endpoint(&t.table, &t.Issuer),
		ClientID:            b.visible(&t.table, &t.ClientID),
		ClientSecret:        b.secret(&t.table, &t.ClientSecret),
		Resource:            b.resource(t),
		ServerURL:           s.URL,
		Profile:             t.Profile.value,
		Audience:            b.visible(&t.table, &t.Audience),
		Scopes:              b.list(&t.table, &t.Scopes, checkScope),
		DiscoveryCredential: b.secret(&t.table, &t.DiscoveryCredential),
	}
	b.delegated(t, &a)
	b.cleartext(st, a, u)
	return a
}

// modeKeys wants the keys of the mode and no others: a key that is ignored is a
// rule that its author believes in.
func (b *builder) modeKeys(t *authTable, mode credential.Mode) {
	fields, keys := t.fields(), authKeys[mode]
	for _, key := range keys.required {
		if !fields[key].given {
			b.add(t.line, t.dotted(key), "%s: %s is missing; mode %q needs it", t.subject, key, mode)
		}
	}
	for _, key := range sortedKeys(fields) {
		if fields[key].ok() && !slices.Contains(keys.required, key) && !slices.Contains(keys.optional, key) {
			b.wrong(&t.table, fields[key], "is not used by mode %q; leave it out or change the mode", mode)
		}
	}
}

// ownHeaders are set by the protocol or the connection, never by a credential.
var ownHeaders = []string{"Host", "Content-Length", "Content-Type", "Accept", "Cookie", "Connection", "Keep-Alive",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Accept-Encoding", "Content-Encoding", "Origin", "Last-Event-Id", "Traceparent", "Tracestate"}

func (b *builder) headerName(t *authTable) string {
	f := &t.Header
	if !f.ok() {
		return ""
	}
	name := textproto.CanonicalMIMEHeaderKey(f.value)
	switch {
	case !isToken(f.value):
		b.wrong(&t.table, &f.field, "%q is no header name", clip(f.value))
	case name == "Authorization":
		b.wrong(&t.table, &f.field, `"Authorization" is what mode = "bearer" is for`)
	case strings.HasPrefix(name, "Mcp-"), slices.Contains(ownHeaders, name):
		b.wrong(&t.table, &f.field, "%q is set by the protocol or the connection; a credential needs a header of its own", clip(f.value))
	}
	return f.value
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// checkScope is the scope-token of RFC 6749.
func checkScope(s string) string {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return "this is no scope (visible ASCII without spaces, quotes and backslashes; one entry for each)"
		}
	}
	if s == "" {
		return "an empty scope asks for nothing"
	}
	return ""
}

// visible returns a text of visible ASCII characters.
func (b *builder) visible(t *table, f *text) string {
	if !f.ok() {
		return ""
	}
	if f.value == "" || len(f.value) > 512 || strings.ContainsFunc(f.value, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		b.wrong(t, &f.field, "is not usable (want 1 to 512 visible ASCII characters)")
	}
	return f.value
}

// endpoint returns a url that secrets are sent to. It is https; the host gate
// excepts a loopback host, so its http is let through here as well.
func (b *builder) endpoint(t *table, f *text) string {
	if !f.ok() {
		return ""
	}
	u, wrong := checkURL(f.value)
	switch {
	case wrong != "":
		b.wrong(t, &f.field, "%s", wrong)
	case u.Scheme != "https" && !loopback(u.Hostname()):
		b.wrong(t, &f.field, "must be https; what travels there is secret, or must not be forged")
	case secretQuery.MatchString(u.RawQuery):
		b.wrong(t, &f.field, "has a query that looks like a credential; a literal secret is refused")
	}
	return f.value
}

func (b *builder) resource(t *authTable) string {
	f := &t.Resource
	if !f.ok() {
		return ""
	}
	if _, wrong := checkURL(f.value); wrong != "" {
		b.wrong(&t.table, &f.field, "%s", wrong)
	}
	return f.value
}

// delegated holds a server's wishes against its profile.
func (b *builder) delegated(t *authTable, a *credential.Auth) {
	if a.Mode != credential.Delegated || !t.Profile.ok() {
		return
	}
	p, ok := b.config.Delegation[a.Profile]
	if !ok {
		b.wrong(&t.table, &t.Profile.field, "%q is no [delegation.<name>]%s", clip(a.Profile), didYouMean(a.Profile, sortedKeys(b.config.Delegation)))
		return
	}
	if t.Audience.ok() && !slices.Contains(p.AllowedAudiences, a.Audience) {
		b.wrong(&t.table, &t.Audience.field, "%q is not among the allowed_audiences of [delegation.%s]", clip(a.Audience), p.Name)
	}
	for _, s := range a.Scopes {
		if !slices.Contains(p.AllowedScopes, s) {
			b.wrong(&t.table, &t.Scopes.field, "holds %q, which is not among the allowed_scopes of [delegation.%s]", clip(s), p.Name)
			break
		}
	}
	if !t.DiscoveryCredential.given {
		b.warn(t.line, "server.auth.discovery_credential",
			"%s: no discovery_credential; import and test have no caller to speak for and will be refused", t.subject)
	}
}

// didYouMean is "; did you mean …?" or nothing.
func didYouMean(word string, known []string) string {
	if near := nearest(word, known); near != "" {
		return "; did you mean \"" + near + "\"?"
	}
	return ""
}

// cleartext objects to a credential on a url that everyone between can read.
func (b *builder) cleartext(st *serverTable, a credential.Auth, u *url.URL) {
	if u == nil || u.Scheme == "https" || loopback(u.Hostname()) {
		return
	}
	switch {
	case a.HTTPSOnly():
		b.wrong(&st.table, &st.URL.field, "must be https with auth mode %q", a.Mode)
	case a.Mode == credential.Bearer, a.Mode == credential.Header:
		b.warn(st.URL.line, "server.url", "%s: url is http, so its credential travels readable to everyone between; use https", st.subject)
	}
}
