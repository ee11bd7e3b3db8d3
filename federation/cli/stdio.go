package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gatehouse/federation/control"
	"gatehouse/gate"
)

func (a *app) stdioCommand() *cobra.Command {
	var caller string
	c := &cobra.Command{
		Use:   "stdio --caller NAME",
		Short: "Serve one client over stdio, through the running daemon",
		Args:  nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			if caller == "" {
				return usagef("stdio wants --caller")
			}
			return a.bridge(c.Context(), caller)
		},
	}
	c.Flags().StringVar(&caller, "caller", "", "`name` of the caller")
	return c
}

// bridge needs the daemon: whoever approves, and whoever else calls, must meet
// the same gate.
func (a *app) bridge(ctx context.Context, caller string) error {
	cfg, err := a.load(false)
	if err != nil {
		return err
	}
	if cfg.Caller(gate.CallerName(caller)) == nil {
		return fmt.Errorf("caller %q: the configuration has no [[caller]] of that name", caller)
	}
	daemon, err := control.Dial(ctx, cfg.SocketPath())
	if errors.Is(err, control.ErrNoDaemon) {
		return fmt.Errorf("no daemon is running for this configuration; start one with: %s", a.command("serve"))
	}
	if err != nil {
		return err
	}
	defer daemon.Close()
	return control.Bridge(ctx, daemon.Endpoint(caller), a.stdin, a.stdout)
}
