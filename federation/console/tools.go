package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// pageTools is how many tools one page lists.
const pageTools = 200

type toolsPage struct {
	Words, Server, State string // the filter
	Servers, States      []string
	Groups               []toolGroup
	Found, All           int
	Page, Pages          int
	Generation           uint64
	Here                 string // the path of this very page
}

// A toolGroup is the tools of one server.
type toolGroup struct {
	Server, Group   string
	Tools           []control.Tool
	Off, On, Review int // in the whole group, whatever the filter
}

func showTools(v *visit) error {
	all, err := v.api.Tools(v.r.Context(), "")
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	p := toolsPage{Words: q.Get("q"), Server: q.Get("server"), State: q.Get("state"), All: len(all), Here: v.r.URL.RequestURI(),
		States: []string{"enabled", "disabled", "changed", "vanished", "skipped", "server_disabled", "unsupplied"}}
	if status, err := v.api.Status(v.r.Context()); err == nil {
		p.Generation = status.Generation
	}
	groups := map[string]*toolGroup{}
	var found []control.Tool
	for _, t := range all {
		g := groups[t.Server]
		if g == nil {
			g = &toolGroup{Server: t.Server, Group: t.Group}
			groups[t.Server] = g
			if t.Server != "" {
				p.Servers = append(p.Servers, t.Server)
			}
		}
		g.count(&t)
		if p.matches(&t) {
			found = append(found, t)
		}
	}
	slices.Sort(p.Servers)
	slices.SortStableFunc(found, func(a, b control.Tool) int {
		if a.Own != b.Own { // our own come last: nothing is to be done about them
			return cmp.Compare(own(a), own(b))
		}
		return strings.Compare(a.Server, b.Server)
	})
	p.Found, p.Pages = len(found), max(1, (len(found)+pageTools-1)/pageTools)
	p.Page, _ = strconv.Atoi(q.Get("page"))
	p.Page = min(max(p.Page, 1), p.Pages)
	for _, t := range found[(p.Page-1)*pageTools : min(len(found), p.Page*pageTools)] {
		g := groups[t.Server]
		if len(g.Tools) == 0 {
			p.Groups = append(p.Groups, *g)
		}
		g.Tools = append(g.Tools, t)
		p.Groups[len(p.Groups)-1].Tools = g.Tools
	}
	v.render(http.StatusOK, "tools", "Tools", p)
	return nil
}

func own(t control.Tool) int {
	if t.Own {
		return 1
	}
	return 0
}

func (g *toolGroup) count(t *control.Tool) {
	switch {
	case t.Own:
	case t.State == "enabled":
		g.On++
	case t.State == "disabled":
		g.Off++
	case t.State == "changed":
		g.Review++
	}
}

