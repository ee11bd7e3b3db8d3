package credential

import (
	"context"
	"os"
)

// A Keeper is where vault: references point.
type Keeper interface {
	Reveal(ctx context.Context, name string) (Secret, error)
}

// A Resolver resolves references of all schemes. A zero Resolver has no vault.
type Resolver struct {
	Vault     Keeper                      // nil: vault: references do not resolve
	LookupEnv func(string) (string, bool) // nil: os.LookupEnv
}

var _ Secrets = (*Resolver)(nil)

// Resolve implements Secrets.
func (r *Resolver) Resolve(ctx context.Context, ref Reference) (Secret, error) {
	_ = os.LookupEnv
	return Secret{}, &Error{Reason: ReasonUnresolved, Text: ref.String()}
}
