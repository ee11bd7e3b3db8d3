package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gatehouse/federation/config"
	"gatehouse/federation/control"
)

func (a *app) planCommand() *cobra.Command {
	var against string
	var replay int
	c := &cobra.Command{
		Use:   "plan --config NEW",
		Short: "Show who would gain or lose what by a new configuration",
		Long: `Compare a new configuration with the one in force, and change nothing.

Here --config names the new file, and what it is compared with is found like
this:

  1. the file of --against, when that is given;
  2. the configuration of the daemon that serves the state NEW names;
  3. gatehouse.toml here, else $GATEHOUSE_CONFIG: through its daemon when one
     runs, otherwise the file itself.

Without --config the new file is the default one: what "gatehouse reload" would
do. "+" opens something, "-" closes something, "~" is neither.`,
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			if replay < 0 {
				return usagef("plan --replay wants a number of calls")
			}
			return a.plan(c.Context(), against, replay)
		},
	}
	c.Flags().StringVar(&against, "against", "", "compare with this `file` instead of what is in force")
	c.Flags().IntVar(&replay, "replay", 0, "judge the last `N` recorded calls under both")
	return c
}

func (a *app) plan(ctx context.Context, against string, replay int) error {
	path, err := a.file()
	if err != nil {
		return err
	}
	data, problems := config.Read(path)
	var cfg *config.Config
	if problems == nil {
		cfg, problems = config.Parse(path, data)
	}
	for _, p := range problems {
		fmt.Fprintln(a.stderr, p)
	}
	if cfg == nil {
		fmt.Fprintf(a.stderr, "%s: %s; there is nothing to compare\n", filepath.Base(path), count(len(problems.Errors()), "problem"))
		return errSilent
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	api, done, err := a.inForce(ctx, cfg, against)
	if err != nil {
		return err
	}
	defer done()
	reply, err := api.Plan(ctx, control.PlanRequest{Path: absolute, Data: data, Replay: replay})
	switch {
	case err != nil:
		return err
	case reply.Plan == nil:
		return a.refused(reply)
	case a.json:
		return a.printJSON(reply.Plan)
	}
	a.printf("%s", reply.Plan)
	return nil
}

// inForce finds what the new configuration is compared with.
func (a *app) inForce(ctx context.Context, next *config.Config, against string) (control.API, func(), error) {
	other := &app{version: a.version, stdout: a.stdout, stderr: a.stderr, getenv: a.getenv, configPath: against}
	if against == "" {
		remote, err := control.Dial(ctx, next.SocketPath())
		if err == nil {
			return remote, remote.Close, nil
		}
		if !errors.Is(err, control.ErrNoDaemon) {
			return nil, nil, err
		}
		path, err := other.file()
		if err != nil || sameFile(path, next.Path) {
			return nil, nil, fmt.Errorf("no daemon serves %s, and there is no other file in force to compare %s with; name one with --against",
				filepath.Base(next.StatePath()), filepath.Base(next.Path))
		}
	}
	old, err := other.load(false)
	if err != nil {
		return nil, nil, err
	}
	return other.connectTo(ctx, old)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// refused prints why a file is not good.
func (a *app) refused(reply control.PlanReply) error {
	if a.json {
		if err := a.printJSON(reply); err != nil {
			return err
		}
	}
	for _, p := range reply.Problems {
		fmt.Fprintln(a.stderr, p)
	}
	fmt.Fprintf(a.stderr, "%s; the configuration in force stays\n", count(len(reply.Problems), "problem"))
	return errSilent
}
