package cli

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/gate"
)

// completeTimeout bounds what a press of the tab key waits for.
const completeTimeout = 2 * time.Second

// A completion offers what an argument can be. Whatever goes wrong is silence:
// nobody asked for an error.
type completion = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective)

// completions has the shell complete names of tools, servers and callers.
func (a *app) completions(root *cobra.Command) {
	every := func(control.Tool) bool { return true }
	closed := func(t control.Tool) bool {
		return t.State == gate.Disabled.String() || t.State == gate.Changed.String()
	}
	open := func(t control.Tool) bool { return t.State == gate.Enabled.String() && !t.Own }
	changed := func(t control.Tool) bool { return t.State == gate.Changed.String() }
	for path, offer := range map[[2]string]completion{
		{"tools", "list"}:    once(a.completeTools(every, true)),
		{"tools", "show"}:    once(a.completeTools(every, false)),
		{"tools", "diff"}:    once(a.completeTools(changed, false)),
		{"tools", "enable"}:  a.completeTools(closed, true),
		{"tools", "disable"}: a.completeTools(open, true),
		{"call"}:             once(a.completeTools(every, false)),
		{"explain"}:          once(a.completeTools(every, false)),
		{"servers", "test"}:  once(a.completeServers),
		{"import"}:           a.completeServers,
		{"login"}:            once(a.completeServers),
		{"logout"}:           once(a.completeServers),
	} {
		words := path[:1]
		if path[1] != "" {
			words = path[:]
		}
		if c, _, err := root.Find(words); err == nil && c != root {
			c.ValidArgsFunction = offer
		}
	}
	for _, name := range []string{"call", "explain", "stdio"} {
		if c, _, err := root.Find([]string{name}); err == nil && c.Flags().Lookup("caller") != nil {
			_ = c.RegisterFlagCompletionFunc("caller", a.completeCallers) // fails only for a flag that is not there
		}
	}
	_ = root.MarkPersistentFlagFilename("config", "toml")
}

// once offers nothing after the first argument.
func once(offer completion) completion {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offer(c, args, begun)
	}
}

// quietly reads the configuration without a word about it.
func (a *app) quietly() *config.Config {
	path, err := a.file()
	if err != nil {
		return nil
	}
	cfg, _ := config.Load(path) // with problems there is nothing to offer
	return cfg
}

func (a *app) completeServers(_ *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if cfg := a.quietly(); cfg != nil {
		for i := range cfg.Servers {
			if s := &cfg.Servers[i]; !slices.Contains(args, string(s.ID)) {
				out = append(out, cobra.CompletionWithDesc(string(s.ID), oneLine(s.Name)))
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeCallers(*cobra.Command, []string, string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if cfg := a.quietly(); cfg != nil {
		for i := range cfg.Callers {
			out = append(out, string(cfg.Callers[i].Name))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeTools offers the tools that fit, and with groups their groups as well.
func (a *app) completeTools(fits func(control.Tool) bool, groups bool) completion {
	return func(c *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
		seen := map[string]bool{"": true}
		for _, t := range a.toolsQuietly(c.Context()) {
			if !fits(t) || slices.Contains(args, t.Name) || t.Name == "" {
				continue
			}
			if groups && !t.Own && !seen[t.Group] && !slices.Contains(args, t.Group) {
				seen[t.Group] = true
				out = append(out, cobra.CompletionWithDesc(t.Group, "all of "+t.Server))
			}
			out = append(out, cobra.CompletionWithDesc(t.Name, shorten(oneLine(t.Description), 60)))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// toolsQuietly asks the daemon, or a state that is there already.
func (a *app) toolsQuietly(ctx context.Context) []control.Tool {
	cfg := a.quietly()
	if cfg == nil {
		return nil
	}
	if _, err := os.Stat(cfg.StatePath()); err != nil {
		return nil // to complete a word must not make a state
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	api, done, err := a.connectTo(ctx, cfg)
	if err != nil {
		return nil
	}
	defer done()
	tools, err := api.Tools(ctx, "")
	if err != nil {
		return nil
	}
	return tools
}
