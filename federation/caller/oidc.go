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
	"gatehouse/upstream/credential"
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
	secrets  credential.Secrets
	client   *http.Client // for documents, which it keeps for a while
	direct   *http.Client // for the token endpoint, which is asked anew each time
	now      func() time.Time

	mu     sync.Mutex // guards what follows
	trust  *trust
	failed time.Time // of the last discovery that failed
}

// A trust is the issuer's keys at one time, and what is signed under them.
type trust struct {
	callers  *oidc.IDTokenVerifier // access tokens, for our endpoint
	people   *oidc.IDTokenVerifier // ID tokens, for the console; nil when it has no client
	examiner *oidc.IDTokenVerifier // looks at the signature alone, to tell why the others refuse
	made     time.Time
}

// A Subject is somebody the issuer vouched for, with what it said about them.
type Subject struct {
	issuer, id string
	claims     map[string]any
}

// newIssuer asks the issuer nothing: a gateway must start without it.
func newIssuer(o Options, secrets credential.Secrets) (*issuer, error) {
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
	client, direct := *o.Client, *o.Client
	client.Timeout, direct.Timeout = issuerTimeout, issuerTimeout
	client.Transport = &patient{next: client.Transport, now: o.Now}
	return &issuer{settings: o.OIDC, audience: audience, secrets: secrets, client: &client, direct: &direct, now: o.Now}, nil
}

// looksSigned tells a signed token from a static one without trusting either.
func looksSigned(bearer string) bool {
	return strings.HasPrefix(bearer, "ey") && strings.Count(bearer, ".") == 2
}

// authenticate returns the caller that an access token makes its bearer.
func (i *issuer) authenticate(ctx context.Context, bearer string) (*gate.Caller, error) {
	trust, err := i.ready(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w; %w", ErrUnknown, err)
	}
	token, err := trust.callers.Verify(ctx, bearer)
	if err != nil {
		// The cause quotes the token's claims, so it goes no further.
		return nil, i.examine(ctx, trust.examiner, bearer, i.audience)
	}
	subject, err := subjectOf(token)
	if err != nil {
		return nil, err
	}
	if want := i.settings.RequiredScope; want != "" && !slices.Contains(scopes(subject.claims), want) {
		return nil, &ScopeError{want}
	}
	return i.admit(subject)
}

// admit returns the caller that a subject is, by the first rule that fits. No
// rule, no entry.
func (i *issuer) admit(s *Subject) (*gate.Caller, error) {
	if s.issuer != i.settings.Issuer {
		return nil, &RefusedError{ReasonIssuer}
	}
	for _, rule := range i.settings.Rules {
		if holds(s.claims, rule.Claim, rule.Value) {
			c := rule.Grant
			c.Name = gate.CallerName(s.issuer + "|" + s.id)
			c.AuthenticatedBy = "oidc"
			return &c, nil
		}
	}
	return nil, &RefusedError{ReasonNoRule}
}

// subjectOf is whom a verified token is about.
func subjectOf(token *oidc.IDToken) (*Subject, error) {
	s := &Subject{issuer: token.Issuer, id: token.Subject}
	if token.Claims(&s.claims) != nil || !validSubject(s.id) {
		return nil, ErrUnknown
	}
	return s, nil
}

// examine tells why a token that was refused was. It admits nobody: whatever it
// finds is an error.
func (i *issuer) examine(ctx context.Context, examiner *oidc.IDTokenVerifier, raw, audience string) error {
	token, err := examiner.Verify(ctx, raw)
	switch {
	case err != nil:
		return ErrUnknown // not genuine, so nothing in it is worth a word
	case token.Issuer != i.settings.Issuer:
		return &RefusedError{ReasonIssuer}
	case !slices.Contains(token.Audience, audience):
		return &RefusedError{ReasonAudience}
	}
	return &RefusedError{ReasonExpired}
}

// ready returns the keys, for which the issuer's own description is needed when
// the configuration does not say where they are.
func (i *issuer) ready(ctx context.Context) (*trust, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.trust != nil && i.now().Sub(i.trust.made) < keysLife {
		return i.trust, nil
	}
	// Detached: the one request that discovers does it for all, and what it
	// leaves behind outlives it. The client bounds it.
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), i.client)
	verifier := func(c *oidc.Config) *oidc.IDTokenVerifier {
		return oidc.NewVerifier(i.settings.Issuer, oidc.NewRemoteKeySet(ctx, i.settings.JWKSURL), c)
	}
	if i.settings.JWKSURL == "" {
		if !i.failed.IsZero() && i.now().Sub(i.failed) < discoveryPause {
			return nil, ErrIssuer
		}
		provider, err := i.discover(ctx)
		if err != nil {
			i.failed = i.now()
			return nil, err
		}
		verifier = provider.Verifier
	}
	settings := oidc.Config{SupportedSigningAlgs: algorithms, Now: i.now}
	callers, people, examiner := settings, settings, settings
	callers.ClientID, people.ClientID = i.audience, i.settings.Console.ClientID
	examiner.SkipClientIDCheck, examiner.SkipExpiryCheck, examiner.SkipIssuerCheck = true, true, true
	i.trust = &trust{callers: verifier(&callers), examiner: verifier(&examiner), made: i.now()}
	if i.settings.Console.Enabled() {
		i.trust.people = verifier(&people)
	}
	return i.trust, nil
}

// discover reads the issuer's description of itself.
func (i *issuer) discover(ctx context.Context) (*oidc.Provider, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.settings.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %q does not describe itself: %v", ErrIssuer, i.settings.Issuer, err)
	}
	return provider, nil
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
