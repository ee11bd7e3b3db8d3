package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"gatehouse/federation/control"
	"gatehouse/upstream/credential"
)

// pasteRedirect is where the browser ends when nobody listens there. The person
// copies the address it shows.
const pasteRedirect = "http://127.0.0.1:8621" + credential.CallbackPath

// maxPaste bounds the url that a person pastes.
const maxPaste = 16 << 10

func (a *app) loginCommand() *cobra.Command {
	var paste bool
	c := &cobra.Command{
		Use:   "login ID",
		Short: "Log in at a server whose auth mode is oauth, in a browser",
		Long: "Log in at a server whose auth mode is \"oauth\".\n\n" +
			"Prints a url to open in any browser on this machine, and waits for the browser to\n" +
			"come back. With --paste the browser may be on another machine: it ends on a page\n" +
			"that does not load, whose address is pasted here.",
		Args: names(1, 1, "the id of a server"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				if paste {
					return a.loginByPaste(ctx, api, args[0])
				}
				return a.loginHere(ctx, api, args[0])
			})
		},
	}
	c.Flags().BoolVar(&paste, "paste", false, "paste the address that the browser ended on, instead of waiting for it here")
	return c
}

func (a *app) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "logout ID",
		Short: "Forget the login at a server and have it revoked",
		Args:  names(1, 1, "the id of a server"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				if err := api.Logout(ctx, args[0]); err != nil {
					return err
				}
				a.printf("logged out at %s\n", args[0])
				return nil
			})
		},
	}
}

// loginHere waits for the browser on a loopback port.
func (a *app) loginHere(ctx context.Context, api control.API, id string) (err error) {
	receiver, err := credential.Receive()
	if err != nil {
		return fmt.Errorf("login at %q: cannot listen for the browser: %w; use --paste", id, err)
	}
	defer func() { err = errors.Join(err, receiver.Close()) }()
	login, err := api.BeginLogin(ctx, id, receiver.Redirect())
	if err != nil {
		return err
	}
	a.askToOpen(id, login)
	a.printf("waiting for the browser; Ctrl-C gives up\n")
	wait, cancel := context.WithDeadline(ctx, login.Until)
	defer cancel()
	answer, err := receiver.Wait(wait, login.URL)
	if err != nil {
		return err
	}
	return a.finishLogin(ctx, api, id, login, answer)
}

// loginByPaste takes the address from the person.
func (a *app) loginByPaste(ctx context.Context, api control.API, id string) error {
	login, err := api.BeginLogin(ctx, id, pasteRedirect)
	if err != nil {
		return err
	}
	a.askToOpen(id, login)
	a.printf("then the browser ends on a page that does not load; paste its address here:\n")
	line, err := bufio.NewReaderSize(a.stdin, maxPaste).ReadSlice('\n')
	if err != nil && len(line) == 0 || errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("login at %q: no address came in; nothing has changed", id)
	}
	answer, err := credential.ParseCallback(strings.TrimSpace(string(line)))
	if err != nil {
		return err
	}
	return a.finishLogin(ctx, api, id, login, answer)
}

func (a *app) askToOpen(id string, login control.Login) {
	a.printf("to log in at %s, open this in a browser; %s will ask you to agree:\n\n%s\n\n", id, login.Issuer, login.URL)
}

func (a *app) finishLogin(ctx context.Context, api control.API, id string, login control.Login, answer url.Values) error {
	if err := api.FinishLogin(ctx, login.Handle, answer); err != nil {
		return err
	}
	a.printf("logged in at %s\nnext:\n  %s\n", id, a.command("import "+id))
	return nil
}

func (a *app) rekeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rekey REFERENCE",
		Short: "Seal every secret for another identity, named by env:NAME or file:PATH",
		Args:  names(1, 1, "a reference to the new identity, such as file:/etc/gatehouse/age.txt"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c.Context(), func(ctx context.Context, api control.API) error {
				n, err := api.RekeySecrets(ctx, args[0])
				if err != nil {
					return err
				}
				a.printf("%s sealed for the new identity\nbefore the next start, set in the configuration:\n  [vault]\n  identity = %q\n", count(n, "secret"), args[0])
				return nil
			})
		},
	}
}
