package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gatehouse/federation/control"
)

// maxSecret bounds a secret; a private key fits.
const maxSecret = 64 << 10

func (a *app) secretCommand() *cobra.Command {
	set := &cobra.Command{
		Use:   "set NAME",
		Short: "Put a secret into the vault, from standard input or a prompt",
		Args:  names(1, 1, "a name; the value comes from standard input or a prompt, never from the command line"),
		RunE: func(c *cobra.Command, args []string) error {
			value, err := a.readSecret(args[0])
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				if err := api.SetSecret(ctx, args[0], value); err != nil {
					return err
				}
				a.printf("secret %q is set; refer to it as \"vault:%s\"\n", args[0], args[0])
				return nil
			})
		},
	}
	listing := &cobra.Command{
		Use:   "list",
		Short: "List the names of secrets, who set them and when",
		Args:  nothing,
		RunE:  func(c *cobra.Command, _ []string) error { return a.with(c.Context(), a.listSecrets) },
	}
	remove := &cobra.Command{
		Use:   "rm NAME",
		Short: "Remove a secret",
		Args:  names(1, 1, "the name of a secret"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				return api.RemoveSecret(ctx, args[0])
			})
		},
	}
	return orDefault(group("secret", "Keep secrets in the vault", set, listing, remove, a.rekeyCommand()), listing)
}

// readSecret takes the value from a prompt that does not show it, or from
// standard input up to a last line feed.
func (a *app) readSecret(name string) ([]byte, error) {
	if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintf(a.stderr, "value of %q (not shown): ", name)
		value, err := term.ReadPassword(int(f.Fd()))
		fmt.Fprintln(a.stderr)
		if err == nil && len(value) == 0 {
			err = fmt.Errorf("secret %q: an empty value is no secret; nothing was set", name)
		}
		return value, err
	}
	value, err := io.ReadAll(io.LimitReader(a.stdin, maxSecret+1))
	if err != nil {
		return nil, err
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	switch {
	case len(value) == 0:
		return nil, fmt.Errorf("secret %q: standard input is empty; nothing was set", name)
	case len(value) > maxSecret:
		return nil, fmt.Errorf("secret %q: more than %d bytes; nothing was set", name, maxSecret)
	}
	return value, nil
}

func (a *app) listSecrets(ctx context.Context, api control.API) error {
	secrets, err := api.Secrets(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list(secrets))
	}
	var rows [][]cell
	for _, s := range secrets {
		rows = append(rows, []cell{{text: s.Name}, {text: s.By}, {text: ago(&s.At)}})
	}
	a.table([]string{"NAME", "SET BY", "SET"}, rows)
	return nil
}
