package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// auditCommand reads the ledger's files themselves: what the record says does
// not depend on what a daemon would tell.
func (a *app) auditCommand() *cobra.Command {
	var lines int
	var follow bool
	tail := &cobra.Command{
		Use:   "tail",
		Short: "Print the last entries; -f goes on with new ones",
		Args:  nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.load(false)
			if err != nil {
				return err
			}
			if a.json && !follow {
				return a.entriesJSON(func(f func(raw []byte, e gate.Entry) error) error {
					return ledger.Tail(c.Context(), cfg.LedgerDir(), lines, false, f)
				})
			}
			return ledger.Tail(c.Context(), cfg.LedgerDir(), lines, follow, func(raw []byte, e gate.Entry) error {
				if a.json {
					a.printf("%s\n", raw)
					return nil
				}
				a.printEntry(e)
				return nil
			})
		},
	}
	tail.Flags().IntVarP(&lines, "lines", "n", 20, "how `many`")
	tail.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")

	show := &cobra.Command{
		Use:   "show N",
		Short: "Tell the story of one call, and show an entry in full",
		Long: `Tell the story of the call that an entry belongs to (the question, the
answer, the intent, each request that was sent, the outcome), and show the entry
in full. With --json, the entry with its story as a member.`,
		Args: names(1, 1, "the number of an entry"),
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil || number == 0 {
				return usagef("%q is not the number of an entry", args[0])
			}
			return a.showEntry(number)
		},
	}
	var known evidence
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Walk the chain; name the first bad entry and the unsettled calls",
		Long: `Walk the chain of hashes, name the first entry that does not fit, and list
the calls without an outcome. A chain alone shows that nobody edited a part of
it; whoever can write the files could make all of it anew. Two things show that
the past is still the same: checkpoints signed with [audit] signing_key, which
are checked with that key or the public keys given by --key, and a copy kept
elsewhere (gatehouse audit export), given by --against.`,
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error { return a.verifyLedger(c.Context(), known) },
	}
	verify.Flags().StringVar(&known.copy, "against", "", "an export made before, in `file`; every entry in it must still be here")
	verify.Flags().StringArrayVar(&known.keys, "key", nil, "a public key in `file` (PEM) that signed checkpoints; may be repeated")
	var from uint64
	export := &cobra.Command{
		Use:   "export",
		Short: "Print every entry as it is kept, one JSON object a line",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.load(false)
			if err != nil {
				return err
			}
			out := bufio.NewWriter(a.stdout)
			err = ledger.Read(cfg.LedgerDir(), from, func(raw []byte, _ gate.Entry) error {
				_, err := out.Write(append(raw[:len(raw):len(raw)], '\n'))
				return err
			})
			return errors.Join(err, out.Flush())
		},
	}
	export.Flags().Uint64Var(&from, "from", 1, "`number` of the first entry")
	return group("audit", "Read and verify the record", tail, show, verify, export)
}

// entriesJSON prints entries as an array, each as it is kept.
func (a *app) entriesJSON(read func(func(raw []byte, e gate.Entry) error) error) error {
	out := bufio.NewWriter(a.stdout)
	separator := "["
	err := read(func(raw []byte, _ gate.Entry) error {
		_, err := fmt.Fprintf(out, "%s\n%s", separator, raw)
		separator = ","
		return err
	})
	if separator == "[" {
		io.WriteString(out, "[")
	}
	io.WriteString(out, "\n]\n")
	return errors.Join(err, out.Flush())
}

// printEntry is one entry on one line, most of the time.
func (a *app) printEntry(e gate.Entry) {
	var words []string
	add := func(s string) {
		if s != "" {
			words = append(words, oneLine(s))
		}
	}
	add(string(e.Caller))
	switch {
	case e.Tool != "":
		add(string(e.Tool))
	case e.Server != "":
		add(string(e.Server))
	}
	add(string(e.Verdict))
	add(e.Reason)
	if e.Intent > 0 {
		add(fmt.Sprintf("of %d", e.Intent))
	}
	if e.Approval > 0 {
		add(fmt.Sprintf("approval %d", e.Approval))
	}
	if e.Count > 1 {
		add(fmt.Sprintf("%d times", e.Count))
	}
	a.printf("%6d  %s  %-13s %s\n", e.Number, e.Time.Local().Format("2006-01-02 15:04:05"), e.Kind,
		a.paint(verdictColour(e.Verdict), hang(strings.Join(words, " "), 43, 8)))
}

func verdictColour(v gate.Verdict) string {
	switch v {
	case "", gate.OK:
		return plain
	case gate.Refused, gate.Declined, gate.ToolError, gate.NotSent, gate.Cancelled:
		return yellow
	}
	return red
}

func entries(n uint64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
