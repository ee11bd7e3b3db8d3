package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gatehouse/federation/probe"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

func (a *app) probeCommand() *cobra.Command {
	o := probe.Options{Version: a.version}
	var reference string
	c := &cobra.Command{
		Use:   "probe URL",
		Short: "Report where a server departs from the protocol; no tool is called",
		Long: "Shakes hands with a server in both eras of the protocol, lists its tools, sends\n" +
			"what it has to refuse, and reports point by point where it departs from the\n" +
			"protocol. It needs no configuration and never calls a tool. Exit code 1: there\n" +
			"is a departure.",
		Args: names(1, 1, "the url of an MCP endpoint"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			o.URL = args[0]
			if o.Credential, err = bearerFrom(reference); err != nil {
				return err
			}
			return a.probe(c.Context(), o)
		},
	}
	c.Flags().DurationVar(&o.Timeout, "timeout", probe.DefaultTimeout, "what one request may take")
	c.Flags().StringVar(&reference, "credential", "", "bearer token to send, by `reference`: env:NAME or file:PATH")
	c.Flags().StringVar(&o.TLS.CAFile, "ca-file", "", "PEM `file` of the private CA that signed the server's certificate")
	return c
}

// bearerFrom makes a credential of a reference; "" is none.
func bearerFrom(reference string) (wire.Credential, error) {
	if reference == "" {
		return nil, nil
	}
	ref, err := credential.ParseReference(reference)
	if err != nil {
		return nil, usagef("--credential: %s", err)
	}
	resolver := &credential.Resolver{}
	return func(ctx context.Context) (name, value string, err error) {
		secret, err := resolver.Resolve(ctx, ref)
		if err != nil {
			return "", "", err
		}
		return "Authorization", "Bearer " + secret.Reveal(), nil
	}, nil
}

func (a *app) probe(ctx context.Context, o probe.Options) error {
	if o.Timeout < 100*time.Millisecond || o.Timeout > 10*time.Minute {
		return usagef("--timeout %s: want 100ms to 10m", o.Timeout)
	}
	report, err := probe.Run(ctx, o)
	if err != nil && len(report.Points) == 0 {
		return probeError(err)
	}
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.printProbe(report)
	}
	if err != nil {
		return probeError(err)
	}
	if len(report.Departures()) > 0 || report.Unfinished != "" {
		return errSilent
	}
	return nil
}

func probeError(err error) error {
	if errors.Is(err, probe.ErrUnauthorized) {
		return fmt.Errorf("%w; name one with --credential env:NAME", err)
	}
	return err
}

func (a *app) printProbe(r *probe.Report) {
	about := strings.TrimSpace(r.Server + " " + r.Version)
	if about == "" {
		about = "a server that gave no name"
	}
	a.printf("%s\n", shorten(r.URL, screen))
	a.printf("%s, speaks %s, %s on %s\n", shorten(about, 30), orNothing(strings.Join(r.Eras, " and ")), count(r.Tools, "tool"), count(r.Pages, "page"))
	for _, p := range r.Departures() {
		a.printPoint("departs", red, p)
	}
	for _, p := range r.Remarks() {
		a.printPoint("remark", yellow, p)
	}
	if r.Unfinished != "" {
		a.printf("\n%s\n", wrap(r.Unfinished, 0))
	}
	a.printf("\n%s, %s, %s looked at\n", count(len(r.Departures()), "departure"), count(len(r.Remarks()), "remark"), count(len(r.Points), "point"))
}

func (a *app) printPoint(word, colour string, p probe.Point) {
	a.printf("\n%s  %s\n", a.paint(colour, pad(word, 7)), wrap(escape(p.Step), 9))
	a.printf("  rule   %s\n", wrap(p.Rule.Text+" ("+p.Rule.Source+")", 9))
	a.printf("  found  %s\n", wrap(escape(p.Found), 9))
	if p.Reply != "" {
		a.printf("  reply  %s\n", wrap(escape(p.Reply), 9))
	}
}

func orNothing(s string) string {
	if s == "" {
		return "neither era"
	}
	return s
}
