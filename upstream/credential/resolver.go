package credential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxSecret bounds a secret. Nothing that fits a header is larger.
const maxSecret = 64 << 10

// A Keeper is where vault: references point.
type Keeper interface {
	// Reveal opens the secret of that name. Its errors are fit for operators.
	Reveal(ctx context.Context, name string) (Secret, error)
}

// A Resolver resolves references of all schemes, each time anew. The zero
// Resolver has no vault. It is safe for concurrent use once it is set up.
type Resolver struct {
	Vault     Keeper                      // nil: vault: references do not resolve
	LookupEnv func(string) (string, bool) // nil: os.LookupEnv
}

var _ Secrets = (*Resolver)(nil)

// Resolve implements Secrets. What does not resolve, is empty, or holds line
// ends or other control characters is an *Error that names the reference and
// never the value. One line end at the end of a file is not part of the secret.
func (r *Resolver) Resolve(ctx context.Context, ref Reference) (Secret, error) {
	value, err := r.look(ctx, ref)
	if err != nil {
		return Secret{}, err
	}
	if wrong := unfit(value); wrong != "" {
		return Secret{}, unresolved(ref, "%s", wrong)
	}
	return NewSecret(value), nil
}

// ResolveText is Resolve for a secret that may have several lines and is not
// sent anywhere, such as the identity that opens the vault.
func (r *Resolver) ResolveText(ctx context.Context, ref Reference) (Secret, error) {
	value, err := r.look(ctx, ref)
	if err != nil {
		return Secret{}, err
	}
	if len(value) == 0 || len(value) > maxSecret {
		return Secret{}, unresolved(ref, "is empty or larger than 64 KiB")
	}
	return NewSecret(value), nil
}

func unresolved(ref Reference, format string, args ...any) *Error {
	return &Error{Reason: ReasonUnresolved, Text: ref.String() + ": " + fmt.Sprintf(format, args...)}
}

func (r *Resolver) look(ctx context.Context, ref Reference) ([]byte, error) {
	switch ref.scheme {
	case Env:
		lookup := r.LookupEnv
		if lookup == nil {
			lookup = os.LookupEnv
		}
		value, set := lookup(ref.name)
		switch {
		case !set:
			return nil, unresolved(ref, "the variable %s is not set", ref.name)
		case value == "":
			return nil, unresolved(ref, "the variable %s is empty", ref.name)
		}
		return []byte(value), nil
	case File:
		return readSecretFile(ref)
	case Vault:
		if r.Vault == nil {
			return nil, unresolved(ref, "there is no vault; set [vault] identity")
		}
		s, err := r.Vault.Reveal(ctx, ref.name)
		if err != nil {
			return nil, &Error{Reason: ReasonUnresolved, Text: err.Error(), Cause: err}
		}
		return s.Bytes(), nil
	}
	return nil, &Error{Reason: ReasonUnresolved, Text: "no credential is declared"}
}

// readSecretFile reads a file that only its owner may touch. The mode is that
// of the open file, so that nobody can swap it in between.
func readSecretFile(ref Reference) ([]byte, error) {
	f, err := os.Open(ref.name)
	if err != nil {
		text := "cannot be opened"
		var path *fs.PathError
		if errors.As(err, &path) {
			text = path.Err.Error()
		}
		return nil, unresolved(ref, "%s", text)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, unresolved(ref, "cannot be examined")
	case !info.Mode().IsRegular():
		return nil, unresolved(ref, "is not a regular file")
	case info.Mode().Perm()&0o077 != 0:
		return nil, unresolved(ref, "has mode %#o, open to others; chmod 600 %s", info.Mode().Perm(), ref.name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return nil, unresolved(ref, "cannot be read")
	}
	if rest, ok := bytes.CutSuffix(b, []byte("\n")); ok {
		b = bytes.TrimSuffix(rest, []byte("\r"))
	}
	return b, nil
}

// unfit says why a value cannot be sent as a credential, "" when it can.
func unfit(value []byte) string {
	switch {
	case len(value) == 0:
		return "is empty"
	case len(value) > maxSecret:
		return "is larger than 64 KiB and no credential"
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return "holds a line end or another control character, which no header can carry"
		}
	}
	if value[0] == ' ' || value[len(value)-1] == ' ' || value[0] == '\t' || value[len(value)-1] == '\t' {
		return "begins or ends with a space; the other side would read another value"
	}
	return ""
}
