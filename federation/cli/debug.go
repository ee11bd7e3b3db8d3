package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gatehouse/federation/control"
)

func (a *app) debugCommand() *cobra.Command {
	var over time.Duration
	var file string
	profile := &cobra.Command{
		Use:   "profile KIND",
		Short: "Take a profile of the running daemon, for go tool pprof",
		Long: "Takes a profile of the running daemon through its socket and writes it to a file.\n" +
			"KIND is " + strings.Join(control.Profiles(), ", ") + ".\n\n" +
			"The same without this command:\n" +
			"  curl --unix-socket gatehouse.db.sock 'http://gatehouse/debug/pprof/goroutine?debug=1'",
		Args:      names(1, 1, "a kind of profile: "+strings.Join(control.Profiles(), ", ")),
		ValidArgs: control.Profiles(),
		RunE: func(c *cobra.Command, args []string) error {
			if over <= 0 {
				return usagef("--over %s: want more than 0", over)
			}
			return a.profile(c.Context(), args[0], over, file)
		},
	}
	profile.Flags().DurationVar(&over, "over", 10*time.Second, "how long cpu and trace are taken")
	profile.Flags().StringVarP(&file, "output", "o", "", "`file` to write (default gatehouse-KIND.pprof)")
	return group("debug", "Look into a running daemon", profile)
}

func (a *app) profile(ctx context.Context, kind string, over time.Duration, file string) error {
	cfg, err := a.load(false)
	if err != nil {
		return err
	}
	remote, err := control.Dial(ctx, cfg.SocketPath())
	if errors.Is(err, control.ErrNoDaemon) {
		return fmt.Errorf("%w; a profile is of a running one", err)
	}
	if err != nil {
		return err
	}
	defer remote.Close()
	var taken bytes.Buffer
	if err := remote.Profile(ctx, kind, over, &taken); err != nil {
		return err
	}
	if file == "" {
		file = "gatehouse-" + kind + ".pprof"
	}
	if err := os.WriteFile(file, taken.Bytes(), 0o600); err != nil {
		return err
	}
	tool := "go tool pprof "
	if kind == "trace" {
		tool = "go tool trace "
	}
	a.printf("wrote %s; look at it with:\n  %s%s\n", file, tool, shellQuote(file))
	return nil
}
