package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// A CallerView is one [[caller]], or whoever comes in by one [[oidc.rule]], and how much of the catalogue they are offered.
type CallerView struct {
	Name      string
	Admin     bool
	Zone      string
	Ceiling   string
	Every     bool     // no narrowing to groups
	Groups    []string // otherwise: those they are narrowed to
	Portable  bool     // their schema dialect
	Find      bool     // their surface: tools are found, not listed
	PerMinute int      // calls, 0: no limit
	AtOnce    int
	Offered   int
	Withheld  int
	Rule      bool // an [[oidc.rule]], and no one caller
}

// Total is how many remote tools there are for them to see or not.
func (v CallerView) Total() int { return v.Offered + v.Withheld }

// Callers lists the configured callers, and behind them the rules that admit
// others, as whoever comes in by one of them.
func (l *Local) Callers(context.Context) []CallerView {
	cfg, snapshot := l.g.Config(), l.g.Catalog.Snapshot()
	out := make([]CallerView, 0, len(cfg.Callers)+len(cfg.OIDC.Rules))
	for i := range cfg.Callers {
		out = append(out, callerView(string(cfg.Callers[i].Name), &cfg.Callers[i].Caller, snapshot))
	}
	for i := range cfg.OIDC.Rules {
		v := callerView(cfg.OIDC.Rules[i].Name(), &cfg.OIDC.Rules[i].Grant, snapshot)
		v.Rule = true
		out = append(out, v)
	}
	return out
}

func callerView(name string, c *gate.Caller, snapshot *catalog.Snapshot) CallerView {
	counts := snapshot.Counts(c)
	v := CallerView{Name: name, Admin: c.Admin, Zone: c.Zone.String(), Ceiling: c.Zone.Ceiling().String(),
		Every: c.Groups.Every(), Groups: slices.Sorted(slices.Values(c.Groups.Names())), Portable: c.Dialect == gate.Portable,
		Find: c.Surface == gate.Find, PerMinute: c.CallsPerMinute, AtOnce: c.ConcurrentCalls, Offered: counts.Offered}
	for _, n := range counts.Withheld {
		v.Withheld += n
	}
	return v
}

// subject is the caller of that name, or whoever comes in by the rule of that
// name; nil when there is neither.
func (l *Local) subject(name string) *gate.Caller {
	if c := l.g.Caller(gate.CallerName(name)); c != nil {
		return c
	}
	rules := l.g.Config().OIDC.Rules
	for i := range rules {
		if rules[i].Name() == name {
			return &rules[i].Grant
		}
	}
	return nil
}

// A Sight is one tool as one caller meets it.
type Sight struct {
	Name   string
	Server string
	Title  string
	Reason gate.Reason // why it is not offered, "" when it is
	Detail string
}

// Sights says of every remote tool with a name whether a caller is offered it,
// and otherwise why not.
func (l *Local) Sights(_ context.Context, caller string) ([]Sight, error) {
	who := l.subject(caller)
	if who == nil {
		return nil, noCaller(caller)
	}
	snapshot := l.g.Catalog.Snapshot()
	var out []Sight
	for _, e := range snapshot.Entries("") {
		if e.Own || e.Name == "" {
			continue
		}
		s := Sight{Name: string(e.Name), Server: string(e.Server), Title: e.Title}
		s.Reason, s.Detail = gate.Offered(e.Tool, who, snapshot.Enforcement())
		if s.Reason == gate.ToolDisabled && e.Detail != "" {
			s.Detail += ": " + e.Detail
		}
		out = append(out, s)
	}
	return out, nil
}

// Judge is Explain for a call with arguments. Nothing is sent, and nothing is
// counted.
func (l *Local) Judge(_ context.Context, tool, caller string, arguments json.RawMessage) (Explanation, error) {
	who := l.subject(caller)
	if who == nil {
		return Explanation{}, noCaller(caller)
	}
	return explanation(tool, caller, l.g.Explain(gate.LocalName(tool), who, arguments)), nil
}

func explanation(tool, caller string, checks []gate.Check) Explanation {
	x := Explanation{Tool: tool, Caller: caller, Offered: true, Checks: checks}
	for _, c := range checks {
		if !c.Passed && !c.Skipped {
			x.Offered, x.Reason, x.Detail = false, c.Reason, c.Detail
			break
		}
	}
	return x
}

// Served is a tool's definition as callers read it, and the caller it was
// written for; nil when nobody is offered it.
func (l *Local) Served(_ context.Context, tool string) (definition json.RawMessage, caller string) {
	cfg, snapshot := l.g.Config(), l.g.Catalog.Snapshot()
	for i := range cfg.Callers {
		c := &cfg.Callers[i].Caller
		if raw := snapshot.Served(c, catalog.Era2026, gate.LocalName(tool)); raw != nil {
			return raw, string(c.Name)
		}
	}
	return nil, ""
}

// Nameless says what the last import of a server met that has no name to be
// listed under.
func (l *Local) Nameless(_ context.Context, server string) []string {
	var out []string
	for _, s := range l.g.Catalog.Servers() {
		if string(s.ID) != server {
			continue
		}
		for _, skip := range s.Nameless {
			out = append(out, fmt.Sprintf("entry %d of its list: %s", skip.Index+1, skip.Reason))
		}
	}
	return out
}

// Record puts an act on record in the name of whoever acts, before it is done.
func (l *Local) Record(ctx context.Context, e *gate.Entry) error { return l.record(ctx, e) }

// LedgerDir is where the record is kept; it can be read while it is written.
func (l *Local) LedgerDir() string { return l.g.Config().LedgerDir() }

// Visible writes out every character of remote text that hides, reorders or
// moves text. Line breaks and tabs stay.
func Visible(s string) string { return catalog.Visible(s) }
