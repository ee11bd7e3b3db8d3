package gate

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// An Enforcement says how strictly our own tools are held to the caller's
// ceiling. It loosens nothing for remote tools.
type Enforcement uint8

// Enforce, the zero value, refuses every tool above the ceiling. Observe lets
// our own tools through, as long as they have a class at all.
const (
	Enforce Enforcement = iota
	Observe
)

// A Call is what a caller asks for.
type Call struct {
	Tool      LocalName
	Arguments []byte // raw JSON object; nil is {}

	State  string  // the sealed state the caller sent back, empty on a first call
	Answer *Answer // what a person answered, nil when there is no answer
	CanAsk bool    // this caller can be asked by form elicitation right now
	Final  bool    // nobody can come back with State for another try

	Session string // for the record: 16 hex digits of the session id's digest
	Request string // for the record: the JSON-RPC id as JSON text
	Trace   string // for the record: W3C trace id

	// SessionKey is the unguessable session id, where there are sessions. An
	// approval is good in its own session only. It is never recorded.
	SessionKey string

	// Current returns what holds at the moment it is called. Submit uses it to
	// judge a call again that may have waited; nil: the call is judged once.
	Current func() (Snapshot, *Caller)
}

// raw is the bytes that are judged, shown, digested and sent.
func (c *Call) raw() []byte {
	if c.Arguments == nil {
		return []byte("{}")
	}
	return c.Arguments
}

// A Decision is what Judge makes of a call.
type Decision struct {
	Tool   *Tool  // nil when the name is not registered
	Reason Reason // empty when nothing stands in the way but, perhaps, a person's yes
	Detail string // for operators, with the values that were compared
	// Argument is set with InvalidArguments.
	Argument *ArgumentError
	// Ask says that a person has to agree to this very call.
	Ask bool
}

// Judge decides what can be decided without asking anybody and without counting
// anything: checks 1 to 7, and whether check 9 needs a person. It is a pure
// function of its arguments.
func Judge(s Snapshot, c *Caller, call Call, e Enforcement) Decision {
	d := Decision{}
	if s != nil {
		d.Tool = s.Tool(call.Tool)
	}
	if d.Reason, d.Detail = Offered(d.Tool, c, e); d.Reason != "" {
		return d
	}
	if d.Argument = checkArguments(d.Tool, call.raw()); d.Argument != nil {
		d.Reason, d.Detail = InvalidArguments, d.Argument.Error()
		return d
	}
	d.Ask = !d.Tool.ApprovalWaived
	return d
}

// Offered is checks 1 to 6, which decide what a caller is shown. It returns the
// first reason against and the values behind it, or "" when the tool is offered.
// A missing tool or caller is offered nothing.
func Offered(t *Tool, c *Caller, e Enforcement) (Reason, string) {
	return firstAgainst(offering[:], t, c, e)
}

// Approves reports why c may not decide about calls of t: an approver has to
// pass checks 1 to 5 himself. It returns "" when c may.
func Approves(t *Tool, c *Caller, e Enforcement) (Reason, string) {
	return firstAgainst(offering[:5], t, c, e)
}

func firstAgainst(checks []check, t *Tool, c *Caller, e Enforcement) (Reason, string) {
	for i := range checks {
		if !checks[i].holds(t, c, e) {
			return checks[i].reason, checks[i].values(t, c, e)
		}
	}
	return "", ""
}

// A check is one of those that decide what is offered. Values words what was
// compared; it is asked only when somebody reads it, since every call and every
// listed tool passes here.
type check struct {
	name   string
	reason Reason
	holds  func(*Tool, *Caller, Enforcement) bool
	values func(*Tool, *Caller, Enforcement) string
}

// offering is checks 1 to 6 in their order: cheapest and least telling first.
var offering = [...]check{
	{"registered", NotRegistered, registered, registeredValues},
	{"enabled", ToolDisabled, enabled, enabledValues},
	{"administrator", RequiresAdmin, administrator, administratorValues},
	{"group", ConfigurationGroup, grouped, groupedValues},
	{"ceiling", TrustZone, underCeiling, underCeilingValues},
	{"portable", NotPortable, portable, portableValues},
}

func registered(t *Tool, c *Caller, _ Enforcement) bool {
	return t != nil && (!t.FindOnly || c != nil && c.Surface == Find)
}

func registeredValues(t *Tool, c *Caller, e Enforcement) string {
	switch {
	case t == nil:
		return "no tool has this name"
	case !registered(t, c, e):
		return "only for callers whose surface is find"
	}
	return fmt.Sprintf("%q of server %q", clipText(string(t.Remote), 80), t.Server)
}

func enabled(t *Tool, _ *Caller, _ Enforcement) bool { return t.Availability == Enabled }

func enabledValues(t *Tool, _ *Caller, _ Enforcement) string { return t.Availability.String() }

func administrator(t *Tool, c *Caller, _ Enforcement) bool { return c != nil && (t.Own || c.Admin) }

func administratorValues(t *Tool, c *Caller, _ Enforcement) string {
	switch {
	case c == nil:
		return "there is no caller"
	case t.Own:
		return "our own tool, for every caller"
	case c.Admin:
		return "caller is an administrator"
	}
	return "caller is not an administrator"
}

func grouped(t *Tool, c *Caller, _ Enforcement) bool {
	return t.Own && t.Group == "" || c.Groups.Include(t.Group)
}

func groupedValues(t *Tool, c *Caller, _ Enforcement) string {
	switch {
	case c.Groups.Every():
		return "caller is not narrowed to groups"
	case t.Own && t.Group == "":
		return "our own tool, in no group"
	case c.Groups.Include(t.Group):
		return fmt.Sprintf("group %s is the caller's", t.Group)
	}
	return fmt.Sprintf("group %s is not among the caller's", t.Group)
}