// matches reports whether the filter lets a tool through: every word is in its
// name, title or description.
func (p *toolsPage) matches(t *control.Tool) bool {
	if p.Server != "" && t.Server != p.Server || p.State != "" && t.State != p.State {
		return false
	}
	text := strings.ToLower(t.Name + " " + t.Remote + " " + t.Title + " " + t.Description)
	for word := range strings.FieldsSeq(strings.ToLower(p.Words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// At is the path of another page of the same list.
func (p toolsPage) At(page int) string {
	q := url.Values{"page": {strconv.Itoa(page)}}
	for key, value := range map[string]string{"q": p.Words, "server": p.Server, "state": p.State} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return "/console/tools?" + q.Encode()
}

// Previous and Following are the pages beside this one, 0 when there is none.
func (p toolsPage) Previous() int { return p.Page - 1 }

// Following is the page after this one, 0 when there is none.
func (p toolsPage) Following() int {
	if p.Page == p.Pages {
		return 0
	}
	return p.Page + 1
}

// changeTools enables or disables tools. A form says what its page showed, and
// what is not that any more is not changed: nobody agrees to what they did not see.
func changeTools(v *visit) error {
	form := v.r.PostForm
	action, group, _ := strings.Cut(form.Get("action"), ":")
	var names []string
	var err error
	if group != "" {
		names, err = v.wholeGroup(action, group, form.Get("generation"))
	} else {
		names, err = v.chosen(action, form["tool"])
	}
	if err != nil {
		return v.back(local(form.Get("back")), err, "")
	}
	change, done := v.api.Enable, "enabled"
	switch action {
	case "disable":
		change, done = v.api.Disable, "disabled"
	case "enable", "accept":
	default:
		return errBadForm
	}
	changes, err := change(v.r.Context(), names)
	n := 0
	for _, c := range changes {
		if c.Kind != "" {
			n++
		}
	}
	return v.back(local(form.Get("back")), err, "%s %s.", many(n, "tool"), done)
}

// chosen are the names of the tools that were picked, each with the definition
// that was shown.
func (v *visit) chosen(action string, picked []string) (names []string, err error) {
	if len(picked) == 0 {
		return nil, errors.New("no tool was chosen; tick the tools first")
	}
	for _, pick := range picked {
		name, shown, _ := strings.Cut(pick, " ")
		t, err := v.api.Tool(v.r.Context(), name)
		switch {
		case err != nil:
			return nil, err
		case action != "disable" && t.Definition != shown:
			return nil, fmt.Errorf("%s: its definition changed after the page was shown; look again", name)
		case action == "enable" && t.State == "changed":
			return nil, fmt.Errorf("%s: look at the difference first; its page accepts it", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// wholeGroup are the names of all tools of a group that an action concerns:
// those that are off, or on. A changed one is for its own page.
func (v *visit) wholeGroup(action, group, generation string) (names []string, err error) {
	status, err := v.api.Status(v.r.Context())
	if err != nil {
		return nil, err
	}
	if strconv.FormatUint(status.Generation, 10) != generation {
		return nil, errors.New("the catalogue changed after the page was shown; look again, then repeat it")
	}
	tools, err := v.api.Tools(v.r.Context(), group)
	if err != nil {
		return nil, err
	}
	from := "disabled"
	if action == "disable" {
		from = "enabled"
	}
	for _, t := range tools {
		if t.State == from && !t.Own && t.Name != "" {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("there is nothing to change in this group")
	}
	return names, nil
}

type toolPage struct {
	control.ToolDetail
	Difference  *difference
	ServedTo    string
	Served      string // the definition that this caller reads
	Schema      string
	Annotations string
	Received    string
	Sights      []callerSight
}

type callerSight struct {
	Caller string
	Reason gate.Reason
	Detail string
}

func showTool(v *visit) error {
	ctx, name := v.r.Context(), v.r.PathValue("name")
	t, err := v.api.Tool(ctx, name)
	if err != nil {
		return err
	}
	p := toolPage{ToolDetail: t, Received: pretty(t.Raw)}
	served, caller := v.api.Served(ctx, name)
	p.Served, p.ServedTo = pretty(served), caller
	source := []byte(t.Raw)
	if served != nil {
		source = served
	}
	if members, err := rawjson.Object(source); err == nil {
		schema, _ := rawjson.Get(members, "inputSchema")
		annotations, _ := rawjson.Get(members, "annotations")
		p.Schema, p.Annotations = pretty(schema), pretty(annotations)
	}
	if t.State == gate.Changed.String() {
		d, err := v.api.Diff(ctx, name)
		if err != nil {
			return err
		}
		p.Difference = newDifference(d)
	}
	for _, c := range v.api.Callers(ctx) {
		x, err := v.api.Explain(ctx, name, c.Name)
		if err != nil {
			continue // reconfigured between the two
		}
		if x.Reason == gate.ApprovalRequired || x.Reason == gate.InvalidArguments {
			x.Reason = ""
		}
		p.Sights = append(p.Sights, callerSight{c.Name, x.Reason, x.Detail})
	}
	v.render(http.StatusOK, "tool", t.Name, p)
	return nil
}

// pretty is JSON for reading, with every character visible.
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return control.Visible(string(raw))
	}
	return control.Visible(out.String())
}
