package federation

import (
	"context"
	"errors"
	"net/http"

	"gatehouse/federation/caller"
	"gatehouse/gate"
)

// SignInTime is how long a person may take at the issuer.
const SignInTime = caller.SignInTime

// Console is how an administrator at the operator's pages is authenticated, as
// the record says it.
const Console = "console"

// The reasons why somebody may not sign in at the console.
var (
	ErrSignIn          = errors.New("this signs nobody in")
	ErrTooManyFailures = errors.New("too many refused tokens from this address; wait a moment")
	ErrIssuer          = caller.ErrIssuer
)

// A Person is somebody at the console, as they were recognised when they signed
// in. What they may do is decided anew each time, by Administrator.
type Person struct {
	name    gate.CallerName
	token   gate.Digest     // what the configuration said of the caller's token
	subject *caller.Subject // whom the issuer vouched for; nil for a caller with a token
}

// SignIn returns the administrator that a token belongs to, for a session at the
// console, and puts the attempt on record. Whoever is no administrator of the
// configuration learns no more than whoever guessed.
func (g *Gateway) SignIn(r *http.Request, token string) (*Person, error) {
	known, err := g.inForce().callers.Authenticate(r.Context(), token)
	reason := "unknown_token"
	if err == nil {
		// A signed token ends at a time of its own, which a session here would not.
		if known.AuthenticatedBy == "token" {
			p := &Person{name: known.Name, token: g.tokenOf(known.Name)}
			if who := g.Administrator(p); who != nil {
				return p, g.recordConsole(r, who, "signed in at the console")
			}
		}
		reason = "no_administrator"
	}
	return nil, g.refuseSignIn(r, reason)
}

func (g *Gateway) refuseSignIn(r *http.Request, reason string) error {
	if !g.failures.note(r, "console_"+reason) {
		return ErrTooManyFailures
	}
	return ErrSignIn
}

// SignInIssuer is the issuer through which people sign in at the console, "" when
// there is none.
func (g *Gateway) SignInIssuer() string {
	issuer, _ := g.inForce().callers.SignsIn()
	return issuer
}

// BeginSignIn returns where a browser has to go to sign somebody in through the
// issuer, which sends it back to our path, and what it has to keep meanwhile.
func (g *Gateway) BeginSignIn(ctx context.Context, path string) (address, kept string, err error) {
	set := g.inForce()
	address, kept, err = set.callers.BeginSignIn(ctx, set.public+path)
	if err != nil {
		g.Logger.Warn("nobody can sign in through the issuer", "error", err)
	}
	return address, kept, err
}

// FinishSignIn is SignIn for somebody who comes back from the issuer at path, with
// what BeginSignIn gave the browser to keep.
func (g *Gateway) FinishSignIn(r *http.Request, path, kept string) (*Person, error) {
	// Looking at an answer takes a request to the issuer, which guessers shall
	// not have us make without end.
	if g.failures.exhausted(r) {
		return nil, g.refuseSignIn(r, caller.ReasonUnknown)
	}
	set := g.inForce()
	subject, err := set.callers.FinishSignIn(r.Context(), set.public+path, kept, r.URL.Query())
	if errors.Is(err, ErrIssuer) {
		g.Logger.Warn("nobody can sign in through the issuer", "error", err)
		return nil, ErrIssuer
	}
	if err == nil {
		p := &Person{subject: subject}
		if who := g.Administrator(p); who != nil {
			return p, g.recordConsole(r, who, "signed in at the console through the issuer")
		}
		if _, err = set.callers.Admit(subject); err == nil {
			return nil, g.refuseSignIn(r, "no_administrator")
		}
	}
	return nil, g.refuseSignIn(r, caller.ReasonOf(err))
}

// SignOut puts on record that an administrator left.
func (g *Gateway) SignOut(r *http.Request, who *gate.Caller) error {
	return g.recordConsole(r, who, "signed out at the console")
}

func (g *Gateway) recordConsole(r *http.Request, who *gate.Caller, what string) error {
	return g.Ledger.Append(r.Context(), &gate.Entry{Kind: gate.KindLogin, Caller: who.Name, Via: Console,
		Verdict: gate.OK, Detail: what + ", from " + remoteHost(r)})
}

// Administrator returns the administrator that a person is, as the console knows
// them, or nil: the configuration in force decides, not the one they signed in
// under. One that gives a caller another token ends what the old one opened.
func (g *Gateway) Administrator(p *Person) *gate.Caller {
	callers := g.inForce().callers
	var known *gate.Caller
	if p.subject == nil {
		if p.token == g.tokenOf(p.name) {
			known = callers.Named(p.name)
		}
	} else if _, yes := callers.SignsIn(); yes {
		known, _ = callers.Admit(p.subject) // nil with an error
	}
	if known == nil || !known.Admin {
		return nil
	}
	who := *known
	who.AuthenticatedBy = Console
	return &who
}

// tokenOf tells two tokens of a caller apart: it changes when the configuration
// gives the caller another one.
func (g *Gateway) tokenOf(name gate.CallerName) gate.Digest {
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
