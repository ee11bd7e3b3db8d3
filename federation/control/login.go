package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// Logins is how an operator logs in at servers of auth mode "oauth".
type Logins interface {
	// BeginLogin returns the url to open in a browser, which comes back to redirect.
	BeginLogin(ctx context.Context, server, redirect string) (Login, error)
	// FinishLogin takes the query of the url that the browser came back to.
	FinishLogin(ctx context.Context, handle string, answer url.Values) error
	// Logout forgets the login at a server and has it revoked.
	Logout(ctx context.Context, server string) error
}

// A Login is an authorization that waits for a person.
type Login struct {
	Handle string    `json:"handle"`
	URL    string    `json:"url"`
	Issuer string    `json:"issuer"`
	Until  time.Time `json:"until"`
}

// BeginLogin implements Logins.
func (l *Local) BeginLogin(ctx context.Context, server, redirect string) (Login, error) {
	if l.g.Config().Server(gate.ServerID(server)) == nil {
		return Login{}, noServer(server)
	}
	login, err := l.g.BeginLogin(ctx, gate.ServerID(server), redirect)
	return Login(login), err
}

// FinishLogin implements Logins.
func (l *Local) FinishLogin(ctx context.Context, handle string, answer url.Values) error {
	return l.g.FinishLogin(ctx, handle, answer)
}

// Logout implements Logins.
func (l *Local) Logout(ctx context.Context, server string) error {
	if l.g.Config().Server(gate.ServerID(server)) == nil {
		return noServer(server)
	}
	return l.g.Logout(ctx, gate.ServerID(server))
}

// RekeySecrets implements API.
func (l *Local) RekeySecrets(ctx context.Context, identity string) (int, error) {
	if l.g.Vault == nil {
		return 0, errNoVault
	}
	next, err := credential.ParseReference(identity)
	switch {
	case err != nil:
		return 0, fmt.Errorf("secret rekey: %w", err)
	case next.IsZero() || next.Scheme() == credential.Vault:
		return 0, errors.New("secret rekey: the new identity is a reference that begins with env: or file: and names one")
	}
	if err := l.record(ctx, &gate.Entry{Kind: gate.KindSecret, Detail: "rekey to " + next.String()}); err != nil {
		return 0, err
	}
	return l.g.Vault.Rekey(ctx, next)
}

// The arguments of these operations on the socket.
type (
	inLogin  struct{ Server, Redirect string }
	inAnswer struct {
		Handle string
		Answer url.Values
	}
	inIdentity struct{ Identity string }
)

// loginOperations are the part of operations that is about credentials.
func loginOperations(api API) map[string]operation {
	return map[string]operation{
		"begin-login": of(func(ctx context.Context, in inLogin) (any, error) {
			return api.BeginLogin(ctx, in.Server, in.Redirect)
		}),
		"finish-login": of(func(ctx context.Context, in inAnswer) (any, error) {
			return none{}, api.FinishLogin(ctx, in.Handle, in.Answer)
		}),
		"logout":        of(func(ctx context.Context, in inServer) (any, error) { return none{}, api.Logout(ctx, in.ID) }),
		"rekey-secrets": of(func(ctx context.Context, in inIdentity) (any, error) { return api.RekeySecrets(ctx, in.Identity) }),
	}
}

// BeginLogin implements Logins.
func (r *Remote) BeginLogin(ctx context.Context, server, redirect string) (out Login, err error) {
	return out, r.send(ctx, "begin-login", inLogin{server, redirect}, &out)
}

// FinishLogin implements Logins.
func (r *Remote) FinishLogin(ctx context.Context, handle string, answer url.Values) error {
	return r.send(ctx, "finish-login", inAnswer{handle, answer}, &none{})
}

// Logout implements Logins.
func (r *Remote) Logout(ctx context.Context, server string) error {
	return r.send(ctx, "logout", inServer{server}, &none{})
}

// RekeySecrets implements API.
func (r *Remote) RekeySecrets(ctx context.Context, identity string) (out int, err error) {
	return out, r.send(ctx, "rekey-secrets", inIdentity{identity}, &out)
}
