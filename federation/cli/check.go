package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Validate the configuration; every problem with its line",
		Args:  nothing,
		RunE:  func(c *cobra.Command, _ []string) error { return a.check(c.Context()) },
	}
}

// A finding is a problem in the words of --json.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Key     string `json:"key"`
	Warning bool   `json:"warning"`
	Text    string `json:"text"`
}

func (a *app) check(ctx context.Context) error {
	path, err := a.file()
	if err != nil {
		return err
	}
	cfg, problems := config.Load(path)
	if cfg != nil {
		problems = append(problems, a.checkWorld(ctx, cfg)...)
	}
	bad := len(problems.Errors())
	if a.json {
		findings := []finding{}
		for _, p := range problems {
			findings = append(findings, finding{p.File, p.Line, p.Key, p.Warning, p.Text})
		}
		if err := a.printJSON(findings); err != nil {
			return err
		}
		if bad > 0 {
			return errSilent
		}
		return nil
	}
	for _, p := range problems {
		fmt.Fprintln(a.stderr, p)
	}
	if bad > 0 {
		fmt.Fprintf(a.stderr, "%s: %s\n", filepath.Base(path), count(bad, "problem"))
		return errSilent
	}
	a.printf("%s: good: %s, %s\n", filepath.Base(path), count(len(cfg.Callers), "caller"), count(len(cfg.Servers), "server"))
	return nil
}

// checkWorld looks at what the file points to: secrets, certificate files, and
// with a running daemon the names that callers' hosts would cut.
func (a *app) checkWorld(ctx context.Context, cfg *config.Config) config.Problems {
	resolver := &credential.Resolver{Vault: vaultNames{func() ([]control.Secret, error) {
		if _, err := os.Stat(cfg.StatePath()); errors.Is(err, fs.ErrNotExist) {
			return nil, nil // looking makes no state
		}
		api, done, err := a.connectTo(ctx, cfg)
		if err != nil {
			return nil, err
		}
		defer done()
		return api.Secrets(ctx)
	}}}
	problems := append(cfg.CheckSecrets(ctx, resolver), cfg.CheckFiles()...)
	remote, err := control.Dial(ctx, cfg.SocketPath())
	if err != nil {
		return problems // without a daemon there is nothing to compare names with
	}
	defer remote.Close()
	tools, err := remote.Tools(ctx, "")
	if err != nil {
		return problems
	}
	var names []gate.LocalName
	for _, t := range tools {
		if t.Name != "" && !t.Own {
			names = append(names, gate.LocalName(t.Name))
		}
	}
	for _, text := range cfg.NameWarnings(names) {
		problems = append(problems, config.Problem{File: cfg.Path, Warning: true, Text: text})
	}
	return problems
}

// vaultNames answers whether the vault has a secret, without opening any.
type vaultNames struct {
	list func() ([]control.Secret, error)
}

// Reveal implements credential.Keeper; the value is never the secret's.
func (v vaultNames) Reveal(_ context.Context, name string) (credential.Secret, error) {
	secrets, err := v.list()
	if err != nil {
		return credential.Secret{}, err
	}
	for _, s := range secrets {
		if s.Name == name {
			return credential.SecretString("present"), nil
		}
	}
	return credential.Secret{}, &credential.Error{Reason: credential.ReasonUnresolved,
		Text: fmt.Sprintf("the vault has no secret %q; set it with: gatehouse secret set %s", name, name)}
}
