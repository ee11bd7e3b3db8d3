package gate

// A Reason is the code of what stood in a call's way. Callers and scripts may
// rely on the codes; the sentences around them are free to change.
type Reason string

// The reasons, in the order of the checks.
const (
	NotRegistered       Reason = "not_registered"
	ToolDisabled        Reason = "tool_disabled"
	RequiresAdmin       Reason = "requires_admin"
	ConfigurationGroup  Reason = "configuration_group"
	TrustZone           Reason = "trust_zone"
	NotPortable         Reason = "not_portable"
	InvalidArguments    Reason = "invalid_arguments"
	BudgetSpent         Reason = "budget_spent"
	ApprovalRequired    Reason = "approval_required"    // a person must agree, and nobody can be asked on this way
	ReasonDeclined      Reason = "declined"             // a person answered, and it was not yes
	ApprovalExpired     Reason = "approval_expired"     // nobody answered in time
	ApproverUnavailable Reason = "approver_unavailable" // the question was put and could not be answered
	ApprovalInvalid     Reason = "approval_invalid"     // a state that is forged, foreign, stale or used
	LedgerUnavailable   Reason = "ledger_unavailable"   // what cannot be recorded does not happen
	CallerGone          Reason = "caller_gone"          // the caller hung up before there was a permit
)
