package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"gatehouse/federation/control"
)

func (a *app) explainCommand() *cobra.Command {
	var caller string
	c := &cobra.Command{
		Use:   "explain NAME --caller C",
		Short: "Show the checks a call must pass, and the first that fails",
		Args:  names(1, 1, "the name of a tool"),
		RunE: func(c *cobra.Command, args []string) error {
			if caller == "" {
				return usagef("explain wants --caller")
			}
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				return a.explain(ctx, api, args[0], caller)
			})
		},
	}
	c.Flags().StringVar(&caller, "caller", "", "`name` of the caller")
	return c
}

// explain answers a question, so it is done (0) whatever the answer is.
func (a *app) explain(ctx context.Context, api control.API, tool, caller string) error {
	x, err := api.Explain(ctx, tool, caller)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(x)
	}
	for _, c := range x.Checks {
		mark, colour := "fails", red
		switch {
		case c.Skipped:
			mark, colour = "-", plain
		case c.Passed:
			mark, colour = "holds", green
		}
		a.printf("%d  %-14s %s  %s\n", c.Number, c.Name, a.paint(colour, pad(mark, 5)), wrap(escape(c.Detail), 25))
	}
	if x.Offered {
		a.printf("\n%s\n", wrap(escape(tool+" is offered to "+caller), 0))
	} else {
		a.printf("\n%s\n", wrap(escape(fmt.Sprintf("%s is not offered to %s: %s (%s)", tool, caller, x.Reason, x.Detail)), 0))
	}
	return nil
}

func pad(s string, n int) string {
	for len(s) < n {
		s += " "
	}
	return s
}
