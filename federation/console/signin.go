package console

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"gatehouse/federation"
)

const (
	// issuerPath is where browsers leave for the issuer, and returnPath where they
	// come back to.
	issuerPath = "/console/signin/issuer"
	returnPath = "/console/signin/return"
	// attemptName is the cookie of a sign-in through the issuer that is under way.
	attemptName = "gatehouse_signin"
	// maxTo bounds the page to go to that such a cookie remembers.
	maxTo = 1 << 10
)

// signInPage is what the sign-in page shows.
type signInPage struct {
	Problem string
	To      string
	Issuer  string // "" = a token is the only way
	Leave   string // where a browser leaves for the issuer
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	to := local(r.FormValue("to"))
	if s, _ := c.sessionOf(r, true); s != nil {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	c.renderSignIn(w, http.StatusOK, "", to)
}

func (c *Console) renderSignIn(w http.ResponseWriter, status int, problem, to string) {
	p := signInPage{Problem: problem, To: to}
	if p.Issuer = c.g.SignInIssuer(); p.Issuer != "" {
		// Under the name that the issuer sends browsers back to: the cookie that
		// waits for them there goes to no other.
		p.Leave = c.g.PublicURL() + issuerPath + "?to=" + url.QueryEscape(to)
	}
	c.write(w, status, "signin", page{Title: "Sign in", Data: p})
}

// signIn opens a session for the token of an administrator.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.renderSignIn(w, http.StatusBadRequest, "The form could not be read.", Root)
		return
	}
	to := local(r.PostForm.Get("to"))
	person, err := c.g.SignIn(r, strings.TrimSpace(r.PostForm.Get("token")))
	if err != nil {
		c.refuse(w, err, "This is not the token of an administrator.", to)
		return
	}
	c.welcome(w, r, person)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// refuse shows the sign-in page with why nobody was signed in.
func (c *Console) refuse(w http.ResponseWriter, err error, otherwise, to string) {
	switch {
	case errors.Is(err, federation.ErrTooManyFailures):
		w.Header().Set("Retry-After", "1")
		c.renderSignIn(w, http.StatusTooManyRequests, "Too many attempts from your address were refused. Wait a moment and try again.", to)
	case errors.Is(err, federation.ErrSignIn):
		c.renderSignIn(w, http.StatusUnauthorized, otherwise, to)
	case errors.Is(err, federation.ErrIssuer):
		c.renderSignIn(w, http.StatusBadGateway, "The issuer cannot be asked right now; the gateway's log says why. A token of an administrator works without it.", to)
	default:
		c.renderSignIn(w, http.StatusServiceUnavailable, "Nobody can sign in while the ledger cannot be written.", to)
	}
}

// welcome opens a session. Whoever had one here before gives it up for the new one.
func (c *Console) welcome(w http.ResponseWriter, r *http.Request, person *federation.Person) {
	if old, err := r.Cookie(cookieName); err == nil {
		c.sessions.end(old.Value)
	}
	http.SetCookie(w, c.cookie(r, c.sessions.begin(person), 0))
}

// goToIssuer sends the browser to the issuer. A link leads here and no form: the
// policy lets no form of ours end at another host.
func (c *Console) goToIssuer(w http.ResponseWriter, r *http.Request) {
	to := local(r.FormValue("to"))
	if c.g.SignInIssuer() == "" {
		http.Redirect(w, r, "/console/signin", http.StatusSeeOther)
		return
	}
	address, kept, err := c.g.BeginSignIn(r.Context(), returnPath)
	if err != nil {
		c.refuse(w, err, "", to)
		return
	}
	if len(to) > maxTo {
		to = Root
	}
	http.SetCookie(w, c.attempt(r, kept+"|"+base64.RawURLEncoding.EncodeToString([]byte(to)), int(federation.SignInTime.Seconds())))
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// attempt is a cookie that comes along when another site sends the browser back,
// which a strict one does not.
func (c *Console) attempt(r *http.Request, value string, maxAge int) *http.Cookie {
	cookie := c.cookie(r, value, maxAge)
	cookie.Name, cookie.Path, cookie.SameSite = attemptName, "/console/signin", http.SameSiteLaxMode
	return cookie
}

// returnFromIssuer opens a session for the administrator that the issuer vouches
// for. An attempt is over with its first answer, whatever that is.
func (c *Console) returnFromIssuer(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, c.attempt(r, "", -1))
	kept, to := "", Root
	if cookie, err := r.Cookie(attemptName); err == nil {
		attempt, encoded, _ := strings.Cut(cookie.Value, "|")
		page, _ := base64.RawURLEncoding.DecodeString(encoded) // what is no page of ours is not gone to
		kept, to = attempt, local(string(page))
	}
	person, err := c.g.FinishSignIn(r, returnPath, kept)
	if err != nil {
		c.refuse(w, err, "The issuer's answer signs no administrator in. Begin again; if it stays so, the record says why.", to)
		return
	}
	c.welcome(w, r, person)
	// A redirect would still count as the issuer's doing, and the session's cookie
	// stays away from what other sites cause. A page of ours goes on by itself.
	w.Header().Set("Refresh", "0; url="+to)
	c.write(w, http.StatusOK, "signedin", page{Title: "Signed in", Data: to})
}

// cookie carries a session's id. It lasts as long as the browser; how long the
// session does is decided here.
func (c *Console) cookie(r *http.Request, value string, maxAge int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: Root, MaxAge: maxAge, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || strings.HasPrefix(c.g.PublicURL(), "https://")}
}

func signOut(v *visit) error {
	if cookie, err := v.r.Cookie(cookieName); err == nil {
		v.sessions.end(cookie.Value)
	}
	http.SetCookie(v.w, v.cookie(v.r, "", -1))
	if err := v.g.SignOut(v.r, v.who); err != nil {
		v.g.Logger.Warn("a sign-out is not on record", "caller", v.who.Name, "error", err)
	}
	http.Redirect(v.w, v.r, "/console/signin", http.StatusSeeOther)
	return nil
}

// askToSignIn answers a request without a session.
func (c *Console) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Gatehouse-Live") != "" {
		http.Error(w, "signed out", http.StatusUnauthorized)
		return
	}
	to := Root
	if r.Method == http.MethodGet {
		to = r.URL.RequestURI()
	}
	http.Redirect(w, r, "/console/signin?to="+url.QueryEscape(to), http.StatusSeeOther)
}
