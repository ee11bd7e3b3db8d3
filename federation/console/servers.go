package console

import (
	"net/http"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/upstream/wire"
)

// shownLines bounds how much of an import's report a page shows.
const shownLines = 200

// A report is what a test or an import of a server found, kept for whoever asked.
type report struct {
	Server string
	At     time.Time
	Asked  string
	Test   *control.TestReport
	Import *control.ImportReport
	Err    string
}

// Lines are the report's lines about single tools, as many as are shown.
func (r *report) Lines() any {
	if r.Import == nil {
		return nil
	}
	return r.Import.Lines[:min(len(r.Import.Lines), shownLines)]
}

// More is how many lines there are beyond those.
func (r *report) More() int {
	if r.Import == nil {
		return 0
	}
	return max(0, len(r.Import.Lines)-shownLines)
}

// Bar is the requests that were made, as a time bar.
func (r *report) Bar() *bar {
	switch {
	case r.Test != nil:
		return newBar(r.Test.Legs)
	case r.Import != nil:
		return newBar(r.Import.Legs)
	}
	return nil
}

type serverCard struct {
	control.Server
	Skipped, Vanished int
	Nameless          []string
	Report            *report
}

func showServers(v *visit) error {
	servers, err := v.api.Servers(v.r.Context())
	if err != nil {
		return err
	}
	tools, err := v.api.Tools(v.r.Context(), "")
	if err != nil {
		return err
	}
	states := map[[2]string]int{}
	for _, t := range tools {
		states[[2]string{t.Server, t.State}]++
	}
	cards := make([]serverCard, len(servers))
	for i, s := range servers {
		cards[i] = serverCard{Server: s, Skipped: states[[2]string{s.ID, "skipped"}], Vanished: states[[2]string{s.ID, "vanished"}],
			Nameless: v.api.Nameless(v.r.Context(), s.ID), Report: v.session.report(s.ID)}
	}
	v.render(http.StatusOK, "servers", "Servers", cards)
	return nil
}

// testServer shakes hands with one server and puts that on record.
func testServer(v *visit) error {
	id := v.r.PathValue("id")
	ctx := v.r.Context()
	out := &report{Server: id, At: v.now(), Asked: "Test connection"}
	found, err := v.api.TestServer(ctx, id)
	entry := &gate.Entry{Kind: gate.KindTest, Server: gate.ServerID(id), Verdict: gate.OK, Legs: found.Legs}
	if err != nil {
		out.Err = control.Visible(err.Error())
		entry.Verdict, entry.Detail = gate.UpstreamError, wire.Clip(err.Error())
	} else {
		out.Test = &found
	}
	if !v.known(id) {
		return err
	}
	v.session.keep(id, out)
	if err := v.api.Record(ctx, entry); err != nil {
		return err
	}
	http.Redirect(v.w, v.r, "/console/servers#server-"+id, http.StatusSeeOther)
	return nil
}

func (v *visit) known(id string) bool {
	return v.g.Config().Server(gate.ServerID(id)) != nil
}

// importServer takes over what one server lists, or says what it would.
func importServer(v *visit) error {
	id := v.r.PathValue("id")
	dry := v.r.PostForm.Get("preview") != ""
	reports, err := v.api.Import(v.r.Context(), []string{id}, false, dry)
	if !v.known(id) {
		return err
	}
	out := &report{Server: id, At: v.now(), Asked: "Import"}
	if dry {
		out.Asked = "Preview of an import"
	}
	if err != nil {
		out.Err = control.Visible(err.Error())
	}
	if len(reports) > 0 && err == nil {
		out.Import = &reports[0]
	}
	v.session.keep(id, out)
	if dry { // an import itself is on record anyway
		if err := v.api.Record(v.r.Context(), previewed(id, out)); err != nil {
			return err
		}
	}
	http.Redirect(v.w, v.r, "/console/servers#server-"+id, http.StatusSeeOther)
	return nil
}

// previewed is the record of a preview.
func previewed(id string, r *report) *gate.Entry {
	e := &gate.Entry{Kind: gate.KindTest, Server: gate.ServerID(id), Verdict: gate.OK, Reason: "import_preview"}
	if r.Import == nil || r.Import.Refusal != "" {
		e.Verdict = gate.Refused
	}
	if r.Import != nil {
		e.Detail, e.Legs = wire.Clip(r.Import.Summary()), r.Import.Legs
	}
	return e
}

// importAll imports every enabled server; each card then has its report.
func importAll(v *visit) error {
	reports, err := v.api.Import(v.r.Context(), nil, true, false)
	refused := 0
	for i := range reports {
		if reports[i].Server == "" {
			continue // its error is in err
		}
		if reports[i].Refusal != "" {
			refused++
		}
		v.session.keep(string(reports[i].Server), &report{Server: string(reports[i].Server), At: v.now(), Asked: "Import", Import: &reports[i]})
	}
	if refused > 0 {
		return v.back("/console/servers", err, "%s imported, %d refused; each has its report below", many(len(reports)-refused, "server"), refused)
	}
	return v.back("/console/servers", err, "%s imported; each has its report below", many(len(reports), "server"))
}
