package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/federation/plan"
	"gatehouse/gate"
)

// watchEvery is how often serve --watch looks at its file. A file counts once
// two looks found it the same, so a change is in force within two of these.
const watchEvery = time.Second

func (a *app) reloadCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "reload",
		Short: "Put the changed configuration file into force, after showing its plan",
		Long: `Have the running daemon read its configuration file again.

The plan is shown first, and a person at the terminal has to agree; --yes agrees
without being asked. A file with problems changes nothing. SIGHUP does the same
without showing anything. Calls in flight finish under what they began with.`,
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error { return a.reload(c.Context(), yes) },
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (a *app) reload(ctx context.Context, yes bool) error {
	path, err := a.file()
	if err != nil {
		return err
	}
	api, err := control.Dial(ctx, config.Locate(path)+".sock")
	if errors.Is(err, control.ErrNoDaemon) {
		return fmt.Errorf("no daemon is running for %s, so there is nothing to reload; serve begins with the file as it is", filepath.Base(path))
	}
	if err != nil {
		return err
	}
	defer api.Close()
	reply, err := api.Plan(ctx, control.PlanRequest{})
	if err != nil {
		return err
	}
	if reply.Plan == nil {
		// The daemon is to know, and to keep on record, that it was asked.
		if reply, err = api.Reload(ctx, ""); err == nil && reply.Plan == nil {
			return a.refused(reply)
		}
		if err == nil {
			err = federation.ErrFileChanged
		}
		return err
	}
	if err := a.agreed(reply.Plan, yes); err != nil {
		return err
	}
	reply, err = api.Reload(ctx, reply.Plan.To.Digest)
	switch {
	case err != nil:
		return err
	case reply.Plan == nil:
		return a.refused(reply)
	case a.json:
		return a.printJSON(reply.Plan)
	}
	a.printf("%s is in force\n", filepath.Base(reply.Plan.To.Path))
	if n := len(reply.Plan.Restart()); n > 0 {
		a.printf("%s as before until the daemon is started again\n", verb(n, "setting"))
	}
	return nil
}

func verb(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// agreed shows the plan and wants a person's yes, unless there is nothing to
// agree to or the command line gave it.
func (a *app) agreed(p *plan.Plan, yes bool) error {
	if !a.json {
		a.printf("%s\n", p)
	}
	if yes || p.Empty() {
		return nil
	}
	t, err := a.terminal()
	if err != nil {
		return fmt.Errorf("nobody is here to agree to the plan; nothing was changed; agree with: %s", a.command("reload --yes"))
	}
	defer t.Close()
	if a.json {
		fmt.Fprintf(t, "%s\n", p)
	}
	if !readYes(t) {
		return errors.New("not agreed; nothing was changed")
	}
	return nil
}

// readYes wants the word in full, so that a key pressed by mistake is a no.
func readYes(t io.ReadWriter) bool {
	fmt.Fprint(t, "Put this into force? Type \"yes\": ")
	line, _ := bufio.NewReader(io.LimitReader(t, 1<<10)).ReadString('\n') // no line is no yes
	return strings.TrimSpace(line) == "yes"
}

// reloads has SIGHUP reload the configuration, and with watch a changed file do
// what it can by itself, until stop is called, which waits. A SIGHUP that comes
// because our terminal was closed calls gone instead: nobody who closes a window
// means to leave a daemon behind.
func (a *app) reloads(ctx context.Context, g *federation.Gateway, watch bool, gone func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	interactive := isTerminal(a.stderr)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	var running sync.WaitGroup
	running.Go(func() { // ended and waited for by stop
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				if interactive && !isTerminal(a.stderr) {
					gone()
					return
				}
				_, err := g.ReloadFile(ctx, "signal", gate.Digest{})
				if _, told := errors.AsType[*federation.InvalidFileError](err); err != nil && !told {
					g.Logger.Error("not reloaded", "error", err)
				}
			}
		}
	})
	if watch {
		running.Go(func() { g.Watch(ctx, watchEvery) }) // ended and waited for by stop
	}
	return func() {
		signal.Stop(hangups)
		cancel()
		running.Wait()
	}
}

// warnWaiting says on standard error that the file is not what is in force.
func (a *app) warnWaiting(ctx context.Context, api control.API) error {
	status, err := api.Status(ctx)
	if err != nil || status.Waiting == nil {
		return err
	}
	w := status.Waiting
	if w.Plan == nil {
		fmt.Fprintf(a.stderr, "%s has problems and is not in force since %s:\n", filepath.Base(w.Path), w.Since.Local().Format(time.DateTime))
		for _, p := range w.Problems {
			fmt.Fprintf(a.stderr, "  %s\n", p)
		}
		return nil
	}
	fmt.Fprintf(a.stderr, "%s has changed and waits since %s (%s)\nlook and agree with: %s\n", filepath.Base(w.Path),
		w.Since.Local().Format(time.DateTime), w.Plan.Summary(), a.command("reload"))
	return nil
}
