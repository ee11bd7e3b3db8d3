package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gatehouse/federation/control"
	"gatehouse/upstream/credential"
)

func (a *app) serversCommand() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "List the servers and what is known of them",
		Args:  nothing,
		RunE:  func(c *cobra.Command, _ []string) error { return a.with(c.Context(), a.listServers) },
	}
	test := &cobra.Command{
		Use:   "test ID",
		Short: "Connect to a server and shake hands",
		Args:  names(1, 1, "the id of a server"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				return a.testServer(ctx, api, args[0])
			})
		},
	}
	return orDefault(group("servers", "List or test servers", list, test), list)
}

// orDefault makes a group without arguments do what one of its commands does.
func orDefault(g, first *cobra.Command) *cobra.Command {
	unknown := g.RunE
	g.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknown(c, args)
		}
		return first.RunE(c, nil)
	}
	return g
}

func (a *app) listServers(ctx context.Context, api control.API) error {
	servers, err := api.Servers(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list(servers))
	}
	if len(servers) == 0 {
		a.printf("no servers; add a [[server]] to the configuration\n")
		return nil
	}
	var rows [][]cell
	for _, s := range servers {
		note, colour := serverNote(s)
		rows = append(rows, []cell{{text: s.ID}, {text: s.Class}, {text: orDash(s.Era)},
			{text: fmt.Sprintf("%d/%d", s.ToolsEnabled, s.Tools)}, {text: ago(s.LastContact)}, {note, colour}})
	}
	a.table([]string{"ID", "DATA CLASS", "ERA", "TOOLS", "CONTACT", "NOTE"}, rows)
	return a.warnWaiting(ctx, api)
}

// serverNote is the one thing to know about a server first.
func serverNote(s control.Server) (note, colour string) {
	switch {
	case !s.Enabled:
		return "switched off", yellow
	case s.URL == "":
		return "no url: supplies nothing", yellow
	case s.CredentialState == credential.StateLoginNeeded:
		return s.CredentialState, red
	case s.CredentialState != credential.StateOK:
		return "credential " + s.CredentialState, red
	case s.Class == "unclassified":
		return "no data class: supplies nothing", yellow
	case s.ImportError != "":
		return "import refused: " + s.ImportError, red
	case s.ToolsWaiting > 0:
		return fmt.Sprintf("%d changed, now off", s.ToolsWaiting), yellow
	case s.LastImport == nil:
		return "not imported", yellow
	}
	return "", plain
}

func (a *app) testServer(ctx context.Context, api control.API, id string) error {
	report, err := api.TestServer(ctx, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(report)
	}
	a.printf("%s: reached in %.1f ms, speaks %s, calls itself %q %s\n", id, report.LatencyMS, report.Version, report.ServerName, report.ServerVersion)
	return nil
}

// list is l as JSON prints it: never null.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
