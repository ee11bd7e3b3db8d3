package federation

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
	"gatehouse/upstream/wire"
)

// This file is what callers read. It is the one place that turns reasons into
// sentences, so that what may be told to whom is decided once.

// refusalText is the sentence for one refusal.
func refusalText(inv *invocation, r *gate.Refusal) string {
	name := wire.Clip(string(inv.name))
	switch r.Reason {
	case gate.InvalidArguments:
		if r.Argument != nil {
			return recorded(name+": "+r.Argument.Error(), r.Record)
		}
	case gate.BudgetSpent:
		return recorded(fmt.Sprintf("%s: %s; try again in %s", name, r.Detail, r.RetryAfter.Round(time.Second)), r.Record)
	case gate.ApprovalRequired:
		return recorded(name+" needs a person's approval, and this client cannot be asked: it declares no form elicitation; "+
			`use a client that does, or have the operator set [approval] channel = "client_then_console" or "console"`, r.Record)
	case gate.ReasonDeclined, gate.ApprovalExpired, gate.ApproverUnavailable, gate.ApprovalInvalid, gate.CallerGone:
		return recorded(name+" was not approved: "+r.Detail, r.Record)
	case gate.LedgerUnavailable:
		return recorded(name+" was not called: the call could not be put on record", r.Record)
	}
	if inv.caller.Admin {
		return recorded(name+" refused: "+r.Detail, r.Record)
	}
	return recorded("this tool is not available to you", r.Record)
}

// recorded adds the number that an operator can look up.
func recorded(text string, record uint64) string {
	if record == 0 {
		return text
	}
	return text + " (record " + strconv.FormatUint(record, 10) + ")"
}

// instructions is what a client shows its model about this server.
func (g *Gateway) instructions(who *gate.Caller) string {
	text := "Tools of several MCP servers behind one gate. Names are mcp_<server>_<tool>. " +
		"A call may wait for a person's approval; a refusal says why and has a record number."
	if summary := g.summary(who); summary != "" {
		text += " " + summary
	}
	return text
}

// summary says how much of the catalogue who sees, and for an administrator what
// would open the rest.
func (g *Gateway) summary(who *gate.Caller) string {
	counts := g.Catalog.Snapshot().Counts(who)
	if !who.Admin {
		return fmt.Sprintf("%d tools are available to you.", counts.Offered)
	}
	total := counts.Offered
	for _, n := range counts.Withheld {
		total += n
	}
	if total == 0 {
		return "No tools imported yet; import with: gatehouse import --all"
	}
	text := fmt.Sprintf("%d tools imported, %d enabled", total, counts.Offered)
	if counts.Offered > 0 {
		return text + "."
	}
	return text + "; enable with: gatehouse tools enable " + string(g.firstDisabled())
}

// firstDisabled is a tool that an operator could enable, for a command that
// works when pasted.
func (g *Gateway) firstDisabled() gate.LocalName {
	for tool := range g.Catalog.Snapshot().Tools() {
		if !tool.Own && tool.Availability == gate.Disabled {
			return tool.Name
		}
	}
	return "NAME"
}

// status is the text of gatehouse_status.
func (g *Gateway) status(who *gate.Caller) string {
	var b strings.Builder
	counts := g.Catalog.Snapshot().Counts(who)
	fmt.Fprintf(&b, "You are %s, zone %s, ceiling %s.\n", who.Name, who.Zone, who.Zone.Ceiling())
	b.WriteString(g.summary(who))
	b.WriteByte('\n')
	if !who.Admin {
		b.WriteString("Remote tools are offered to administrators only; an operator can set admin = true for you.\n")
		return b.String()
	}
	for _, reason := range []gate.Reason{gate.ToolDisabled, gate.ConfigurationGroup, gate.TrustZone, gate.NotPortable} {
		if n := counts.Withheld[reason]; n > 0 {
			fmt.Fprintf(&b, "%d not offered: %s; see: gatehouse explain NAME --caller %s\n", n, reason, who.Name)
		}
	}
	if notice := g.notice(); notice != "" {
		fmt.Fprintf(&b, "For the operator: %s\n", notice)
	}
	fmt.Fprintf(&b, "Search with %s.\n", catalog.FindTool)
	return b.String()
}
