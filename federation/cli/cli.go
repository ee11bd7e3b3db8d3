package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// An app is one run of the command.
type app struct {
	version        string
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	terminal       func() (terminal, error) // the person at the keyboard, if there is one

	configPath string // --config
	json       bool   // --json
}

// A usageError says that the command was called wrongly.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errSilent ends a command that failed and has said why already.
var errSilent = errors.New("failed")

// Run runs the command that args (without the program's name) ask for and
// returns its exit code. It stops early when ctx ends.
//
// Version is what the linker knows, "" when it knows nothing.
func Run(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	a := &app{version: known(version), stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv, terminal: openTerminal}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errSilent):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "gatehouse: %s\n", err)
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "gatehouse: interrupted")
		return exitFailed
	}
	fmt.Fprintf(stderr, "gatehouse: %s\n", err)
	return exitFailed
}

func (a *app) root() *cobra.Command {
	root := group("gatehouse", "One MCP server in front of many, with a gate between",
		a.initCommand(), a.checkCommand(), a.serveCommand(), a.demoUpstreamCommand(), a.stdioCommand(),
		a.serversCommand(), a.importCommand(), a.toolsCommand(), a.callCommand(), a.explainCommand(),
		a.approvalsCommand(), a.auditCommand(), a.secretCommand(), a.loginCommand(), a.logoutCommand(), a.tokenCommand(),
		a.planCommand(), a.reloadCommand(), a.importConfigCommand(), a.probeCommand(), a.doctorCommand(), a.debugCommand(), a.versionCommand())
	root.SilenceUsage, root.SilenceErrors = true, true
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "configuration `file` (default gatehouse.toml here, else $GATEHOUSE_CONFIG)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, for scripts")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%s; see: %s --help", err, c.CommandPath())
	})
	root.InitDefaultCompletionCmd()
	a.completions(root)
	return root
}

// group makes a command that only holds others. Cobra reports an unknown one
// as plain text; here it is wrong usage like any other.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		text := fmt.Sprintf("unknown command %q", args[0])
		c.SuggestionsMinimumDistance = 2
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("; did you mean %q?", near[0])
		}
		return usagef("%s see: %s --help", strings.TrimSuffix(text, ";")+";", c.CommandPath())
	}
	c.AddCommand(children...)
	return c
}

// names makes an argument check: between least and most of what.
func names(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s wants %s; see: %s --help", c.CommandPath(), what, c.CommandPath())
		case most >= 0 && len(args) > most:
			return usagef("%s: unexpected %q; see: %s --help", c.CommandPath(), args[most], c.CommandPath())
		}
		return nil
	}
}

// nothing refuses every argument.
func nothing(c *cobra.Command, args []string) error { return names(0, 0, "nothing")(c, args) }

// program is how to call this program again from where it was called.
func program() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		return os.Args[0]
	}
	return "gatehouse"
}

// command is a line that can be pasted: this program, with the configuration
// that is in use, and then the arguments.
func (a *app) command(args string) string {
	line := program()
	if a.configPath != "" {
		line += " --config " + shellQuote(a.configPath)
	}
	return line + " " + args
}

func shellQuote(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,", r)
	})
	if s != "" && plain < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
