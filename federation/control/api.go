package control

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// ErrNotFound says that what was named does not exist.
var ErrNotFound = errors.New("not found")

// API is every operation of the command line and of the operator's pages.
type API interface {
	Status(ctx context.Context) (Status, error)

	Servers(ctx context.Context) ([]Server, error)
	TestServer(ctx context.Context, id string) (TestReport, error)
	// Import imports the named servers, or with all every enabled one. One
	// server's refusal is in its report and stops no other.
	Import(ctx context.Context, ids []string, all, dryRun bool) ([]ImportReport, error)

	// Tools lists what pattern covers: a name, a glob, a group, or "" for all.
	Tools(ctx context.Context, pattern string) ([]Tool, error)
	Tool(ctx context.Context, name string) (ToolDetail, error)
	Diff(ctx context.Context, name string) (Difference, error)
	Enable(ctx context.Context, patterns []string) ([]ToolChange, error)
	Disable(ctx context.Context, patterns []string) ([]ToolChange, error)
	Explain(ctx context.Context, tool, caller string) (Explanation, error)

	Reloads

	Approvals(ctx context.Context) ([]Approval, error)
	Approval(ctx context.Context, number uint64) (Approval, error)
	Decide(ctx context.Context, number uint64, approve bool) error

	Secrets(ctx context.Context) ([]Secret, error)
	SetSecret(ctx context.Context, name string, value []byte) error
	RemoveSecret(ctx context.Context, name string) error
	// RekeySecrets seals every secret for the identity that the reference names,
	// and says how many there are.
	RekeySecrets(ctx context.Context, identity string) (int, error)

	Logins

	// Call makes one call as a caller, who is held to what that caller may do. It
	// needs no token. A nil ask says that there is nobody to ask.
	Call(ctx context.Context, r CallRequest, ask Asker, progress func(params []byte)) (CallReply, error)
}

// Status is the state of a gateway.
type Status struct {
	Version    string    `json:"version"`
	PID        int       `json:"pid"`
	Daemon     bool      `json:"daemon"` // it serves callers; false: opened for one command
	Config     string    `json:"config"`
	URL        string    `json:"url"`
	Generation uint64    `json:"generation"`
	Servers    int       `json:"servers"`
	Tools      int       `json:"tools"`
	Enabled    int       `json:"tools_enabled"`
	Approvals  int       `json:"approvals"`
	NotReady   []string  `json:"not_ready"` // why calls cannot be taken; empty: they can
	Started    time.Time `json:"started"`
	// Waiting is a file that is not in force, and why; nil: there is none.
	Waiting *federation.Waiting `json:"waiting"`
}

// A Server is one [[server]] and what is known of it.
type Server struct {
	ID               string     `json:"id"`
	Name             string     `json:"name"`
	URL              string     `json:"url"` // without user, query and fragment
	Enabled          bool       `json:"enabled"`
	Class            string     `json:"data_class"`
	RequiresApproval bool       `json:"requires_approval"`
	Auth             string     `json:"auth"`
	CredentialState  string     `json:"credential_state"` // ok, expired, refused, login needed
	CredentialEnds   *time.Time `json:"credential_ends"`  // of a login that nothing can renew
	Era              string     `json:"era"`
	LastContact      *time.Time `json:"last_contact"`
	LastLatencyMS    *float64   `json:"last_latency_ms"`
	LastImport       *time.Time `json:"last_import"`
	ImportError      string     `json:"import_error"`
	Tools            int        `json:"tools"`
	ToolsEnabled     int        `json:"tools_enabled"`
	ToolsWaiting     int        `json:"tools_changed"` // changed upstream, off until somebody looked
}

// A TestReport says what a connection test found.
type TestReport struct {
	Server        string     `json:"server"`
	Era           string     `json:"era"`
	Version       string     `json:"protocol_version"`
	ServerName    string     `json:"server_name"`
	ServerVersion string     `json:"server_version"`
	LatencyMS     float64    `json:"latency_ms"`
	Legs          []gate.Leg `json:"legs"`
}

