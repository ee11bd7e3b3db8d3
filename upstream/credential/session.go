package credential

import (
	"context"
	"fmt"
	"sync"

	"gatehouse/gate"
)

// Open begins the credential session of one operation. It refuses at once what
// cannot succeed; it resolves nothing and sends nothing yet. Errors are *Error.
func (b *Broker) Open(a Auth, p Purpose) (Session, error) {
	if p.kind == noPurpose {
		return nil, &Error{Reason: ReasonCallerWithout, Text: "a credential was asked for on nobody's behalf"}
	}
	v := verdict{&b.standings, a}
	switch a.Mode {
	case None, "":
		return &static{verdict: v}, nil
	case Bearer:
		return &static{secrets: b.options.Secrets, ref: a.Credential, name: "Authorization", prefix: "Bearer ", verdict: v}, nil
	case Header:
		return &static{secrets: b.options.Secrets, ref: a.Credential, name: a.Header, verdict: v}, nil
	case ClientCredentials:
		return &shared{cache: &b.tokens, key: a.Identity(), fetch: b.clientCredentials(a), verdict: v}, nil
	case OAuth:
		return &shared{cache: &b.tokens, key: a.loginKey(), fetch: b.refreshed(a), widen: b.widen(a), verdict: v}, nil
	case Delegated:
		return b.openDelegated(a, p)
	}
	return nil, &Error{Reason: ReasonUnresolved, Text: fmt.Sprintf("unknown auth mode %q", a.Mode)}
}

// static is the session of a credential that is the operator's own: nothing,
// a bearer token, a key in a header. It resolves for each leg, so that a secret
// rotated in the middle of an operation is the one sent.
type static struct {
	secrets Secrets
	ref     Reference
	name    string
	prefix  string
	verdict

	mu     sync.Mutex
	closed bool
	sent   Secret // what the last leg went with
}

func (s *static) Header(ctx context.Context) (name, value string, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return "", "", errClosed()
	}
	if s.name == "" {
		return "", "", nil
	}
	secret, err := resolve(ctx, s.secrets, s.ref)
	if err != nil {
		return "", "", err
	}
	s.mu.Lock()
	s.sent = secret
	s.mu.Unlock()
	return s.name, s.prefix + secret.Reveal(), nil
}

func (s *static) Legs() []gate.Leg { return nil }

func (s *static) Close() {
	s.mu.Lock()
	s.closed, s.sent = true, Secret{}
	s.mu.Unlock()
}

func errClosed() *Error {
	return &Error{Reason: ReasonClosed, Text: "the operation that this credential belongs to has ended"}
}

// resolve wraps Secrets so that every failure is an *Error and no value that a
// header cannot carry gets through, whoever implements Secrets.
func resolve(ctx context.Context, secrets Secrets, ref Reference) (Secret, error) {
	if ref.IsZero() || secrets == nil {
		return Secret{}, &Error{Reason: ReasonUnresolved, Text: "no credential is declared"}
	}
	secret, err := secrets.Resolve(ctx, ref)
	if err != nil {
		if e, ok := err.(*Error); ok {
			return Secret{}, e
		}
		return Secret{}, &Error{Reason: ReasonUnresolved, Text: ref.String() + ": does not resolve", Cause: err}
	}
	if wrong := unfit(secret.Bytes()); wrong != "" {
		return Secret{}, unresolved(ref, "%s", wrong)
	}
	return secret, nil
}
