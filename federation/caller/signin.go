package caller

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// SignInTime is how long a person may take at the issuer.
const SignInTime = 10 * time.Minute

// maxCode bounds the code that a browser brings back.
const maxCode = 4 << 10

// An attempt is one sign-in under way. Only the browser keeps it, so nobody who
// begins sign-ins without end can push out somebody else's. State, nonce and PKCE
// verifier are made of its key: what the issuer or the address line shows of one
// of them tells nothing of the others.
type attempt struct {
	begun time.Time
	key   [32]byte
}

func newAttempt(now time.Time) attempt {
	a := attempt{begun: now}
	rand.Read(a.key[:]) // never fails (crypto/rand)
	return a
}

// parseAttempt reads what String wrote. It reports false for what is none, and
// for one that has waited too long.
func parseAttempt(s string, now time.Time) (a attempt, ok bool) {
	begun, key, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(begun, 10, 64)
	raw, errKey := base64.RawURLEncoding.DecodeString(key)
	if err != nil || errKey != nil || len(raw) != len(a.key) {
		return attempt{}, false
	}
	a = attempt{begun: time.Unix(seconds, 0), key: [32]byte(raw)}
	age := now.Sub(a.begun)
	return a, age > -time.Second && age < SignInTime
}

func (a attempt) String() string {
	return strconv.FormatInt(a.begun.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString(a.key[:])
}

// derive makes one of the attempt's values. It depends on the time, so that an
// attempt cannot be made younger, and on whom we ask as whom, so that an answer
// counts for the very request it was given to.
func (a attempt) derive(purpose string, o *oauth2.Config, issuer string) string {
	mac := hmac.New(sha256.New, a.key[:])
	for _, part := range []string{purpose, strconv.FormatInt(a.begun.Unix(), 10), issuer, o.ClientID, o.RedirectURL} {
		mac.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// SignsIn reports whether people sign in through the issuer, and which that is.
func (d *Directory) SignsIn() (issuer string, yes bool) {
	if d.issuer == nil || !d.issuer.settings.Console.Enabled() {
		return "", false
	}
	return d.issuer.settings.Issuer, true
}

// AskIssuer has the issuer describe itself, and holds that to what people who sign
// in need. Without one there is nothing to ask. The error is ErrIssuer.
func (d *Directory) AskIssuer(ctx context.Context) error {
	if d.issuer == nil {
		return nil
	}
	var err error
	if _, yes := d.SignsIn(); yes {
		_, _, err = d.issuer.pages(ctx, "")
	} else {
		_, err = d.issuer.discover(ctx)
	}
	return err
}

// BeginSignIn returns where a browser has to go to sign somebody in, and what it
// has to keep for FinishSignIn. Redirect is where the issuer sends it back to.
// The error is ErrIssuer.
func (d *Directory) BeginSignIn(ctx context.Context, redirect string) (address, kept string, err error) {
	if _, yes := d.SignsIn(); !yes {
		return "", "", ErrIssuer
	}
	i := d.issuer
	o, _, err := i.pages(ctx, redirect)
	if err != nil {
		return "", "", err
	}
	a := newAttempt(i.now())
	return o.AuthCodeURL(a.derive("state", o, i.settings.Issuer), oidc.Nonce(a.derive("nonce", o, i.settings.Issuer)),
		oauth2.S256ChallengeOption(a.derive("verifier", o, i.settings.Issuer))), a.String(), nil
}

// FinishSignIn takes what a browser kept, and the query that it came back with,
// and returns whom the issuer vouches for. The error is ErrUnknown when it
// vouches for nobody, and ErrIssuer when it could not be asked.
func (d *Directory) FinishSignIn(ctx context.Context, redirect, kept string, answer url.Values) (*Subject, error) {
	if _, yes := d.SignsIn(); !yes {
		return nil, ErrIssuer
	}
	i := d.issuer
	a, ok := parseAttempt(kept, i.now())
	if !ok {
		return nil, &RefusedError{ReasonState}
	}
	o, named, err := i.pages(ctx, redirect)
	if err != nil {
		return nil, err
	}
	if err := i.check(answer, a.derive("state", o, i.settings.Issuer), named); err != nil {
		return nil, err
	}
	raw, err := i.redeem(ctx, o, answer.Get("code"), a.derive("verifier", o, i.settings.Issuer))
	if err != nil {
		return nil, err
	}
	return i.vouched(ctx, raw, a.derive("nonce", o, i.settings.Issuer))
}

// pages describes how people sign in at the issuer, and whether it promises to
// name itself in its answers (RFC 9207).
func (i *issuer) pages(ctx context.Context, redirect string) (o *oauth2.Config, named bool, err error) {
	provider, err := i.discover(ctx)
	if err != nil {
		return nil, false, err
	}
	var more struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
		Named   bool     `json:"authorization_response_iss_parameter_supported"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, false, fmt.Errorf("%w: its description is not usable", ErrIssuer)
	}
	client := i.settings.Console
	o = &oauth2.Config{ClientID: client.ClientID, Endpoint: provider.Endpoint(), RedirectURL: redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, client.Scopes...)}
	for _, endpoint := range []string{o.Endpoint.AuthURL, o.Endpoint.TokenURL} {
		if !confidential(endpoint) {
			return nil, false, fmt.Errorf("%w: its description names %q, which is not https", ErrIssuer, wire.Clip(endpoint))
		}
	}
	// Said once and for all: a library that tries one way after the other would
	// spend the code on the first.
	switch basic := len(more.Methods) == 0 || slices.Contains(more.Methods, "client_secret_basic"); {
	case client.ClientSecret.IsZero():
		o.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	case basic:
		o.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	case slices.Contains(more.Methods, "client_secret_post"):
		o.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	default:
		return nil, false, fmt.Errorf("%w: it takes no client secret, neither basic nor post", ErrIssuer)
	}
	return o, more.Named, nil
}

// confidential reports whether nobody between us and an address can read along.
func confidential(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && ip.IsLoopback())
}

// check holds a browser's answer against what it asked: the very state, the
// issuer where one is named or promised, each said once, and a code.
func (i *issuer) check(answer url.Values, state string, named bool) error {
	for _, key := range []string{"state", "code", "iss", "error"} {
		if len(answer[key]) > 1 {
			return &RefusedError{ReasonState}
		}
	}
	code := answer.Get("code")
	switch {
	case subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(state)) != 1:
		return &RefusedError{ReasonState}
	case (named || answer.Has("iss")) && answer.Get("iss") != i.settings.Issuer:
		return &RefusedError{ReasonIssuer}
	case answer.Has("error"):
		return &RefusedError{ReasonDeclined}
	case code == "" || len(code) > maxCode:
		return &RefusedError{ReasonCode}
	}
	return nil
}

// redeem exchanges a code for an ID token, whose signature nobody has looked at.
func (i *issuer) redeem(ctx context.Context, o *oauth2.Config, code, verifier string) (raw string, err error) {
	if ref := i.settings.Console.ClientSecret; !ref.IsZero() {
		var secret credential.Secret
		if secret, err = i.secrets.Resolve(ctx, ref); err != nil || secret.IsZero() {
			return "", fmt.Errorf("%w: our secret there does not resolve: %v", ErrIssuer, err)
		}
		o.ClientSecret = secret.Reveal()
	}
	token, err := o.Exchange(oidc.ClientContext(ctx, i.direct), code, oauth2.VerifierOption(verifier))
	refused, answered := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case answered && refused.ErrorCode == "invalid_grant":
		return "", &RefusedError{ReasonCode}
	case answered: // what it says may quote what it was sent, and so only its code goes further
		return "", fmt.Errorf("%w: its token endpoint answered %q (status %d)", ErrIssuer, wire.Clip(refused.ErrorCode), refused.Response.StatusCode)
	case err != nil:
		return "", fmt.Errorf("%w: its token endpoint gave no usable answer", ErrIssuer)
	}
	raw, _ = token.Extra("id_token").(string)
	if raw == "" || len(raw) > maxToken {
		return "", fmt.Errorf("%w: its token endpoint gave no ID token", ErrIssuer)
	}
	return raw, nil
}

// vouched verifies an ID token (OpenID Connect Core 3.1.3.7).
func (i *issuer) vouched(ctx context.Context, raw, nonce string) (*Subject, error) {
	trust, err := i.ready(ctx)
	if err != nil {
		return nil, err
	}
	client := i.settings.Console.ClientID
	token, err := trust.people.Verify(ctx, raw)
	if err != nil {
		return nil, i.examine(ctx, trust.examiner, raw, client)
	}
	subject, err := subjectOf(token)
	if err != nil {
		return nil, err
	}
	party, named := subject.claims["azp"]
	switch {
	case subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(nonce)) != 1:
		return nil, &RefusedError{ReasonNonce}
	case named && party != client, !named && len(token.Audience) > 1:
		return nil, &RefusedError{ReasonAudience}
	}
	return subject, nil
}
