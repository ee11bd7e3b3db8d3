package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gatehouse/federation/control"
)

func (a *app) approvalsCommand() *cobra.Command {
	listing := &cobra.Command{
		Use:   "list",
		Short: "List the calls that wait for a person",
		Args:  nothing,
		RunE:  func(c *cobra.Command, _ []string) error { return a.with(c.Context(), a.listApprovals) },
	}
	one := func(use, short string, run func(context.Context, control.API, uint64) error) *cobra.Command {
		return &cobra.Command{
			Use:   use + " ID",
			Short: short,
			Args:  names(1, 1, "the number of an approval"),
			RunE: func(c *cobra.Command, args []string) error {
				number, err := strconv.ParseUint(args[0], 10, 64)
				if err != nil {
					return usagef("%q is not the number of an approval; see: gatehouse approvals list", args[0])
				}
				return a.with(c.Context(), func(ctx context.Context, api control.API) error { return run(ctx, api, number) })
			},
		}
	}
	return orDefault(group("approvals", "See and decide the calls that wait for a person", listing,
		one("show", "Show a waiting call in full", a.showApproval),
		one("approve", "Let a waiting call happen, once", a.decide(true)),
		one("deny", "Refuse a waiting call", a.decide(false))), listing)
}

func (a *app) listApprovals(ctx context.Context, api control.API) error {
	open, err := api.Approvals(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list(open))
	}
	if len(open) == 0 {
		a.printf("nothing waits for a person\n")
		return nil
	}
	var rows [][]cell
	for _, q := range open {
		rows = append(rows, []cell{{text: fmt.Sprint(q.Number)}, {text: q.Tool}, {text: escape(q.Caller)},
			{text: time.Until(q.Until).Round(time.Second).String()}})
	}
	a.table([]string{"ID", "TOOL", "CALLER", "LEFT"}, rows)
	return nil
}

func (a *app) showApproval(ctx context.Context, api control.API, number uint64) error {
	q, err := api.Approval(ctx, number)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(q)
	}
	a.printf("%s\n\ndecide with: %s\n         or: %s\n", escape(q.Message),
		a.command(fmt.Sprintf("approvals approve %d", number)), a.command(fmt.Sprintf("approvals deny %d", number)))
	return nil
}

func (a *app) decide(approve bool) func(context.Context, control.API, uint64) error {
	word := "denied"
	if approve {
		word = "approved"
	}
	return func(ctx context.Context, api control.API, number uint64) error {
		if err := api.Decide(ctx, number, approve); err != nil {
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"number": number, "decision": word})
		}
		a.printf("approval %d: %s\n", number, word)
		return nil
	}
}
