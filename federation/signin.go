package federation

import (
	"errors"
	"net/http"

	"gatehouse/gate"
)

// Console is how an administrator at the operator's pages is authenticated, as
// the record says it.
const Console = "console"

// The reasons why somebody may not sign in at the console.
var (
	ErrSignIn          = errors.New("this token signs nobody in")
	ErrTooManyFailures = errors.New("too many refused tokens from this address; wait a moment")
)

// SignIn returns the administrator that a token belongs to, for a session at the
// console, and puts the attempt on record. Whoever is no administrator of the
// configuration learns no more than whoever guessed.
func (g *Gateway) SignIn(r *http.Request, token string) (*gate.Caller, error) {
	known, err := g.inForce().callers.Authenticate(r.Context(), token)
	reason := "unknown_token"
	if err == nil {
		// A signed token ends at a time of its own, which a session here would not.
		if who := g.Administrator(known.Name); who != nil && known.AuthenticatedBy == "token" {
			return who, g.recordConsole(r, who, "signed in")
		}
		reason = "no_administrator"
	}
	if !g.failures.note(r, "console_"+reason) {
		return nil, ErrTooManyFailures
	}
	return nil, ErrSignIn
}

// SignOut puts on record that an administrator left.
func (g *Gateway) SignOut(r *http.Request, who *gate.Caller) error {
	return g.recordConsole(r, who, "signed out")
}

func (g *Gateway) recordConsole(r *http.Request, who *gate.Caller, what string) error {
	return g.Ledger.Append(r.Context(), &gate.Entry{Kind: gate.KindLogin, Caller: who.Name, Via: Console,
		Verdict: gate.OK, Detail: what + " at the console, from " + remoteHost(r)})
}

// Administrator returns the configured administrator of that name as the console
// knows them, or nil: the configuration in force decides, not the one they signed
// in under.
func (g *Gateway) Administrator(name gate.CallerName) *gate.Caller {
	known := g.Caller(name)
	if known == nil || !known.Admin {
		return nil
	}
	who := *known
	who.AuthenticatedBy = Console
	return &who
}

// TokenOf tells two tokens of a caller apart: it changes when the configuration
// gives the caller another one, which ends what the old one opened.
func (g *Gateway) TokenOf(name gate.CallerName) gate.Digest {
	cfg := g.Config()
	for i := range cfg.Callers {
		if c := &cfg.Callers[i]; c.Name == name {
			return gate.DigestOf([]byte(c.Token.Digest.String() + " " + c.Token.Reference.String()))
		}
	}
	return gate.Digest{}
}

// Mount serves a path beside the gateway's own, behind the same guard. It is to
// be called before Serve.
func (g *Gateway) Mount(pattern string, h http.Handler) {
	if g.mounted == nil {
		g.mounted = map[string]http.Handler{}
	}
	g.mounted[pattern] = h
}
