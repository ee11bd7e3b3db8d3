package caller

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// ErrUnknown says that a token belongs to nobody we know. It tells no more,
// because whoever presents a wrong token is to learn no more.
var ErrUnknown = errors.New("the token belongs to no caller")

// ErrIssuer says that the issuer could not be asked, so that nothing is known
// about whoever comes from it.
var ErrIssuer = errors.New("the issuer cannot be asked")

const (
	// maxToken bounds what is looked at; signed tokens with many claims stay below.
	maxToken = 16 << 10
	// referenceLife is how long the digest of a resolved reference is used. A
	// rotated secret counts after that, and a request costs no file access.
	referenceLife = 2 * time.Second
	// resolveTimeout bounds one look-up of a reference.
	resolveTimeout = 2 * time.Second
)

// Options is what a Directory works with beside its callers.
type Options struct {
	OIDC     config.OIDC      // the zero value admits nobody
	Audience string           // whom tokens must be for when OIDC names no audience: our Resource
	Client   *http.Client     // asks the issuer; it must dial through the host gate and follow no redirects
	Now      func() time.Time // nil: time.Now
}

// A Directory knows all callers. It is safe for concurrent use and does not
// change; a new configuration makes a new Directory.
type Directory struct {
	entries []*entry
	named   map[gate.CallerName]*gate.Caller
	secrets credential.Secrets
	issuer  *issuer // nil: none
	now     func() time.Time
}

// An entry is one caller with a static token.
type entry struct {
	caller *gate.Caller
	digest gate.Digest // of the token; zero when there is a reference
	ref    credential.Reference

	mu       sync.Mutex // guards what follows: the digest that ref resolved to
	resolved gate.Digest
	at       time.Time
}

// New makes a Directory of the configured callers. It resolves nothing yet.
func New(callers []config.Caller, secrets credential.Secrets, o Options) (*Directory, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Directory{named: map[gate.CallerName]*gate.Caller{}, secrets: secrets, now: o.Now}
	for _, c := range callers {
		if c.Name == "" {
			return nil, errors.New("a caller has no name")
		}
		if d.named[c.Name] != nil {
			return nil, fmt.Errorf("caller %q: declared twice", c.Name)
		}
		known := c.Caller
		known.AuthenticatedBy = "token"
		d.named[c.Name] = &known
		d.entries = append(d.entries, &entry{caller: &known, digest: c.Token.Digest, ref: c.Token.Reference})
	}
	if o.OIDC.Enabled() {
		var err error
		if d.issuer, err = newIssuer(o, secrets); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Named returns the configured caller of that name, or nil.
func (d *Directory) Named(name gate.CallerName) *gate.Caller { return d.named[name] }

// Admit returns the caller that a subject of the issuer is, by the rules of this
// directory. The error is ErrUnknown.
func (d *Directory) Admit(s *Subject) (*gate.Caller, error) {
	if d.issuer == nil {
		return nil, ErrUnknown
	}
	return d.issuer.admit(s)
}

// Authenticate returns the caller that bearer belongs to. The error is
// ErrUnknown, or a *ScopeError when a good token lacks the scope we require. Every
// caller is compared, and each in constant time, so that the time taken tells
// neither how much of a token was right nor whose it nearly was.
func (d *Directory) Authenticate(ctx context.Context, bearer string) (*gate.Caller, error) {
	if bearer == "" || len(bearer) > maxToken {
		return nil, ErrUnknown
	}
	sum := sha256.Sum256([]byte(bearer))
	var found *gate.Caller
	for _, e := range d.entries {
		want := d.digest(ctx, e)
		if subtle.ConstantTimeCompare(sum[:], want[:]) == 1 && !want.IsZero() {
			found = e.caller
		}
	}
	if found == nil && d.issuer != nil && looksSigned(bearer) {
		return d.issuer.authenticate(ctx, bearer)
	}
	if found == nil {
		return nil, ErrUnknown
	}
	return found, nil
}

// digest returns the digest of e's token; zero, which nothing matches, when its
// reference does not resolve.
func (d *Directory) digest(ctx context.Context, e *entry) gate.Digest {
	if e.ref.IsZero() {
		return e.digest
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := d.now(); e.at.IsZero() || now.Sub(e.at) >= referenceLife {
		// Detached: one request that hangs up must not make the next fail.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
		defer cancel()
		e.resolved, e.at = d.resolve(ctx, e.ref), now
	}
	return e.resolved
}

func (d *Directory) resolve(ctx context.Context, ref credential.Reference) gate.Digest {
	secret, err := d.secrets.Resolve(ctx, ref)
	if err != nil || secret.IsZero() {
		return gate.Digest{}
	}
	b := secret.Bytes()
	defer clear(b)
	return gate.DigestOf(b)
}

// Reasons why a token that its issuer did sign is refused, as the record has
// them. The bearer learns none of them.
const (
	ReasonUnknown  = "unknown_token" // belongs to nobody, or cannot be told to be genuine
	ReasonIssuer   = "wrong_issuer"
	ReasonAudience = "wrong_audience" // meant for somebody else
	ReasonExpired  = "token_expired"  // or not valid yet
	ReasonNoRule   = "no_rule"        // genuine, and no [[oidc.rule]] fits
	ReasonScope    = "scope_missing"

	// Of sign-ins alone.
	ReasonState    = "wrong_state" // not the answer to what this browser asked, or too late
	ReasonDeclined = "issuer_declined"
	ReasonCode     = "code_refused"
	ReasonNonce    = "wrong_nonce" // a token of another sign-in
)

// A RefusedError is an ErrUnknown whose reason is known, for the record alone.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return ErrUnknown.Error() }

// Is makes it the one error that callers have to know.
func (e *RefusedError) Is(target error) bool { return target == ErrUnknown }

// ReasonOf is why Authenticate refused, in the words of the record.
func ReasonOf(err error) string {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Reason
	}
	if _, ok := errors.AsType[*ScopeError](err); ok {
		return ReasonScope
	}
	return ReasonUnknown
}

// A ScopeError says that a token is good but lacks the scope we require.
type ScopeError struct{ Scope string }

func (e *ScopeError) Error() string { return fmt.Sprintf("the token lacks the scope %q", e.Scope) }
