package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"gatehouse/federation"
)

// signInPage is what the sign-in page shows.
type signInPage struct {
	Problem string
	To      string
}

func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	if s, _ := c.sessionOf(r, true); s != nil {
		http.Redirect(w, r, local(r.FormValue("to")), http.StatusSeeOther)
		return
	}
	c.renderSignIn(w, http.StatusOK, signInPage{To: local(r.FormValue("to"))})
}

func (c *Console) renderSignIn(w http.ResponseWriter, status int, p signInPage) {
	c.write(w, status, "signin", page{Title: "Sign in", Data: p})
}

// signIn opens a session for the token of an administrator.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.renderSignIn(w, http.StatusBadRequest, signInPage{Problem: "The form could not be read.", To: Root})
		return
	}
	to := local(r.PostForm.Get("to"))
	who, err := c.g.SignIn(r, strings.TrimSpace(r.PostForm.Get("token")))
	switch {
	case errors.Is(err, federation.ErrTooManyFailures):
		w.Header().Set("Retry-After", "1")
		c.renderSignIn(w, http.StatusTooManyRequests, signInPage{"Too many refused tokens came from your address. Wait a moment and try again.", to})
		return
	case errors.Is(err, federation.ErrSignIn):
		c.renderSignIn(w, http.StatusUnauthorized, signInPage{"This is not the token of an administrator.", to})
		return
	case err != nil:
		c.renderSignIn(w, http.StatusServiceUnavailable, signInPage{"Nobody can sign in while the ledger cannot be written.", to})
		return
	}
	// Whoever had a session here before gives it up for the new one.
	if old, err := r.Cookie(cookieName); err == nil {
		c.sessions.end(old.Value)
	}
	http.SetCookie(w, c.cookie(r, c.sessions.begin(who.Name, c.g.TokenOf(who.Name)), 0))
	http.Redirect(w, r, to, http.StatusSeeOther)
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
