package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// leastDisk is how much room the record should have: below it the page warns.
const leastDisk = 512 << 20

// endsSoon is how long before its end somebody should see to a login.
const endsSoon = 24 * time.Hour

// An item is one thing that waits for somebody.
type item struct {
	Tone  string // bad: calls fail because of it; warn: somebody should look
	Title string
	Text  string
	Link  string
	Label string // of the link
	Run   string // the command that mends it, when a page cannot
}

type nowPage struct {
	Items   []item
	Status  control.Status
	Callers int
	Calls   int    // in the last hour
	Next    string // what a new installation lacks first: servers, import, enable
}

func showNow(v *visit) error {
	ctx := v.r.Context()
	status, err := v.api.Status(ctx)
	if err != nil {
		return err
	}
	servers, err := v.api.Servers(ctx)
	if err != nil {
		return err
	}
	approvals, err := v.api.Approvals(ctx)
	if err != nil {
		return err
	}
	p := nowPage{Status: status, Callers: len(v.api.Callers(ctx))}
	p.Items = append(gatewayItems(v, status), questionItems(approvals)...)
	var atServers []item
	for i := range servers {
		atServers = append(atServers, serverItems(&servers[i], v.now())...)
	}
	slices.SortStableFunc(atServers, func(a, b item) int { return strings.Compare(a.Tone, b.Tone) }) // bad before warn
	p.Items = append(p.Items, atServers...)
	switch picture, err := v.flow.look(v.api.LedgerDir(), v.now()); {
	case err != nil: // what can be seen is shown all the same
		p.Items = append(p.Items, item{Tone: "bad", Title: "The record cannot be read", Text: control.Visible(err.Error()),
			Link: "/console/ledger", Label: "Verify it"})
	default:
		p.Calls = picture.within(60).total()
		p.Items = append(p.Items, unknownItems(picture)...)
	}
	switch {
	case status.Servers == 0:
		p.Next = "servers"
	case status.Tools == 0:
		p.Next = "import"
	case status.Enabled == 0:
		p.Next = "enable"
	}
	v.render(http.StatusOK, "now", "Now", p)
	return nil
}

// unknownItems are the calls that nobody knows the outcome of.
func unknownItems(p *picture) []item {
	n := p.within(flowMinutes).verdict(gate.OutcomeUnknown)
	if n == 0 {
		return nil
	}
	return []item{{Tone: "warn", Title: many(n, "call") + " of unknown outcome within a day",
		Text: "They may have happened at the server, and nobody here can know. They were not sent again.",
		Link: "/console/ledger?verdict=outcome_unknown", Label: "Look at them"}}
}

// gatewayItems are what concerns the gateway as a whole.
func gatewayItems(v *visit, status control.Status) (items []item) {
	for _, reason := range status.NotReady {
		items = append(items, item{Tone: "bad", Title: "Calls cannot be taken", Text: reason})
	}
	if free, ok := freeDisk(v.api.LedgerDir()); ok && free < leastDisk {
		items = append(items, item{Tone: "bad", Title: "The disk is nearly full",
			Text: fmt.Sprintf("%d MiB are free where the record is kept. Without room for it no call is made.", free>>20)})
	}
	if w := status.Waiting; w != nil {
		it := item{Tone: "warn", Title: "A changed configuration waits", Text: "It opens something, so somebody has to agree to it.", Run: "gatehouse reload"}
		if len(w.Problems) > 0 {
			it.Title, it.Text, it.Run = "The configuration file is not valid", "The one before it stays in force.", "gatehouse check"
		}
		items = append(items, it)
	}
	return items
}

func questionItems(open []control.Approval) (items []item) {
	for _, q := range open {
		items = append(items, item{Tone: "warn", Title: fmt.Sprintf("%s asks to call %s", q.Caller, q.Tool),
			Text: fmt.Sprintf("Question %d can be answered until %s.", q.Number, q.Until.Local().Format("15:04:05")),
			Link: fmt.Sprintf("/console/questions#q%d", q.Number), Label: "Read and decide"})
	}
	return items
}

// serverItems are what waits at one server. A server that is switched off waits
// for nothing.
func serverItems(s *control.Server, now time.Time) (items []item) {
	if !s.Enabled {
		return nil
	}
	card := "/console/servers#server-" + s.ID
	add := func(tone, title, text, link, label string) {
		items = append(items, item{Tone: tone, Title: s.Name + ": " + title, Text: text, Link: link, Label: label})
	}
	switch {
	case s.Class == gate.Unclassified.String():
		add("bad", "nothing is supplied", "It has no data_class, and no class has a default. Declare one under its [[server]].", card, "Look at the server")
		return items
	case s.CredentialState != "ok":
		add("bad", "credential "+s.CredentialState, "Calls fail until there is a good one.", card, "Look at the server")
	case s.ImportError != "":
		add("warn", "the last import was refused", control.Visible(s.ImportError), card, "Look at the server")
	case s.LastImport == nil:
		add("warn", "never imported", "Its tools are not known yet.", card, "Import it")
	case s.LastContact == nil:
		add("warn", "never answered", "No reply of it was good since its tools were imported.", card, "Test the connection")
	}
	if ends := s.CredentialEnds; ends != nil && s.CredentialState == credential.StateOK && ends.Sub(now) < endsSoon {
		items = append(items, item{Tone: "warn", Title: s.Name + ": the login ends in " + span(ends.Sub(now)),
			Text: "The authorization server gave nothing to renew it with; calls fail from then on.", Run: "gatehouse login " + s.ID})
	}
	if s.ToolsWaiting > 0 {
		add("warn", many(s.ToolsWaiting, "changed definition"), "What was agreed to is no longer what the server says; these are off until somebody has looked.",
			"/console/tools?state=changed&server="+s.ID, "Look at the differences")
	}
	return items
}
