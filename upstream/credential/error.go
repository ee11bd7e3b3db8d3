package credential

import "errors"

// Reasons, as errors and the ledger carry them.
const (
	ReasonUnresolved    = "credential_unresolved" // a declared credential does not resolve or is unfit to send
	ReasonCallerWithout = "caller_without_grant"
	ReasonAudience      = "audience_not_allowed"
	ReasonScope         = "scope_not_allowed"
	ReasonSubject       = "subject_unresolved"
	ReasonNoDiscovery   = "discovery_credential_missing"
	ReasonHostRefused   = "host_refused"
	ReasonRefused       = "exchange_refused"
	ReasonMalformed     = "exchange_malformed"
	ReasonExpired       = "credential_expired"
	ReasonBudget        = "budget_spent"
	ReasonCancelled     = "cancelled"
	ReasonLoginNeeded   = "login_needed"
	ReasonLoginFailed   = "login_failed"
	ReasonClosed        = "session_closed"
)

// ErrNoSecret says that a Keeper has no secret of that name.
var ErrNoSecret = errors.New("is not in the vault")

// An Error says why there is no credential. Nothing in it comes from a token or
// from the text of an identity provider.
type Error struct {
	Reason string // one of the Reason constants
	Text   string // one sentence for operators, with the next step
	Status int    // HTTP status of the token endpoint, 0 when it did not answer
	Cause  error  // for errors.As; never part of the text

	code string // what the token endpoint called it, when that decides what comes next
}

func (e *Error) Error() string { return e.Text }

// Unwrap gives the cause, so that the host gate's refusal stays visible.
func (e *Error) Unwrap() error { return e.Cause }
