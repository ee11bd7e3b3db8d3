package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write packaging/gatehouse.1")

const manFile = "../../packaging/gatehouse.1"

// The manual page is made of the commands, as help and completion are.
func TestManualPageIsCurrent(t *testing.T) {
	a := &app{version: "x", stdout: io.Discard, stderr: io.Discard, getenv: func(string) string { return "" }}
	want := manualPage(a.root())
	if *update {
		if err := os.WriteFile(manFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(manFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("packaging/gatehouse.1 is not what the commands say; write it with: go test ./federation/cli -run ManualPage -update")
	}
}

const manHead = `.\" Made from the commands; a test fails when this page is out of date.
.TH GATEHOUSE 1
.SH NAME
gatehouse \- %s
.SH SYNOPSIS
.B gatehouse
.I command
.RI [ arguments ]
.SH DESCRIPTION
Agents and IDE assistants connect to one endpoint and see one catalogue, collected
from MCP servers over HTTP. Every call passes a gate first: who is asking, is the
tool enabled, may its output travel to where this caller's model runs, has a person
agreed to exactly this call, and is it on record. Then a strict client sends it,
once.
.PP
The commands talk to the daemon while one runs, and open its state themselves when
none does.
`

const manTail = `.SH EXIT STATUS
0 when it is done, 1 when it is refused or failed, 2 for wrong usage. Results go to
standard output, errors to standard error.
.SH ENVIRONMENT
.TP
.B GATEHOUSE_CONFIG
The configuration file where no
.B \-\-config
is given and there is no gatehouse.toml in the current directory.
.SH FILES
.TP
.I /etc/gatehouse/gatehouse.toml
The configuration of the daemon that the package installs.
.TP
.I /usr/share/doc/gatehouse/config.example.toml
Every key, what it means, and what holds without it.
`

func manualPage(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, manHead, roff(root.Short))
	b.WriteString(".SH OPTIONS OF EVERY COMMAND\n")
	manualFlags(&b, root.PersistentFlags())
	b.WriteString(".SH COMMANDS\n")
	manualCommands(&b, root)
	b.WriteString(manTail)
	return b.String()
}

func manualCommands(b *strings.Builder, parent *cobra.Command) {
	for _, c := range parent.Commands() {
		switch {
		case !c.IsAvailableCommand() || c.Name() == "help":
			continue
		case c.Name() == "completion": // each shell's help says how it is set up
			fmt.Fprintf(b, ".SS %s SHELL\n%s.\n", roff(c.CommandPath()), roff(c.Short))
			continue
		case c.HasAvailableSubCommands():
			manualCommands(b, c)
			continue
		}
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", roff(strings.TrimSuffix(c.UseLine(), " [flags]")), roff(text))
		manualFlags(b, c.LocalNonPersistentFlags())
	}
}

func manualFlags(b *strings.Builder, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(name+" "+value)), roff(usage))
	})
}

// roff keeps text as it is: no hyphen becomes a dash, no line a request, and what
// is set in stays so.
func roff(text string) string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
		switch {
		case strings.TrimSpace(line) == "":
			out = append(out, ".PP")
			continue
		case strings.HasPrefix(line, "  "):
			out = append(out, ".br")
		case strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'"):
			line = `\&` + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
