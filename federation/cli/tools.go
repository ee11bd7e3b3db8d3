package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gatehouse/federation/catalog"
	"gatehouse/federation/control"
	"gatehouse/gate"
)

func (a *app) toolsCommand() *cobra.Command {
	listing := &cobra.Command{
		Use:   "list [NAME]",
		Short: "List the catalogue, or the part that a name, glob or group covers",
		Args:  names(0, 1, "at most one name, glob or group"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				return a.listTools(ctx, api, strings.Join(args, ""))
			})
		},
	}
	show := &cobra.Command{
		Use:   "show NAME",
		Short: "Show one tool, with its definition as the server wrote it",
		Args:  names(1, 1, "the name of a tool"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error { return a.showTool(ctx, api, args[0]) })
		},
	}
	diff := &cobra.Command{
		Use:   "diff NAME",
		Short: "Show how a tool differs from what was enabled",
		Args:  names(1, 1, "the name of a tool"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error { return a.diffTool(ctx, api, args[0]) })
		},
	}
	enable := &cobra.Command{
		Use:   "enable NAME...",
		Short: "Open tools to administrators, at their present definition",
		Args:  names(1, -1, "names, globs or groups of tools"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error { return a.changeTools(ctx, args, api.Enable) })
		},
	}
	disable := &cobra.Command{
		Use:   "disable NAME...",
		Short: "Close tools",
		Args:  names(1, -1, "names, globs or groups of tools"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error { return a.changeTools(ctx, args, api.Disable) })
		},
	}
	return orDefault(group("tools", "See the catalogue and decide what of it is open", listing, show, diff, enable, disable), listing)
}

func (a *app) listTools(ctx context.Context, api control.API, pattern string) error {
	tools, err := api.Tools(ctx, pattern)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list(tools))
	}
	var rows [][]cell
	for _, t := range tools {
		about := t.Description
		if t.State != gate.Enabled.String() && t.State != gate.Disabled.String() && t.Detail != "" {
			about = t.Detail
		}
		name := t.Name
		if name == "" {
			name = fmt.Sprintf("(%s of %s)", t.Remote, t.Server)
		}
		rows = append(rows, []cell{{text: name}, {t.State, stateColour(t.State)}, {text: oneLine(about)}})
	}
	a.table([]string{"NAME", "STATE", "ABOUT"}, rows)
	return nil
}

func stateColour(state string) string {
	switch state {
	case gate.Enabled.String():
		return green
	case gate.Disabled.String():
		return plain
	case gate.Changed.String():
		return yellow
	}
	return red
}

func oneLine(s string) string { return strings.Join(strings.Fields(escape(s)), " ") }

func (a *app) showTool(ctx context.Context, api control.API, name string) error {
	t, err := api.Tool(ctx, name)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(t)
	}
	a.printf("%s\n", a.paint(bold, t.Name))
	state := t.State
	if t.Detail != "" && t.Detail != t.State {
		state += ": " + t.Detail
	}
	approval := "required"
	if !t.RequiresApproval {
		approval = "waived by the server's table"
	}
	for _, field := range [][2]string{
		{"state", state},
		{"server", fmt.Sprintf("%s (%s)", t.Server, t.ServerName)},
		{"origin", t.Origin},
		{"remote name", t.Remote},
		{"data class", t.Class},
		{"approval", approval},
		{"definition", t.Definition},
		{"first seen", ago(t.FirstSeen)},
		{"enabled", ago(t.EnabledAt)},
		{"unportable", t.Unportable},
	} {
		if field[1] != "" {
			a.printf("  %-12s %s\n", field[0], wrap(escape(field[1]), 15))
		}
	}
	for _, warning := range t.Warnings {
		a.printf("  warning      %s\n", wrap(escape(warning), 15))
	}
	if t.Description != "" {
		a.printf("\nthe server says:\n")
		a.quote(escape(t.Description))
	}
	if len(t.Raw) > 0 {
		a.printf("\ndefinition:\n")
		a.quote(escape(pretty(t.Raw)))
	}
	return nil
}

func (a *app) diffTool(ctx context.Context, api control.API, name string) error {
	d, err := api.Diff(ctx, name)
	if err != nil {
		return err
	}
	if d.Changes == nil {
		d.Changes = []catalog.FieldChange{}
	}
	if a.json {
		return a.printJSON(d)
	}
	if len(d.Changes) == 0 {
		a.printf("%s: as it was enabled\n", name)
		return nil
	}
	head, rest, _ := strings.Cut(strings.TrimRight(d.String(), "\n"), "\n")
	a.printf("%s\n%s\n\n", wrap(escape(head), 2), escape(rest))
	a.hint("accept this with:", a.command("tools enable "+name))
	return nil
}

// changeTools enables or disables and prints one line a tool.
func (a *app) changeTools(ctx context.Context, patterns []string, change func(context.Context, []string) ([]control.ToolChange, error)) error {
	changes, err := change(ctx, patterns)
	if a.json {
		return errors.Join(a.printJSON(list(changes)), err)
	}
	for _, c := range changes {
		switch c.Kind {
		case "":
			a.printf("%s: %s, as before\n", c.Name, c.To)
		case string(gate.KindAcceptChange):
			a.printf("%s: %s, its change is accepted\n", c.Name, c.To)
		default:
			a.printf("%s: %s\n", c.Name, c.To)
		}
	}
	return err
}
