package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gatehouse/federation/caller"
	"gatehouse/federation/config"
	"gatehouse/federation/demo"
)

func (a *app) initCommand() *cobra.Command {
	var dir, name string
	c := &cobra.Command{
		Use:   "init",
		Short: "Write gatehouse.toml with one caller and the demo server",
		Args:  nothing,
		RunE: func(*cobra.Command, []string) error {
			return a.writeConfig(dir, name)
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "`directory` to write to")
	c.Flags().StringVar(&name, "caller", "me", "`name` of the caller")
	return c
}

func (a *app) writeConfig(dir, name string) error {
	path := filepath.Join(dir, defaultConfig)
	token, digest := caller.NewToken()
	text := config.Template(name, "sha256:"+digest.String(), "http://"+demo.Address+demo.Path)
	if _, problems := config.Parse(path, []byte(text)); len(problems.Errors()) > 0 {
		return usagef("--caller %q: %s", name, problems.Errors()[0].Text)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// Never over an existing file: it holds what cannot be made again.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: exists already and was left alone; a new token: %s token", path, program())
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if dir != "." {
		a.configPath = path
	}
	if a.json {
		return a.printJSON(map[string]string{"config": path, "caller": name, "token": token})
	}
	a.printf("wrote %s\n\n", path)
	a.printf("the token of caller %q, shown this once:\n  %s\n\n", name, token)
	a.printf("next, the demo server and the gateway:\n  %s demo-upstream & %s\n", program(), a.command("serve"))
	return nil
}
