package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/console"
	"gatehouse/federation/control"
	"gatehouse/federation/demo"
	"gatehouse/federation/state"
	"gatehouse/federation/trace"
	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
)

// drainTimeout bounds the end of a daemon beyond what its servers' budgets allow.
const drainTimeout = 30 * time.Second

func (a *app) serveCommand() *cobra.Command {
	var demonstrate, watch, debug bool
	var format string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve callers; --demo brings its own upstream and state",
		Args:  nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			lines := &lineWriter{out: a.stderr}
			defer lines.flush()
			logger, err := a.logger(lines, debug, format)
			if err != nil {
				return err
			}
			a.stderr = lines // what is said beside the log keeps its place
			a.tune()
			if demonstrate && watch {
				return usagef("serve --demo has no file to watch; leave --watch out")
			}
			if demonstrate {
				return a.serveDemo(c.Context(), logger)
			}
			cfg, err := a.load(true)
			if err != nil {
				return err
			}
			return a.serve(c.Context(), cfg, logger, watch, a.announce)
		},
	}
	c.Flags().BoolVar(&demonstrate, "demo", false, "scratch state and a built-in upstream, imported and enabled")
	c.Flags().BoolVar(&watch, "watch", false, "a changed file comes into force by itself when it opens nothing")
	c.Flags().BoolVar(&debug, "debug", false, "log more")
	c.Flags().StringVar(&format, "log", "", "log as `text` or json (default text on a terminal, json otherwise)")
	return c
}

// logger writes text for people and JSON for whatever collects lines.
func (a *app) logger(out io.Writer, debug bool, format string) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if debug {
		options.Level = slog.LevelDebug
	}
	switch {
	case format == "text" || format == "" && isTerminal(a.stderr):
		return slog.New(slog.NewTextHandler(out, options)), nil
	case format == "json" || format == "":
		return slog.New(slog.NewJSONHandler(out, options)), nil
	}
	return nil, usagef("--log %q: want text or json", format)
}

// serve runs the daemon until ctx ends. With watch a changed file may come into
// force by itself. Ready is told when callers can come.
func (a *app) serve(ctx context.Context, cfg *config.Config, logger *slog.Logger, watch bool, ready func(*federation.Gateway) error) (err error) {
	tracer := trace.FromEnvironment(a.version, logger)
	defer tracer.Close(context.WithoutCancel(ctx)) // has a bound of its own
	g, err := federation.Open(ctx, cfg, federation.Options{Version: a.version, Logger: logger, Tracer: tracer})
	if inUse, ok := errors.AsType[*state.InUseError](err); ok {
		return fmt.Errorf("%w; one gateway serves one state, so stop that process or set another [state] path", inUse)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.closeWithin(ctx, g.Close)) }()
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	defer a.reloads(ctx, g, watch, gone)()
	listener, err := net.Listen("tcp", cfg.Listen.Address)
	if err != nil {
		return fmt.Errorf("[listen] address %q: %w; stop what listens there, or set another address", cfg.Listen.Address, err)
	}
	socket, err := control.Serve(g, cfg.SocketPath(), logger)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, a.closeWithin(ctx, socket.Close)) }()
	g.Mount(console.Root, console.New(g))
	if err := ready(g); err != nil {
		return errors.Join(err, listener.Close())
	}
	stopping, stop := context.WithCancel(ctx)
	defer giveBack(stopping, g, debug.FreeOSMemory)()
	defer a.supervised(logger).watch(stopping, g, g.DrainTime()+drainTimeout)()
	defer stop()
	// Until here a signal has nothing to drain.
	if err := g.Serve(ctx, listener); err != nil {
		return err
	}
	fmt.Fprintln(a.stderr, "gatehouse: stopped")
	return nil
}

// closeWithin gives what is closed its own time: ctx is over by then.
func (a *app) closeWithin(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	return f(ctx)
}

// announce says where callers reach us and what to do next.
func (a *app) announce(g *federation.Gateway) error {
	api := control.NewLocal(g, true)
	status, err := api.Status(context.Background())
	if err != nil {
		return err
	}
	a.printf("serving %s\n", status.URL)
	a.printf("pages for operators: %s%s\n", g.PublicURL(), console.Root)
	if status.Tools > 0 {
		a.printf("%s, %d enabled\n", count(status.Tools, "tool"), status.Enabled)
	}
	a.printf("next, in another terminal:\n  %s\n", a.nextStep(g))
	return nil
}

// nextStep is the one command that brings a gateway on from where it is.
func (a *app) nextStep(g *federation.Gateway) string {
	var off, on string
	for t := range g.Catalog.Snapshot().Tools() {
		switch {
		case t.Own:
		case t.Availability == gate.Enabled && on == "":
			on = string(t.Name)
		case t.Availability == gate.Disabled && off == "":
			off = string(t.Name)
		}
	}
	switch {
	case on != "":
		return a.command("tools show " + on)
	case off != "":
		return a.command("tools enable " + off)
	case len(g.Config().Servers) > 0:
		return a.command("import --all")
	}
	return a.command("check") + "    # and add a [[server]]"
}

func (a *app) demoUpstreamCommand() *cobra.Command {
	var address, hostile string
	var on []string
	c := &cobra.Command{
		Use:   "demo-upstream",
		Short: "Run the demo upstream alone, on loopback, in both eras",
		Long: "Runs the demo upstream alone, on loopback, in both eras. With --hostile it breaks one\n" +
			"rule of the protocol, for seeing what a client makes of it:\n\n" + hostileHelp(),
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := demo.Start(address, a.version, hostile, on...)
			if err != nil {
				return err
			}
			a.printf("demo upstream at %s\n", s.URL)
			<-c.Context().Done()
			return a.closeWithin(c.Context(), func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, time.Second) // a demo has nothing to lose
				defer cancel()
				return s.Close(ctx)
			})
		},
	}
	c.Flags().StringVar(&address, "listen", demo.Address, "loopback `address`")
	c.Flags().StringVar(&hostile, "hostile", "", "misbehave in one `kind` of way, see above")
	c.Flags().StringSliceVar(&on, "hostile-on", nil, "with --hostile, in answer to this `method` only, for example tools/call")
	return c
}

func hostileHelp() string {
	var help strings.Builder
	for _, kind := range upstreamtest.HostileKinds() {
		fmt.Fprintf(&help, "  %-20s %s\n", kind, upstreamtest.HostileSummary(kind))
	}
	return help.String()
}
