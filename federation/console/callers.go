package console

import (
	"net/http"
	"strings"

	"gatehouse/federation/control"
	"gatehouse/gate"
)

// shownSights bounds how many tools are listed under one reason.
const shownSights = 300

// shownNames bounds how many names the what-if form offers.
const shownNames = 500

func showCallers(v *visit) error {
	v.render(http.StatusOK, "callers", "Callers", v.api.Callers(v.r.Context()))
	return nil
}

type callerPage struct {
	control.CallerView
	Words    string
	Offered  *sightGroup
	Withheld []*sightGroup // by reason, in the order of the checks
}

// A sightGroup is the tools that are offered, or withheld for one reason.
type sightGroup struct {
	Reason gate.Reason
	Means  string
	Count  int
	Sights []control.Sight
}

func (g *sightGroup) add(s control.Sight) {
	if g.Count++; len(g.Sights) < shownSights {
		g.Sights = append(g.Sights, s)
	}
}

// More is how many tools are not listed.
func (g *sightGroup) More() int { return g.Count - len(g.Sights) }

// meanings say what each reason wants from the operator.
var meanings = []struct {
	reason gate.Reason
	means  string
}{
	{gate.NotRegistered, "No tool has this name for this caller."},
	{gate.ToolDisabled, "The tool is not enabled at the definition it has now."},
	{gate.RequiresAdmin, "Remote tools are for administrators: set admin = true for this caller."},
	{gate.ConfigurationGroup, "The caller is narrowed to other groups: see groups under its [[caller]]."},
	{gate.TrustZone, "The data class is above the ceiling of the zone that results travel to."},
	{gate.NotPortable, "The caller's model API cannot take the schema or the name."},
}

func showCaller(v *visit) error {
	name := v.r.PathValue("name")
	sights, err := v.api.Sights(v.r.Context(), name)
	if err != nil {
		return err
	}
	p := callerPage{Words: v.r.URL.Query().Get("q"), Offered: &sightGroup{}}
	for _, c := range v.api.Callers(v.r.Context()) {
		if c.Name == name {
			p.CallerView = c
		}
	}
	groups := map[gate.Reason]*sightGroup{}
	for _, m := range meanings {
		groups[m.reason] = &sightGroup{Reason: m.reason, Means: m.means}
	}
	for _, s := range sights {
		if p.Words != "" && !strings.Contains(s.Name, p.Words) {
			continue
		}
		if s.Reason == "" {
			p.Offered.add(s)
		} else if g := groups[s.Reason]; g != nil {
			g.add(s)
		}
	}
	for _, m := range meanings {
		if g := groups[m.reason]; g.Count > 0 {
			p.Withheld = append(p.Withheld, g)
		}
	}
	v.render(http.StatusOK, "caller", "Caller "+p.Name, p)
	return nil
}

type whatIfPage struct {
	Caller, Tool, Arguments string
	Callers                 []control.CallerView
	Names                   []string
	Judged                  *control.Explanation
	Problem                 string
}

// showWhatIf judges any call. Nothing is sent and nothing is counted. Arguments
// come in the body: an address ends up in logs.
func showWhatIf(v *visit) error {
	ctx := v.r.Context()
	p := whatIfPage{Caller: v.r.FormValue("caller"), Tool: v.r.FormValue("tool"), Arguments: v.r.PostForm.Get("arguments"), Callers: v.api.Callers(ctx)}
	tools, err := v.api.Tools(ctx, "")
	if err != nil {
		return err
	}
	for _, t := range tools {
		if t.Name != "" && len(p.Names) < shownNames {
			p.Names = append(p.Names, t.Name)
		}
	}
	if v.r.Method == http.MethodPost {
		var arguments []byte
		if text := strings.TrimSpace(p.Arguments); text != "" {
			arguments = []byte(text)
		}
		x, err := v.api.Judge(ctx, strings.TrimSpace(p.Tool), p.Caller, arguments)
		if err != nil {
			p.Problem = control.Visible(err.Error())
		} else {
			p.Judged = &x
		}
	}
	v.render(http.StatusOK, "whatif", "What if", p)
	return nil
}
