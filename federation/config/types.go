package config

import (
	"path/filepath"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// A Config is one file, decoded and found free of errors. It is immutable.
type Config struct {
	Path   string      // as given to Load
	Digest gate.Digest // of the file's bytes

	Listen    Listen
	State     State
	Operation Operation
	Network   Network
	Gate      Gate
	Approval  Approval
	Audit     Audit
	Metrics   Metrics
	Vault     Vault
	OIDC      OIDC

	Delegation map[string]credential.Profile
	Callers    []Caller
	Servers    []Server

	uses []use // every reference, for CheckSecrets
}

// Listen is where callers find us.
type Listen struct {
	Address     string // host:port
	PublicURL   string // scheme://host[:port][/path], "" = http(s)://Address
	CertFile    string // resolved against the file's directory; "" = no TLS here
	KeyFile     string
	BehindProxy bool // something in front of us ends TLS

	line int
}

// TLS reports whether we end TLS ourselves.
func (l Listen) TLS() bool { return l.CertFile != "" }

// State is where everything durable is kept.
type State struct {
	Path string // resolved against the file's directory
}

// Operation bounds one operation upstream.
type Operation struct {
	Timeout time.Duration
}

// Network says which hosts may be reached.
type Network struct {
	PrivateHosts []string // hosts, spelled as in the url, that may be loopback or private
	AllowedHosts []string // when set, no other public host is reached
	Proxy        string   // http or https url of an outbound proxy; "" = none, the environment is never asked
}

// Gate is [gate].
type Gate struct {
	Observe bool // data_class_enforcement = "observe"; concerns our own tools only
}

// The channels through which a person is asked.
const (
	ChannelClient            = "client"
	ChannelConsole           = "console"
	ChannelClientThenConsole = "client_then_console"
)

// Approval says how a person is asked.
type Approval struct {
	Channel      string
	Timeout      time.Duration
	SecondPerson bool
}

// What the ledger keeps of a call's arguments.
const (
	ArgumentsDigest   = "digest"
	ArgumentsRedacted = "redacted"
	ArgumentsFull     = "full"
)

// Audit says what the ledger keeps and for how long.
type Audit struct {
	Arguments  string
	Retention  time.Duration        // 0: for ever
	SigningKey credential.Reference // env: or file:, Ed25519 in PEM; zero: nothing is signed
}

// Metrics says where counters can be read without a token.
type Metrics struct {
	Address string // host:port of a listener of their own; "" = there is none
}

// Vault is [vault].
type Vault struct {
	Identity credential.Reference // env: or file:; zero: no vault
}

// OIDC makes us a resource server for tokens of one issuer. The zero value admits nobody.
type OIDC struct {
	Issuer        string // "" = off
	Audience      string // default: the public url of the endpoint
	RequiredScope string // "" = none
	JWKSURL       string // "" = by discovery
	Rules         []Rule // first match wins; no match, no entry
	Console       ConsoleClient
}

// Enabled reports whether OIDC callers are admitted at all.
func (o OIDC) Enabled() bool { return o.Issuer != "" }

// A ConsoleClient is who we are at the issuer when people sign in to the console
// through it. The zero value leaves them their tokens.
type ConsoleClient struct {
	ClientID     string               // "" = off
	ClientSecret credential.Reference // zero: a public client
	Scopes       []string             // beside "openid"
}

// Enabled reports whether the console offers the issuer at all.
func (c ConsoleClient) Enabled() bool { return c.ClientID != "" }

// A Rule admits the tokens whose claim holds a value.
type Rule struct {
	Claim string      // "groups", or a path like "realm_access.roles"
	Value string      // equal to the claim, or to one element when the claim is a list
	Grant gate.Caller // Name is empty: the caller is named "<issuer>|<subject>"
	Line  int
}

// Name is how a rule is spoken of. No caller's name has a space in it.
func (r *Rule) Name() string { return "oidc " + r.Claim + "=" + r.Value }

// A Caller is one [[caller]].
type Caller struct {
	gate.Caller
	Token Token
	Line  int
}

// A Token says how a caller's static token is recognised: by its digest, or by
// a reference to it. Exactly one is set.
type Token struct {
	Digest    gate.Digest
	Reference credential.Reference
}

// A Server is one [[server]].
type Server struct {
	ID             gate.ServerID
	Name           string // ID when the file says nothing
	URL            string // "" = supplies nothing
	Enabled        bool
	Class          gate.Class // Unclassified = supplies nothing
	ApprovalWaived bool       // requires_approval is exactly false
	ApprovalMemory time.Duration
	Timeout        time.Duration
	Protocol       string // "auto", "2025-11-25" or "2026-07-28"
	Session        string // "operation" or "caller"
	SessionIdle    time.Duration
	MaxSessions    int
	MaxResponse    int64
	ResultLimit    int64 // 0: up to MaxResponse
	CallsPerMinute int   // 0: no limit
	Alias          map[gate.RemoteName]string
	Auth           credential.Auth
	CAFile         string // resolved against the file's directory
	ClientCert     string
	ClientKey      string
	Line           int
}

// Supplies reports whether the server can supply tools at all.
func (s *Server) Supplies() bool { return s.URL != "" && s.Class != gate.Unclassified }

// Dir is the directory that relative paths in the file start from.
func (c *Config) Dir() string { return filepath.Dir(c.Path) }

// StatePath is the state file.
func (c *Config) StatePath() string { return c.State.Path }

// SocketPath is the daemon's control socket.
func (c *Config) SocketPath() string { return c.State.Path + ".sock" }

// LedgerDir is the directory of the ledger's segments.
func (c *Config) LedgerDir() string {
	p := c.State.Path
	return p[:len(p)-len(filepath.Ext(p))] + ".ledger"
}

// Server returns the server of that id, or nil.
func (c *Config) Server(id gate.ServerID) *Server {
	for i := range c.Servers {
		if c.Servers[i].ID == id {
			return &c.Servers[i]
		}
	}
	return nil
}

// Caller returns the caller of that name, or nil.
func (c *Config) Caller(name gate.CallerName) *Caller {
	for i := range c.Callers {
		if c.Callers[i].Name == name {
			return &c.Callers[i]
		}
	}
	return nil
}