func underCeiling(t *Tool, c *Caller, e Enforcement) bool {
	return classified(t) && (t.Class.Fits(c.Zone.Ceiling()) || t.Own && e == Observe)
}

func classified(t *Tool) bool { return t.Class != Unclassified && t.Class <= SecretAdjacent }

func underCeilingValues(t *Tool, c *Caller, e Enforcement) string {
	ceiling := c.Zone.Ceiling()
	switch {
	case !classified(t):
		return "no data class is declared"
	case t.Class.Fits(ceiling):
		return fmt.Sprintf("%s is within the ceiling of %s (%s)", t.Class, c.Zone, ceiling)
	case t.Own && e == Observe:
		return fmt.Sprintf("%s is above the ceiling of %s (%s); our own tool, only observed", t.Class, c.Zone, ceiling)
	}
	return fmt.Sprintf("%s is above the ceiling of %s (%s)", t.Class, c.Zone, ceiling)
}

func portable(t *Tool, c *Caller, _ Enforcement) bool {
	return dialectFits(t, c) && (c.NameBudget <= 0 || c.NamePrefix+len(t.Name) <= c.NameBudget)
}

func dialectFits(t *Tool, c *Caller) bool { return c.Dialect != Portable || t.Unportable == "" }

func portableValues(t *Tool, c *Caller, e Enforcement) string {
	switch {
	case !dialectFits(t, c):
		return "the portable dialect cannot carry it: " + clipText(t.Unportable, 200)
	case !portable(t, c, e):
		return fmt.Sprintf("the name has %d characters in the caller's host, which takes %d; give the tool an alias", c.NamePrefix+len(t.Name), c.NameBudget)
	}
	return "dialect and name budget fit"
}

// checkArguments is check 7.
func checkArguments(t *Tool, raw []byte) *ArgumentError {
	if t.Arguments == nil {
		if !emptyObject(raw) {
			return &ArgumentError{Rule: "the tool takes no arguments, send {}"}
		}
		return nil
	}
	err := t.Arguments.Check(raw)
	if err == nil {
		return nil
	}
	if found, ok := errors.AsType[*ArgumentError](err); ok {
		return found
	}
	return &ArgumentError{Rule: clipText(err.Error(), 300)}
}

func emptyObject(raw []byte) bool {
	const space = " \t\r\n"
	raw = bytes.Trim(raw, space)
	return len(raw) >= 2 && raw[0] == '{' && raw[len(raw)-1] == '}' && len(bytes.Trim(raw[1:len(raw)-1], space)) == 0
}

// A Check is one of the nine checks with the values that were compared.
type Check struct {
	Number  int    `json:"number"`
	Name    string `json:"name"`
	Reason  Reason `json:"reason"` // the reason a failure has
	Passed  bool   `json:"passed"`
	Skipped bool   `json:"skipped"` // it could not be made, or there was nothing to check
	Detail  string `json:"detail"`
}

// Explain makes all nine checks and says what each compared. Checks 8 and 9
// depend on what happens at the call, so Explain only says what they would need;
// without arguments check 7 is skipped as well.
func Explain(s Snapshot, c *Caller, call Call, e Enforcement) []Check {
	var t *Tool
	if s != nil {
		t = s.Tool(call.Tool)
	}
	checks := make([]Check, 0, 9)
	for i, o := range offering {
		check := Check{Number: i + 1, Name: o.name, Reason: o.reason}
		switch {
		case t == nil && i > 0:
			check.Skipped, check.Detail = true, "no such tool"
		case c == nil && i > 2:
			check.Skipped, check.Detail = true, "there is no caller"
		default:
			check.Passed, check.Detail = o.holds(t, c, e), o.values(t, c, e)
		}
		checks = append(checks, check)
	}
	return append(checks, explainArguments(t, call), explainBudget(t, c), explainApproval(t, call))
}

func explainArguments(t *Tool, call Call) Check {
	check := Check{Number: 7, Name: "arguments", Reason: InvalidArguments, Skipped: true, Detail: "no such tool"}
	switch {
	case t == nil:
	case call.Arguments == nil:
		check.Detail = "no arguments were given"
	default:
		check.Skipped = false
		if bad := checkArguments(t, call.raw()); bad != nil {
			check.Detail = bad.Error()
		} else {
			check.Passed, check.Detail = true, "the arguments fit the schema"
		}
	}
	return check
}

func explainBudget(t *Tool, c *Caller) Check {
	check := Check{Number: 8, Name: "budget", Reason: BudgetSpent, Skipped: true, Detail: "no such tool"}
	if t != nil && c != nil {
		check.Detail = fmt.Sprintf("counted at the call: caller %s a minute and %s at once, server %s a minute and %s at once",
			limitText(c.CallsPerMinute), limitText(c.ConcurrentCalls),
			limitText(t.ServerCallsPerMinute), limitText(t.ServerConcurrentCalls))
	}
	return check
}

func limitText(n int) string {
	if n <= 0 {
		return "no limit"
	}
	return fmt.Sprint(n)
}

func explainApproval(t *Tool, call Call) Check {
	check := Check{Number: 9, Name: "approval", Reason: ApprovalRequired, Skipped: true, Detail: "no such tool"}
	switch {
	case t == nil:
	case t.ApprovalWaived:
		check.Skipped, check.Passed, check.Detail = false, true, "the server's table says requires_approval = false"
	case t.ApprovalMemory > 0:
		check.Detail = fmt.Sprintf("a person is asked, once in %s for the same arguments", t.ApprovalMemory.Round(time.Second))
	default:
		check.Detail = "a person is asked at every call"
	}
	return check
}
