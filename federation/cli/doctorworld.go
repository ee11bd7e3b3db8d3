package cli

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// secrets tries every reference of the file.
func (d *doctor) secrets(ctx context.Context) {
	const area = "credentials"
	resolver := &credential.Resolver{Vault: vaultNames{func() ([]control.Secret, error) {
		if d.api == nil {
			return nil, fmt.Errorf("the vault cannot be asked: the state is not open")
		}
		return d.api.Secrets(ctx)
	}}}
	if d.status != nil {
		// Variables are the daemon's, and it says itself what it cannot find.
		resolver.LookupEnv = func(string) (string, bool) { return "left to the daemon", true }
	}
	problems := d.cfg.CheckSecrets(ctx, resolver)
	for _, p := range problems {
		d.wrong(area, "edit "+editAt(d.cfg.Path, p.Line)+", or supply what it names", "%s", p)
	}
	if n := len(d.cfg.References()); n > 0 && len(problems) == 0 {
		d.well(area, "%s found", isOrAre(n, "reference"))
	}
}

func isOrAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// servers shakes hands with each server, side by side, and looks at what the
// catalogue has of it.
func (d *doctor) servers(ctx context.Context) {
	if d.api == nil {
		return
	}
	known, err := d.api.Servers(ctx)
	if err != nil {
		d.wrong("servers", "", "%s", err)
		return
	}
	if len(known) == 0 {
		d.note("servers", "edit "+d.cfg.Path, "there is no [[server]], so there are no tools but our own")
		return
	}
	reports := make([]control.TestReport, len(known))
	errs := make([]error, len(known))
	slots := make(chan struct{}, importsAtOnce)
	var running sync.WaitGroup
	for i, s := range known {
		if !reachable(s) {
			continue
		}
		running.Go(func() { // each is bounded by its server's budget
			slots <- struct{}{}
			defer func() { <-slots }()
			reports[i], errs[i] = d.api.TestServer(ctx, s.ID)
		})
	}
	running.Wait()
	for i, s := range known {
		d.server(s, reports[i], errs[i])
	}
}

func reachable(s control.Server) bool {
	return s.Enabled && s.URL != "" && s.CredentialState != credential.StateLoginNeeded
}

func (d *doctor) server(s control.Server, report control.TestReport, err error) {
	area := "server"
	line := 0
	if c := d.cfg.Server(gate.ServerID(s.ID)); c != nil {
		line = c.Line
	}
	edit := "edit " + editAt(d.cfg.Path, line)
	switch {
	case !s.Enabled:
		d.note(area, "", "%s: switched off", s.ID)
		return
	case s.URL == "":
		d.wrong(area, edit, "%s: it has no url and supplies nothing", s.ID)
		return
	case s.CredentialState == credential.StateLoginNeeded:
		d.wrong(area, d.command("login "+s.ID), "%s: nobody is logged in there", s.ID)
		return
	case err != nil:
		d.wrong(area, d.command("probe "+shellQuote(s.URL)), "%s", err)
	default:
		d.well(area, "%s: reached in %.0f ms, speaks %s", s.ID, report.LatencyMS, report.Era)
	}
	if s.CredentialState != credential.StateOK {
		d.wrong(area, edit, "%s: its credential is %s", s.ID, s.CredentialState)
	}
	d.offers(s, edit)
}

