package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"gatehouse/federation/clientfile"
	"gatehouse/federation/config"
)

// maxClientFile bounds what is read of a client's file. Claude Code keeps much
// else in its own.
const maxClientFile = 64 << 20

func (a *app) importConfigCommand() *cobra.Command {
	var secret string
	c := &cobra.Command{
		Use:   "import-config FILE",
		Short: "Turn an MCP client's servers into TOML tables",
		Long: `Read the file in which an MCP client keeps its servers (Claude Desktop, Claude
Code, Cursor, VS Code, Windsurf) and print them as [[server]] tables. Nothing is
changed anywhere.

Servers over HTTP are taken; those that are started as processes and those of the
old HTTP+SSE transport are named with the reason. A literal token is not printed:
the table refers to the vault, and a comment has the command that moves the token
there. data_class is left to you: it has no default.`,
		Args: names(1, 1, "a client's configuration file, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error { return a.importConfig(args[0], secret) },
	}
	c.Flags().StringVar(&secret, "secret", "", "print the literal that belongs into the vault under this `name`, and nothing else")
	return c
}

func (a *app) importConfig(path, secret string) error {
	data, err := a.readClientFile(path)
	if err != nil {
		return err
	}
	f, err := clientfile.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	if secret != "" {
		value, ok := f.SecretNamed(secret)
		if !ok {
			return fmt.Errorf("%s: holds no literal that would be called %q", filepath.Base(path), secret)
		}
		a.printf("%s\n", value)
		return nil
	}
	if a.json {
		return a.printJSON(clientReport(f))
	}
	a.printSecretCommands(path, f)
	a.printf("%s", f.TOML())
	fmt.Fprintf(a.stderr, "%s taken, %d not; a server supplies nothing before its data_class is set\n", count(len(f.Servers), "server"), len(f.Left))
	return nil
}

func (a *app) readClientFile(path string) ([]byte, error) {
	in := a.stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxClientFile+1))
	if err == nil && len(data) > maxClientFile {
		err = fmt.Errorf("%s: is larger than %d MiB and no client's configuration", filepath.Base(path), maxClientFile>>20)
	}
	return data, err
}

// printSecretCommands prints, as comments, what moves each secret into the vault
// without showing it on a screen or in a shell's history. The tables refer to
// the vault, so there has to be one.
func (a *app) printSecretCommands(path string, f *clientfile.File) {
	var commands []string
	for _, s := range f.Servers {
		secret := s.Auth.Secret
		if secret.Name == "" {
			continue
		}
		command := a.command("secret set " + secret.Name)
		if _, literal := secret.Value(); literal && path != "-" {
			command = fmt.Sprintf("%s import-config %s --secret %s | %s", program(), shellQuote(path), secret.Name, command)
		}
		commands = append(commands, command)
	}
	if len(commands) == 0 {
		return
	}
	if !a.hasVault() {
		a.printf("[vault]\n# An age identity opens the vault; make one with: age-keygen\nidentity = \"env:GATEHOUSE_VAULT_IDENTITY\"\n\n")
	}
	a.printf("# Secrets, to be put into the vault once this is in the configuration:\n")
	for _, c := range commands {
		a.printf("#   %s\n", c)
	}
	a.printf("\n")
}

// hasVault reports whether the configuration that the tables are for, if there
// is one already, names an identity: a second [vault] would be an error.
func (a *app) hasVault() bool {
	path, err := a.file()
	if err != nil {
		return false
	}
	cfg, _ := config.Load(path)
	return cfg != nil && !cfg.Vault.Identity.IsZero()
}

type importedServer struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	URL       string   `json:"url"`
	Enabled   bool     `json:"enabled"`
	Header    string   `json:"header"` // "" with a bearer token or no credential
	Reference string   `json:"credential"`
	Secret    string   `json:"secret"` // to be set in the vault; "" for none
	Notes     []string `json:"notes"`
}

type importedLeft struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// clientReport is what --json prints: everything but values.
func clientReport(f *clientfile.File) any {
	servers, left := []importedServer{}, []importedLeft{}
	for _, s := range f.Servers {
		servers = append(servers, importedServer{s.ID, s.Name, s.URL, s.Enabled, s.Auth.Header, s.Auth.Reference, s.Auth.Secret.Name, list(s.Notes)})
	}
	for _, l := range f.Left {
		left = append(left, importedLeft(l))
	}
	return map[string]any{"servers": servers, "not_taken": left}
}
