package credential

import (
	"slices"
	"strings"
)

// A Mode says how we authenticate at an upstream. The zero value is None,
// which the configuration has to be silent about or to spell out.
type Mode string

// The modes.
const (
	None              Mode = "none"
	Bearer            Mode = "bearer"
	Header            Mode = "header"
	ClientCredentials Mode = "client_credentials"
	OAuth             Mode = "oauth"
	Delegated         Mode = "delegated"
)

// Modes lists the modes by their spelling in the configuration.
func Modes() []string {
	return []string{string(None), string(Bearer), string(Header), string(Delegated), string(ClientCredentials), string(OAuth)}
}

// Auth is one server's [server.auth]: how to authenticate, without any secret.
type Auth struct {
	Mode       Mode
	Credential Reference // bearer, header
	Header     string    // header: the field's name

	// client_credentials, oauth
	TokenEndpoint string // client_credentials
	Issuer        string // oauth: pins the authorization server; "" = discovered
	ClientID      string
	ClientSecret  Reference
	Resource      string // RFC 8707; oauth: "" = the server's url
	ServerURL     string // oauth: the upstream, where discovery starts

	// delegated; Audience and Scopes also serve client_credentials and oauth
	Profile             string // name of a [delegation.<name>] table
	Audience            string
	Scopes              []string
	DiscoveryCredential Reference // import and test only
}

// Identity is a text that changes whenever we would authenticate as somebody
// else or somewhere else. It holds references and names, no secret.
func (a Auth) Identity() string {
	scopes := slices.Clone(a.Scopes)
	slices.Sort(scopes)
	mode := a.Mode
	if mode == "" {
		mode = None
	}
	return strings.Join([]string{string(mode), a.Credential.String(), strings.ToLower(a.Header), a.TokenEndpoint, a.Issuer,
		a.ClientID, a.ClientSecret.String(), a.Resource, a.Profile, a.Audience, strings.Join(scopes, " "),
		a.DiscoveryCredential.String()}, "\n")
}

// HTTPSOnly reports whether the mode may talk to https upstreams only. The host
// gate excepts a loopback host that stands in private_hosts.
func (a Auth) HTTPSOnly() bool {
	return a.Mode == Delegated || a.Mode == ClientCredentials || a.Mode == OAuth
}

// A Profile is one [delegation.<name>]: where tokens are exchanged and for whom.
type Profile struct {
	Name             string
	TokenEndpoint    string
	ClientID         string
	ClientSecret     Reference // zero: a public client
	AllowedAudiences []string
	AllowedScopes    []string
	Grants           map[string]Grant // by caller name, or "<issuer>|<subject>"
}

// A Grant lets one caller be represented upstream. The zero value grants nothing.
type Grant struct {
	Enabled          bool
	Subject          Reference
	CallerToken      bool // subject = "caller_token": exchange the verified inbound token
	AllowedAudiences []string
	AllowedScopes    []string
}
