package federation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

const (
	// loginTime is how long a person may take at the authorization server.
	loginTime = 10 * time.Minute
	// loginsAtOnce bounds the logins that wait for a person.
	loginsAtOnce = 16
	// clientDocumentPath is where our client id metadata document is.
	clientDocumentPath = "/client-metadata.json"
)

// logins are the authorizations that a person has still to agree to.
type logins struct {
	mu   sync.Mutex
	open map[string]*pendingLogin
}

type pendingLogin struct {
	server gate.ServerID
	login  *credential.Login
	until  time.Time
}

// add keeps a login until it is taken; the oldest gives way to the newest.
func (l *logins) add(p *pendingLogin, now time.Time) (handle string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[string]*pendingLogin{}
	}
	oldest := ""
	for h, other := range l.open {
		if !now.Before(other.until) {
			delete(l.open, h)
		} else if oldest == "" || other.until.Before(l.open[oldest].until) {
			oldest = h
		}
	}
	if len(l.open) >= loginsAtOnce {
		delete(l.open, oldest)
	}
	handle = unguessable()
	l.open[handle] = p
	return handle
}

// take gives a login out, once.
func (l *logins) take(handle string, now time.Time) *pendingLogin {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.open[handle]
	delete(l.open, handle)
	if p == nil || !now.Before(p.until) {
		return nil
	}
	return p
}

// A Login is an authorization that waits for a person.
type Login struct {
	Handle string // what FinishLogin takes
	URL    string // what the person opens in a browser
	Issuer string // who asks them
	Until  time.Time
}

// BeginLogin discovers who authorises for a server of auth mode "oauth" and
// returns the url that a person has to open. Redirect is where the browser comes
// back to, on the person's own machine.
func (g *Gateway) BeginLogin(ctx context.Context, id gate.ServerID, redirect string) (Login, error) {
	cfg := g.Config()
	server, err := loginServer(cfg, id)
	if err != nil {
		return Login{}, err
	}
	if !loopbackRedirect(redirect) {
		return Login{}, fmt.Errorf("login at %q: the browser can come back to a loopback address only", id)
	}
	ctx, cancel := context.WithTimeout(ctx, server.Timeout)
	defer cancel()
	login, err := g.credentials.BeginLogin(ctx, server.Auth, credential.LoginOptions{Redirect: redirect, ClientDocument: clientDocumentURL(cfg)})
	if err != nil {
		return Login{}, errors.Join(fmt.Errorf("login at %q: %w", id, err), g.recordLogin(ctx, id, gate.Refused, err, "login"))
	}
	p := &pendingLogin{id, login, g.now().Add(loginTime)}
	return Login{Handle: g.logins.add(p, g.now()), URL: login.URL, Issuer: login.Issuer, Until: p.until}, nil
}

// FinishLogin takes what the browser came back with, obtains the tokens and
// keeps them. Each login is finished once, whatever comes of it.
func (g *Gateway) FinishLogin(ctx context.Context, handle string, answer url.Values) error {
	p := g.logins.take(handle, g.now())
	if p == nil {
		return errors.New("this login is over or has waited too long; begin another")
	}
	if err := g.Ledger.Health(); err != nil {
		return fmt.Errorf("login at %q: the ledger cannot be written: %w", p.server, err)
	}
	ctx, cancel := context.WithTimeout(ctx, g.Config().Operation.Timeout)
	defer cancel()
	if err := p.login.Finish(ctx, answer); err != nil {
		return errors.Join(fmt.Errorf("login at %q: %w", p.server, err), g.recordLogin(ctx, p.server, gate.Refused, err, "login"))
	}
	return g.recordLogin(ctx, p.server, gate.OK, nil, "login at issuer "+p.login.Issuer)
}

// Logout forgets the login at a server and has it revoked. It is forgotten here
// even when the authorization server cannot be told; the error then says so.
func (g *Gateway) Logout(ctx context.Context, id gate.ServerID) error {
	server, err := loginServer(g.Config(), id)
	if err != nil {
		return err
	}
	if err := g.Ledger.Health(); err != nil {
		return fmt.Errorf("logout at %q: the ledger cannot be written: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, server.Timeout)
	defer cancel()
	if err := g.credentials.Logout(ctx, server.Auth); err != nil {
		return errors.Join(fmt.Errorf("logout at %q: %w", id, err), g.recordLogin(ctx, id, gate.Refused, err, "logout"))
	}
	return g.recordLogin(ctx, id, gate.OK, nil, "logout")
}

// CredentialState says how the credential of a server is, without sending anything.
func (g *Gateway) CredentialState(ctx context.Context, s *config.Server) string {
	return g.credentials.State(ctx, s.Auth)
}

// CredentialEnds says when the login at a server ends that nothing can renew;
// zero when there is no such end, or it is not known.
func (g *Gateway) CredentialEnds(ctx context.Context, s *config.Server) time.Time {
	return g.credentials.Ends(ctx, s.Auth)
}

// Shunned reports whether a server has refused our credential twice in a row.
// What nobody asked for by name does not go there until the credential is
// another one: a schedule must not lock an account.
func (g *Gateway) Shunned(ctx context.Context, s *config.Server) bool {
	return g.credentials.Marked(ctx, s.Auth)
}

func loginServer(cfg *config.Config, id gate.ServerID) (*config.Server, error) {
	server := cfg.Server(id)
	switch {
	case server == nil:
		return nil, fmt.Errorf("server %q: no [[server]] has this id; see: gatehouse servers", id)
	case server.Auth.Mode != credential.OAuth:
		return nil, fmt.Errorf("server %q: auth mode is %q; only a server with mode %q is logged in at", id, server.Auth.Mode, credential.OAuth)
	}
	return server, nil
}

// recordLogin puts on record how a login ended. Whoever hung up meanwhile does
// not keep it from being written.
func (g *Gateway) recordLogin(ctx context.Context, id gate.ServerID, v gate.Verdict, cause error, detail string) error {
	entry := &gate.Entry{Kind: gate.KindLogin, Caller: Operator, Via: Operator, Server: id, Verdict: v, Detail: detail}
	if cause != nil {
		entry.Reason, entry.Detail = "login_failed", detail+": "+cause.Error()
		if e, ok := errors.AsType[*credential.Error](cause); ok {
			entry.Reason = e.Reason
		}
	}
	return g.Ledger.Append(context.WithoutCancel(ctx), entry)
}

// loopbackRedirect wants http on a loopback address: a code that goes anywhere
// else goes to somebody else (RFC 8252 section 7.3).
func loopbackRedirect(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// clientDocumentURL is our client id where such documents are understood; "" when
// nobody could read ours, since it has to be reached by the authorization server.
func clientDocumentURL(cfg *config.Config) string {
	public := publicURL(cfg.Listen)
	if cfg.Listen.PublicURL == "" || !strings.HasPrefix(public, "https://") {
		return ""
	}
	return public + clientDocumentPath
}

// serveClientDocument describes us to authorization servers. There is nothing to
// describe while no server is logged in at.
func (g *Gateway) serveClientDocument(w http.ResponseWriter, r *http.Request) {
	cfg := g.Config()
	document := clientDocumentURL(cfg)
	if document == "" || !slices.ContainsFunc(cfg.Servers, func(s config.Server) bool { return s.Auth.Mode == credential.OAuth }) {
		http.NotFound(w, r)
		return
	}
	body, err := credential.ClientDocument(document)
	if err != nil {
		http.Error(w, "not available", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(body) // the peer may be gone; nothing depends on it
}
