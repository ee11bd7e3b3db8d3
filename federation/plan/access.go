package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
)

// subjects are all whose rights a configuration states: its callers, and the
// rules that admit callers by a token of the issuer.
func subjects(c *config.Config) map[string]*gate.Caller {
	out := make(map[string]*gate.Caller, len(c.Callers)+len(c.OIDC.Rules))
	for i := range c.Callers {
		out[string(c.Callers[i].Name)] = &c.Callers[i].Caller
	}
	for i := range c.OIDC.Rules {
		// Of two rules for one value only the first is ever met.
		if name := c.OIDC.Rules[i].Name(); out[name] == nil {
			out[name] = &c.OIDC.Rules[i].Grant
		}
	}
	return out
}

func (p *Plan) access(from, to Side, pairs []toolPair) {
	before, after := subjects(from.Config), subjects(to.Config)
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, t := range pairs {
			was, wasDetail := offered(t.before, before[name], from.enforcement())
			is, isDetail := offered(t.after, after[name], to.enforcement())
			switch {
			case was != "" && is == "":
				p.Access = append(p.Access, Access{name, string(t.after.Name), t.server(), true, was, wasDetail})
			case was == "" && is != "":
				p.Access = append(p.Access, Access{name, string(t.before.Name), t.server(), false, is, isDetail})
			}
		}
	}
}

func offered(t *gate.Tool, c *gate.Caller, e gate.Enforcement) (gate.Reason, string) {
	if c == nil {
		return NoCaller, "nobody of this name is declared"
	}
	return gate.Offered(t, c, e)
}

func (p *Plan) approvals(pairs []toolPair) {
	for _, t := range pairs {
		if t.before == nil || t.after == nil || t.after.Availability != gate.Enabled {
			continue
		}
		was, is := asking(t.before), asking(t.after)
		if was == is {
			continue
		}
		e := Narrows
		if is > was {
			e = Widens
		}
		p.Approvals = append(p.Approvals, Approval{t.name(), t.server(), askingText(was), askingText(is), e})
	}
}

// never is longer than any yes is remembered.
const never = time.Duration(1<<63 - 1)

// asking is how long one yes is good for: no time at all, some, or for ever
// because nobody is asked.
func asking(t *gate.Tool) time.Duration {
	if t.ApprovalWaived {
		return never
	}
	return t.ApprovalMemory
}

func askingText(d time.Duration) string {
	switch d {
	case 0:
		return "each call"
	case never:
		return "not asked"
	}
	return "once in " + d.String()
}

func (p *Plan) tools(from, to Side, pairs []toolPair) {
	for _, t := range pairs {
		switch {
		case t.before == nil:
			p.Tools = append(p.Tools, Tool{Tool: t.name(), Server: t.server(), Before: "not named",
				After: t.after.Availability.String(), Detail: to.Catalogue.Detail(t.after.Name)})
		case t.after == nil:
			p.Tools = append(p.Tools, Tool{Tool: t.name(), Server: t.server(), Before: t.before.Availability.String(),
				After: "not named", Detail: "no local name fits it"})
		default:
			if t.before.Name != t.after.Name {
				p.Tools = append(p.Tools, Tool{Tool: t.name(), Server: t.server(), Before: string(t.before.Name), After: string(t.after.Name), Renamed: true})
			}
			if t.before.Availability != t.after.Availability {
				p.Tools = append(p.Tools, Tool{Tool: t.name(), Server: t.server(), Before: t.before.Availability.String(),
					After:  t.after.Availability.String(),
					Detail: cmp.Or(to.Catalogue.Detail(t.after.Name), from.Catalogue.Detail(t.before.Name))})
			}
		}
	}
}