// offers looks at what of a server reaches callers.
func (d *doctor) offers(s control.Server, edit string) {
	const area = "catalogue"
	switch {
	case s.Class == gate.Unclassified.String():
		d.wrong(area, edit, "%s: it has no data_class and supplies nothing", s.ID)
	case s.ImportError != "":
		d.wrong(area, d.command("import "+s.ID), "%s: the last import was refused: %s", s.ID, s.ImportError)
	case s.LastImport == nil:
		d.note(area, d.command("import "+s.ID), "%s: it was never imported", s.ID)
	case s.ToolsWaiting > 0:
		d.note(area, d.command("tools list mcp_"+s.ID), "%s: %s changed and off until somebody looked", s.ID, isOrAre(s.ToolsWaiting, "tool"))
	case s.ToolsEnabled == 0:
		d.note(area, d.command("tools enable mcp_"+s.ID), "%s: %s imported, none enabled", s.ID, count(s.Tools, "tool"))
	default:
		d.well(area, "%s: %d of %s enabled, imported %s", s.ID, s.ToolsEnabled, count(s.Tools, "tool"), ago(s.LastImport))
	}
}

// names looks for tool names that callers' hosts would cut or refuse.
func (d *doctor) names(ctx context.Context) {
	if d.api == nil {
		return
	}
	tools, err := d.api.Tools(ctx, "")
	if err != nil {
		d.wrong("names", "", "%s", err)
		return
	}
	var names []gate.LocalName
	for _, t := range tools {
		if t.Name != "" && !t.Own {
			names = append(names, gate.LocalName(t.Name))
		}
	}
	warnings := d.cfg.NameWarnings(names)
	for _, text := range warnings[:min(len(warnings), mostNames)] {
		d.note("names", "edit [server.alias] in "+d.cfg.Path, "%s", text)
	}
	if more := len(warnings) - mostNames; more > 0 {
		d.note("names", d.command("check"), "and %d more", more)
	}
	if len(names) > 0 && len(warnings) == 0 {
		d.well("names", "%s within every caller's name budget", isOrAre(len(names), "name"))
	}
}

// mostNames bounds how many names are listed.
const mostNames = 5

// issuer asks who vouches for callers, and for people who sign in to the console.
func (d *doctor) issuer(ctx context.Context) {
	const area = "issuer"
	o := d.cfg.OIDC
	if !o.Enabled() || o.JWKSURL != "" && !o.Console.Enabled() {
		return // with jwks_url callers come without its description
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	what := "[oidc]"
	if o.Console.Enabled() {
		what = "[oidc.console]"
	}
	if err := federation.AskIssuer(ctx, d.cfg); err != nil {
		d.wrong(area, "edit "+what+" in "+d.cfg.Path, "%s", err)
		return
	}
	d.well(area, "%s describes itself, as %s needs it", o.Issuer, what)
}

// issuerTimeout bounds what an issuer may take to describe itself.
const issuerTimeout = 20 * time.Second

// callers says who can come, and how their client is set up.
func (d *doctor) callers() {
	const area = "callers"
	if len(d.cfg.Callers) == 0 && !d.cfg.OIDC.Enabled() {
		d.wrong(area, program()+" token", "there is no [[caller]] and no [oidc]: nobody can come in")
		return
	}
	admins := slices.ContainsFunc(d.cfg.Callers, func(c config.Caller) bool { return c.Admin }) ||
		slices.ContainsFunc(d.cfg.OIDC.Rules, func(r config.Rule) bool { return r.Grant.Admin })
	if !admins {
		d.note(area, "set admin = true for a [[caller]] in "+d.cfg.Path, "no caller is an administrator, so tools of servers are offered to nobody")
	} else {
		d.well(area, "%s", count(len(d.cfg.Callers), "caller"))
	}
	url := "http://" + d.cfg.Listen.Address + "/mcp"
	if d.status != nil {
		url = d.status.URL
	} else if d.cfg.Listen.PublicURL != "" {
		url = d.cfg.Listen.PublicURL + "/mcp"
	}
	if d.cfg.Approval.Channel == config.ChannelClient {
		d.note("clients", "", "a client that shows no forms (elicitation) cannot approve a call; with [approval] channel = \"client_then_console\" it waits for: gatehouse approvals")
	}
	d.note("clients", "claude mcp add --transport http gatehouse "+shellQuote(url)+" --header 'Authorization: Bearer TOKEN'", "to set one up, for example Claude Code:")
}
