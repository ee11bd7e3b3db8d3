package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"gatehouse/federation/catalog"
	"gatehouse/federation/control"
	"gatehouse/gate"
)

func (a *app) importCommand() *cobra.Command {
	var all, dry bool
	c := &cobra.Command{
		Use:   "import ID... | --all",
		Short: "Ask servers what tools they have; nothing is enabled by it",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return usagef("import wants the ids of servers, or --all")
			}
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				return a.importServers(ctx, api, ids, all, dry)
			})
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every server that is switched on")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what an import would do, and do nothing")
	return c
}

func (a *app) importServers(ctx context.Context, api control.API, ids []string, all, dry bool) error {
	servers, err := api.Servers(ctx)
	if err != nil {
		return err
	}
	if all {
		for _, s := range servers {
			if s.Enabled {
				ids = append(ids, s.ID)
			}
		}
	}
	reports := []control.ImportReport{}
	failed, done := false, []string{}
	for result := range a.importEach(ctx, api, ids, dry) {
		switch {
		case result.err != nil:
			failed = true
			fmt.Fprintf(a.stderr, "gatehouse: %s\n", result.err)
		default:
			failed = failed || result.report.Refusal != ""
			reports = append(reports, result.report)
			if result.report.Refusal == "" {
				done = append(done, string(result.report.Server))
			}
			if !a.json {
				a.printReport(result.report)
			}
		}
	}
	if a.json {
		err = a.printJSON(reports)
	} else if !dry && len(done) > 0 {
		err = a.printEmptyMinute(ctx, api, done)
	}
	if err == nil && failed {
		err = errSilent
	}
	return err
}

type imported struct {
	report control.ImportReport
	err    error
}

// importsAtOnce bounds how many servers are asked at the same time.
const importsAtOnce = 8

// importEach imports the servers side by side and yields their reports in the
// order of ids, each as soon as those before it are there.
func (a *app) importEach(ctx context.Context, api control.API, ids []string, dry bool) func(func(imported) bool) {
	return func(yield func(imported) bool) {
		var running sync.WaitGroup
		defer running.Wait() // each import is bounded by its server's budget
		slots := make(chan struct{}, importsAtOnce)
		results := make([]chan imported, len(ids))
		for i, id := range ids {
			results[i] = make(chan imported, 1)
			running.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				reports, err := api.Import(ctx, []string{id}, false, dry)
				r := imported{err: err}
				if len(reports) > 0 {
					r.report = reports[0]
				}
				results[i] <- r
			})
		}
		for i, id := range ids {
			if isTerminal(a.stderr) {
				fmt.Fprintf(a.stderr, "%s: asking…", id)
			}
			result := <-results[i]
			if isTerminal(a.stderr) {
				fmt.Fprint(a.stderr, clearLine)
			}
			if !yield(result) {
				return
			}
		}
	}
}

// printReport prints one line for the server and one for each tool that was
// skipped, changed, vanished, or has something to know about.
func (a *app) printReport(r control.ImportReport) {
	dry := ""
	if r.DryRun {
		dry = " (dry run, nothing was changed)"
	}
	if r.Refusal != "" {
		fmt.Fprintf(a.stderr, "%s\n", wrap(escape(r.Summary()+dry), 2))
		return
	}
	a.printf("%s\n", wrap(escape(r.Summary()+dry), 2))
	for _, line := range r.Lines {
		if line.What == catalog.LineNew {
			continue
		}
		name := string(line.Name)
		if name == "" {
			name = `"` + line.Remote + `"` // made visible already
		}
		text := line.What + " " + name
		if line.Text != "" {
			text += ": " + line.Text
		}
		a.printf("  %s\n", hang(escape(text), 2, 4))
	}
}

// printEmptyMinute says what to do next after an import, which by itself opens
// nothing: a first look must not end in an empty list without a reason. Its
// example is a tool of the servers that were just imported, if they have one.
func (a *app) printEmptyMinute(ctx context.Context, api control.API, servers []string) error {
	tools, err := api.Tools(ctx, "")
	if err != nil {
		return err
	}
	total, enabled, example, other, changed := 0, 0, "", "", ""
	for _, t := range tools {
		if t.Own {
			continue
		}
		total++
		switch {
		case t.State == gate.Enabled.String():
			enabled++
		case changed == "" && t.State == gate.Changed.String():
			changed = t.Name
		case t.State != gate.Disabled.String():
		case example == "" && slices.Contains(servers, t.Server):
			example = t.Name
		case other == "":
			other = t.Name
		}
	}
	if total == 0 {
		return nil
	}
	text := fmt.Sprintf("%s imported, %d enabled", count(total, "tool"), enabled)
	switch {
	case changed != "":
		a.hint(text+"; look at what changed with:", a.command("tools diff "+changed))
	case example != "" || other != "":
		a.hint(text+"; enable with:", a.command("tools enable "+cmp.Or(example, other)))
	default:
		a.printf("%s\n", text)
	}
	return nil
}
