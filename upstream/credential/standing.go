package credential

import (
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"sync/atomic"
)

// refusalsThatCount is how many refusals in a row mark a server. One may be a
// token that was revoked a moment ago, which the next operation replaces.
const refusalsThatCount = 2

// standings remember which servers refuse what we come with. What works leaves
// no trace here, so that a server that is content costs one atomic read a leg.
type standings struct {
	count atomic.Int64 // entries in by

	mu sync.Mutex
	by map[string]*refusals
}

// refusals are those of one server in a row.
type refusals struct {
	times int
	of    [sha256.Size]byte // the credential that was refused; zero for one that is renewed
}

// refuse counts one refusal of a credential whose digest is of.
func (s *standings) refuse(key string, of [sha256.Size]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.by[key]
	if r == nil {
		r = &refusals{}
		if s.by == nil {
			s.by = map[string]*refusals{}
		}
		s.by[key] = r
		s.count.Add(1)
	}
	if r.of != of {
		*r = refusals{of: of} // another credential begins anew
	}
	r.times++
}

// forgive forgets the refusals of a server.
func (s *standings) forgive(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[key] != nil {
		delete(s.by, key)
		s.count.Add(-1)
	}
}

// marked reports whether the server has refused the credential of that digest
// often enough.
func (s *standings) marked(key string, of [sha256.Size]byte) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.by[key]
	return r != nil && r.of == of && r.times >= refusalsThatCount
}

// standingKey names a server together with how we authenticate there.
func (a Auth) standingKey() string { return a.Identity() + "\n" + a.ServerURL }

// A verdict passes on what one server thinks of one session's credential.
type verdict struct {
	standings *standings
	auth      Auth
}

func (v verdict) accepted() {
	if v.standings != nil && v.standings.count.Load() > 0 {
		v.standings.forgive(v.auth.standingKey())
	}
}

func (v verdict) refused(of [sha256.Size]byte) {
	if v.standings != nil {
		v.standings.refuse(v.auth.standingKey(), of)
	}
}

// Accepted implements Rejecter.
func (s *static) Accepted() { s.verdict.accepted() }

// Rejected implements Rejecter. Nothing is kept of a credential that is
// resolved for each leg; that it was refused is for the operator.
func (s *static) Rejected(context.Context, int, string) {
	s.mu.Lock()
	sent := s.sent
	s.mu.Unlock()
	of := [sha256.Size]byte{}
	if !sent.IsZero() {
		of = fingerprint(sent)
	}
	s.verdict.refused(of)
}

// Accepted implements Rejecter.
func (s *shared) Accepted() { s.verdict.accepted() }

// Rejected implements Rejecter. A 401 says that the token is no good, so the
// next operation gets another; a 403 that it does not reach far enough, which
// another would not change; a login that asks for more might.
func (s *shared) Rejected(ctx context.Context, status int, challenge string) {
	s.verdict.refused([sha256.Size]byte{})
	if status != http.StatusUnauthorized {
		if s.widen != nil {
			s.widen(ctx, challenge)
		}
		return
	}
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if !last.IsZero() {
		s.cache.drop(ctx, s.key, last)
	}
}

// Accepted implements Rejecter.
func (d *delegated) Accepted() { d.verdict.accepted() }

// Rejected implements Rejecter. A 403 is about this caller's own rights and
// tells nothing about the next one's.
func (d *delegated) Rejected(_ context.Context, status int, _ string) {
	if status == http.StatusUnauthorized {
		d.verdict.refused([sha256.Size]byte{})
	}
}

var (
	_ Rejecter = (*static)(nil)
	_ Rejecter = (*shared)(nil)
	_ Rejecter = (*delegated)(nil)
)

// The states of a credential, for the operator.
const (
	// StateOK: it resolves, and nothing is known against it.
	StateOK = "ok"
	// StateExpired: its life is over, and what would renew it did not.
	StateExpired = "expired"
	// StateRefused: it does not resolve, or the server or the token endpoint
	// does not take it. The server is left alone, except for explicit requests,
	// until the credential is another one.
	StateRefused = "refused"
	// StateLoginNeeded: a person has to log in: gatehouse login <id>.
	StateLoginNeeded = "login needed"
)

// Marked reports whether a server has refused our credential as it is now, so
// that nothing but an explicit request should go there. It sends nothing.
func (b *Broker) Marked(ctx context.Context, a Auth) bool {
	if b.standings.count.Load() == 0 {
		return false
	}
	key, none := a.standingKey(), [sha256.Size]byte{}
	if b.standings.marked(key, none) {
		return true
	}
	ref := a.Credential
	if a.Mode == Delegated {
		ref = a.DiscoveryCredential
	}
	if ref.IsZero() {
		return false
	}
	secret, err := resolve(ctx, b.options.Secrets, ref)
	return err == nil && b.standings.marked(key, fingerprint(secret))
}

// State says how the credential of a server is, without sending anything and
// without waiting for a token that is being fetched.
func (b *Broker) State(ctx context.Context, a Auth) string {
	switch a.Mode {
	case OAuth:
		if state := b.loginState(ctx, a); state != StateOK {
			return state
		}
		return b.judged(ctx, a, b.tokens.state(a.loginKey()))
	case ClientCredentials:
		if _, err := resolve(ctx, b.options.Secrets, a.ClientSecret); err != nil {
			return StateRefused
		}
		return b.judged(ctx, a, b.tokens.state(a.Identity()))
	}
	// What is left is the operator's own, or of mode "delegated" the part that is
	// the same for all callers: the credential for import and test.
	for _, ref := range []Reference{a.Credential, a.DiscoveryCredential} {
		if ref.IsZero() {
			continue
		}
		if _, err := resolve(ctx, b.options.Secrets, ref); err != nil {
			return StateRefused
		}
	}
	return b.judged(ctx, a, StateOK)
}

// judged is the state of a credential, in which it is of no use when the server
// refuses it.
func (b *Broker) judged(ctx context.Context, a Auth, state string) string {
	if state == StateOK && b.Marked(ctx, a) {
		return StateRefused
	}
	return state
}

// fingerprint tells one credential from the next within this process.
func fingerprint(s Secret) [sha256.Size]byte {
	plain := s.Bytes()
	defer clear(plain)
	return sha256.Sum256(plain)
}
