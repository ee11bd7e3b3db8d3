package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gatehouse/upstream/credential"
)

// use is one place that names a secret.
type use struct {
	where string // `server "crm": auth: credential`
	key   string
	line  int
	ref   credential.Reference
	text  bool // may have several lines
}

// A Resolver resolves references. *credential.Resolver is one.
type Resolver interface {
	credential.Secrets
	ResolveText(context.Context, credential.Reference) (credential.Secret, error)
}

// CheckSecrets tries every reference of the file and says which do not resolve,
// without showing what any of them holds. It is for `gatehouse check` and
// `doctor`: loading never resolves anything, since a secret is read when it is
// used.
func (c *Config) CheckSecrets(ctx context.Context, secrets Resolver) Problems {
	var problems Problems
	for _, u := range c.uses {
		resolve := secrets.Resolve
		if u.text {
			resolve = secrets.ResolveText
		}
		if _, err := resolve(ctx, u.ref); err != nil {
			problems = append(problems, Problem{File: c.Path, Line: u.line, Key: u.key, Text: u.where + ": " + err.Error()})
		}
	}
	return problems
}

// References lists every reference of the file, in the order of the file and
// as often as it is used.
func (c *Config) References() []credential.Reference {
	refs := make([]credential.Reference, len(c.uses))
	for i, u := range c.uses {
		refs[i] = u.ref
	}
	return refs
}

// CheckFiles says which certificate files the settings name and this process
// cannot read.
func (c *Config) CheckFiles() Problems {
	var problems Problems
	check := func(line int, key, where, path string) {
		if path == "" {
			return
		}
		f, err := os.Open(path)
		if err == nil {
			f.Close()
			return
		}
		text := "cannot be read"
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			text = pathError.Err.Error()
		}
		problems = append(problems, Problem{File: c.Path, Line: line, Key: key, Text: fmt.Sprintf("%s: %s: %s", where, path, text)})
	}
	check(c.Listen.line, "listen.tls.cert", "listen: tls: cert", c.Listen.CertFile)
	check(c.Listen.line, "listen.tls.key", "listen: tls: key", c.Listen.KeyFile)
	for _, s := range c.Servers {
		where := fmt.Sprintf("server %q: ", s.ID)
		check(s.Line, "server.ca_file", where+"ca_file", s.CAFile)
		check(s.Line, "server.client_cert", where+"client_cert", s.ClientCert)
		check(s.Line, "server.client_key", where+"client_key", s.ClientKey)
	}
	return problems
}