type (
	// An ImportReport says what the import of one server did.
	ImportReport = catalog.Report
	// A Difference says how a tool differs from what was enabled.
	Difference = catalog.Difference
)

// A Tool is one tool of the catalogue. Its texts are safe to print.
type Tool struct {
	Name             string     `json:"name"` // empty when no name fits
	Server           string     `json:"server"`
	Remote           string     `json:"remote_name"`
	Group            string     `json:"group"`
	State            string     `json:"state"` // enabled, disabled, changed, vanished, skipped, server_disabled, unsupplied
	Detail           string     `json:"detail"`
	Title            string     `json:"title,omitempty"`
	Description      string     `json:"description"`
	Class            string     `json:"data_class"`
	RequiresApproval bool       `json:"requires_approval"`
	Own              bool       `json:"own"`
	Definition       string     `json:"definition"` // digest
	FirstSeen        *time.Time `json:"first_seen"`
	LastSeen         *time.Time `json:"last_seen"`
	EnabledAt        *time.Time `json:"enabled_at"`
}

// A ToolDetail is all that is known of one tool.
type ToolDetail struct {
	Tool
	Origin     string          `json:"origin"`
	ServerName string          `json:"server_name"`
	Unportable string          `json:"unportable,omitempty"`
	Warnings   []string        `json:"warnings"`
	Raw        json.RawMessage `json:"raw,omitempty"` // the definition, as the server wrote it
}

// A ToolChange is what enabling or disabling did to one tool.
type ToolChange struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Remote string `json:"remote_name"`
	Kind   string `json:"kind"` // enable, accept_change, disable; "": it was so before
	From   string `json:"from"`
	To     string `json:"to"`
}

// An Explanation is the ordered checks of one tool for one caller.
type Explanation struct {
	Tool    string       `json:"tool"`
	Caller  string       `json:"caller"`
	Offered bool         `json:"offered"`
	Reason  gate.Reason  `json:"reason"` // of the first check that fails, "" when offered
	Detail  string       `json:"detail"`
	Checks  []gate.Check `json:"checks"`
}

// An Approval is a call that waits for a person.
type Approval struct {
	Number     uint64    `json:"number"`
	Asked      time.Time `json:"asked"`
	Until      time.Time `json:"until"`
	Caller     string    `json:"caller"`
	Zone       string    `json:"zone"`
	Tool       string    `json:"tool"`
	Server     string    `json:"server"`
	ServerName string    `json:"server_name"`
	Origin     string    `json:"origin"`
	Remote     string    `json:"remote_name"`
	Class      string    `json:"data_class"`
	Arguments  string    `json:"argument_digest"`
	Message    string    `json:"message"` // what the person reads, complete
}

// A CallRequest is one call to be made.
type CallRequest struct {
	Tool      string
	Caller    string
	Arguments json.RawMessage // an object; nil: none
}

type (
	// A CallReply is how a call ended.
	CallReply = federation.CallReply
	// A CallFailure is the JSON-RPC error that a call ended with.
	CallFailure = federation.CallFailure
)

// A Question is what a person has to answer before a call can happen.
type Question struct {
	Number  uint64 // 0 when only the daemon knows it
	Message string
	Until   time.Time // zero when the message tells it
}

// An Asker puts a question to a person and returns the answer. It gives up when
// ctx ends.
type Asker func(ctx context.Context, q Question) Answer

// An Answer is what a person said. The zero value is no answer, which is no.
type Answer uint8

// The answers.
const (
	Unanswered Answer = iota
	Approve
	Deny
)

// action and content are the answer in the words of an elicitation.
func (a Answer) action() string {
	if a == Unanswered {
		return "cancel"
	}
	return "accept"
}

func (a Answer) content() []byte {
	switch a {
	case Approve:
		return []byte(`{"decision":"approve"}`)
	case Deny:
		return []byte(`{"decision":"deny"}`)
	}
	return nil
}

// A Secret is what may be told about a secret.
type Secret struct {
	Name string    `json:"name"`
	By   string    `json:"set_by"`
	At   time.Time `json:"set_at"`
}
