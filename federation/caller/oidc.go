package caller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"

	"gatehouse/federation/config"
	"gatehouse/gate"
)

const (
	// issuerTimeout bounds one request to the issuer: discovery or keys.
	issuerTimeout = 5 * time.Second
	// discoveryPause is how long a failed discovery is not tried again.
	discoveryPause = 5 * time.Second
	// keysLife is how long keys are used before they are fetched anew. A key that
	// the issuer withdrew must not count for ever.
	keysLife = 10 * time.Minute
	// maxSubject bounds a subject; OpenID Connect allows 255 characters.
	maxSubject = 255
)

// algorithms are those a token may be signed with: each needs a private key
// that only the issuer has.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// An issuer admits callers by tokens that it signed for us.
type issuer struct {
	settings config.OIDC
	audience string
	client   *http.Client
	now      func() time.Time

	mu       sync.Mutex // guards what follows
	verifier *oidc.IDTokenVerifier
	examiner *oidc.IDTokenVerifier // looks at the signature alone, to tell why verifier refuses
	made     time.Time             // when verifier was
	failed   time.Time             // of the last discovery that failed
}

// newIssuer asks the issuer nothing: a gateway must start without it.
func newIssuer(o Options) (*issuer, error) {
	if o.Client == nil {
		return nil, errors.New("[oidc]: no HTTP client to ask the issuer with")
	}
	audience := o.OIDC.Audience
	if audience == "" {
		audience = o.Audience
	}
	if audience == "" {
		return nil, errors.New("[oidc]: no audience; a token for anybody would be a token for us")
	}
	client := *o.Client
	client.Timeout = issuerTimeout
	client.Transport = &patient{next: client.Transport, now: o.Now}
	return &issuer{settings: o.OIDC, audience: audience, client: &client, now: o.Now}, nil
}

// looksSigned tells a signed token from a static one without trusting either.
func looksSigned(bearer string) bool {
	return strings.HasPrefix(bearer, "ey") && strings.Count(bearer, ".") == 2
}

// authenticate returns the caller that a token makes its bearer, by the first
// rule that fits. No rule, no entry.
func (i *issuer) authenticate(ctx context.Context, bearer string) (*gate.Caller, error) {
	verifier, examiner, err := i.ready(ctx)
	if err != nil {
		return nil, err
	}
	token, err := verifier.Verify(ctx, bearer)
	if err != nil {
		// The cause quotes the token's claims, so it goes no further.
		return nil, i.examine(ctx, examiner, bearer)
	}
	var claims map[string]any
	if token.Claims(&claims) != nil || !validSubject(token.Subject) {
		return nil, ErrUnknown
	}
	if want := i.settings.RequiredScope; want != "" && !slices.Contains(scopes(claims), want) {
		return nil, &ScopeError{want}
	}
	for _, rule := range i.settings.Rules {
		if holds(claims, rule.Claim, rule.Value) {
			c := rule.Grant
			c.Name = gate.CallerName(token.Issuer + "|" + token.Subject)
			c.AuthenticatedBy = "oidc"
			return &c, nil
		}
	}
	return nil, &RefusedError{ReasonNoRule}
}

// examine tells why a token that was refused was. It admits nobody: whatever it
// finds is an error.
func (i *issuer) examine(ctx context.Context, examiner *oidc.IDTokenVerifier, bearer string) error {
	token, err := examiner.Verify(ctx, bearer)
	switch {
	case err != nil:
		return ErrUnknown // not genuine, so nothing in it is worth a word
	case token.Issuer != i.settings.Issuer:
		return &RefusedError{ReasonIssuer}
	case !slices.Contains(token.Audience, i.audience):
		return &RefusedError{ReasonAudience}
	}
	return &RefusedError{ReasonExpired}
}

// ready returns the verifiers, which need the issuer's own description when the
// configuration does not say where its keys are.
func (i *issuer) ready(ctx context.Context) (verifier, examiner *oidc.IDTokenVerifier, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil && i.now().Sub(i.made) < keysLife {
		return i.verifier, i.examiner, nil
	}
	lenient := &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SkipIssuerCheck: true, SupportedSigningAlgs: algorithms, Now: i.now}
	settings := &oidc.Config{ClientID: i.audience, SupportedSigningAlgs: algorithms, Now: i.now}
	// Detached: the one request that discovers does it for all, and what it
	// leaves behind outlives it. The client bounds it.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), i.client)
	if i.settings.JWKSURL != "" {
		keys := oidc.NewRemoteKeySet(ctx, i.settings.JWKSURL)
		i.verifier, i.made = oidc.NewVerifier(i.settings.Issuer, keys, settings), i.now()
		i.examiner = oidc.NewVerifier(i.settings.Issuer, keys, lenient)
		return i.verifier, i.examiner, nil
	}
	if !i.failed.IsZero() && i.now().Sub(i.failed) < discoveryPause {
		return nil, nil, ErrUnknown
	}
	provider, err := oidc.NewProvider(ctx, i.settings.Issuer)
	if err != nil {
		i.failed = i.now()
		return nil, nil, fmt.Errorf("%w; the issuer %q does not describe itself: %v", ErrUnknown, i.settings.Issuer, err)
	}
	i.verifier, i.examiner, i.made = provider.Verifier(settings), provider.Verifier(lenient), i.now()
	return i.verifier, i.examiner, nil
}

// validSubject keeps out what could pass for something else in a record.
func validSubject(s string) bool {
	return s != "" && utf8.RuneCountInString(s) <= maxSubject && utf8.ValidString(s) &&
		strings.IndexFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == '|' }) < 0
}

// scopes reads the scopes of RFC 9068 ("scope", separated by spaces) and of
// issuers that write "scp", as a list or a string.
func scopes(claims map[string]any) []string {
	var out []string
	for _, name := range []string{"scope", "scp"} {
		switch v := claims[name].(type) {
		case string:
			out = append(out, strings.Fields(v)...)
		case []any:
			for _, one := range v {
				if s, ok := one.(string); ok {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// holds reports whether a claim is value, or is a list with value in it. A name
// with dots is first taken as it is and then as a path, since namespaced claims
// are named by urls.
func holds(claims map[string]any, name, value string) bool {
	claim, ok := claims[name]
	if !ok {
		claim, ok = walk(claims, strings.Split(name, "."))
	}
	switch v := claim.(type) {
	case string:
		return ok && v == value
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { s, isText := one.(string); return isText && s == value })
	}
	return false
}

func walk(claims map[string]any, path []string) (any, bool) {
	var at any = claims
	for _, key := range path {
		object, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		if at, ok = object[key]; !ok {
			return nil, false
		}
	}
	return at, true
}
