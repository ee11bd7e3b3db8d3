package console

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/federation"
	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest/authserver"
	"gatehouse/upstream/upstreamtest/leak"
)

const oidcTables = `[listen]
public_url = "%s"
[oidc]
issuer = "%s"
audience = "https://gate.example.org/mcp"
[oidc.console]
client_id = "pages"
client_secret = "env:PAGES_SECRET"
scopes = ["groups"]
[[oidc.rule]]
claim = "groups"
value = "admins"
admin = true
[[oidc.rule]]
claim = "groups"
value = "staff"
`

// newIssuer is a real issuer where the console has a client, and whoever signs in
// is an administrator.
func newIssuer(t *testing.T) *authserver.Server {
	t.Helper()
	secret := leak.Secret("client")
	t.Setenv("PAGES_SECRET", secret)
	issuer := authserver.New(t)
	issuer.AddClient("pages", secret)
	issuer.Configure(func(s *authserver.Settings) {
		s.Person = func(c authserver.Claims) { c["groups"] = []string{"admins"} }
	})
	return issuer
}

func newOIDCRig(t *testing.T) (*rig, *authserver.Server) {
	t.Helper()
	issuer := newIssuer(t)
	return newRigWith(t, fmt.Sprintf(oidcTables, "URL", issuer.Issuer())), issuer
}

// leave begins a sign-in and returns where the browser is sent.
func (v *visitor) leave(to string) *url.URL {
	v.t.Helper()
	status, body, header := v.get(issuerPath + "?to=" + url.QueryEscape(to))
	at, err := url.Parse(header.Get("Location"))
	if status != http.StatusSeeOther || err != nil {
		v.t.Fatalf("leaving: status %d to %q\n%s", status, header.Get("Location"), body)
	}
	return at
}

// agree is what the person does at the issuer; it returns the query that the
// browser comes back with.
func (v *visitor) agree(at *url.URL) url.Values {
	v.t.Helper()
	resp, err := v.client.Get(at.String())
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := resp.Location()
	if err != nil || back.Path != returnPath || "http://"+back.Host != v.url {
		v.t.Fatalf("the issuer sends the browser to %v: status %d, %v", back, resp.StatusCode, err)
	}
	return back.Query()
}

func (v *visitor) comeBack(answer url.Values) (status int, body string, header http.Header) {
	v.t.Helper()
	return v.get(returnPath + "?" + answer.Encode())
}

// keep has the browser keep an attempt that was over, as a thief of it might.
func (v *visitor) keep(cookies []*http.Cookie) {
	u, err := url.Parse(v.url + returnPath)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range cookies {
		c.Path = "/console/signin"
	}
	v.client.Jar.SetCookies(u, cookies)
}

func (v *visitor) kept() []*http.Cookie {
	u, err := url.Parse(v.url + returnPath)
	if err != nil {
		v.t.Fatal(err)
	}
	return slices.DeleteFunc(v.client.Jar.Cookies(u), func(c *http.Cookie) bool { return c.Name != attemptName })
}

func TestSignInThroughTheIssuer(t *testing.T) {
	r, issuer := newOIDCRig(t)
	v := r.visitor()
	_, page, _ := v.get("/console/signin?to=/console/flow")
	if !strings.Contains(page, "Sign in with "+issuer.Issuer()) || !strings.Contains(page, `href="`+r.url+issuerPath+`?to=%2Fconsole%2Fflow"`) {
		t.Errorf("the sign-in page does not offer the issuer:\n%s", page)
	}
	status, _, header := v.get(issuerPath + "?to=/console/flow")
	at, err := url.Parse(header.Get("Location"))
	if err != nil || status != http.StatusSeeOther {
		t.Fatalf("status %d, %v", status, err)
	}
	cookie := header.Get("Set-Cookie")
	for _, want := range []string{attemptName + "=", "HttpOnly", "SameSite=Lax", "Path=/console/signin", "Max-Age=600"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q; want %s", cookie, want)
		}
	}
	asked := at.Query()
	for key, want := range map[string]string{"response_type": "code", "client_id": "pages", "redirect_uri": r.url + returnPath,
		"scope": "openid groups", "code_challenge_method": "S256"} {
		if asked.Get(key) != want {
			t.Errorf("%s is %q, want %q", key, asked.Get(key), want)
		}
	}
	for _, key := range []string{"state", "nonce", "code_challenge"} {
		if len(asked.Get(key)) < 43 || strings.Contains(cookie, asked.Get(key)) {
			t.Errorf("%s is %q; it has to be unguessable and different from what the browser keeps", key, asked.Get(key))
		}
	}
	answer := v.agree(at)
	status, page, header = v.comeBack(answer)
	if status != http.StatusOK || header.Get("Refresh") != "0; url=/console/flow" || !strings.Contains(page, `href="/console/flow"`) {
		t.Errorf("back: status %d, refresh %q\n%s", status, header.Get("Refresh"), page)
	}
	cookies := strings.Join(header.Values("Set-Cookie"), "\n")
	for _, want := range []string{attemptName + "=; Path=/console/signin; Max-Age=0", cookieName + "=", "Path=/console/; HttpOnly; SameSite=Strict"} {
		if !strings.Contains(cookies, want) {
			t.Errorf("the cookies are\n%s\nwant %s", cookies, want)
		}
	}
	name := issuer.Issuer() + "|operator"
	if status, page, _ := v.get("/console/"); status != http.StatusOK || !strings.Contains(page, name) {
		t.Errorf("after: status %d, and the page does not say who is signed in", status)
	}
	in := r.entries(gate.KindLogin)
	if len(in) != 1 || string(in[0].Caller) != name || in[0].Via != federation.Console || !strings.Contains(in[0].Detail, "through the issuer") {
		t.Errorf("on record are %+v", in)
	}
	if form := issuer.TokenRequests()[0]; form.Get("client_secret") != "" || issuer.BasicRequests() != 1 {
		t.Errorf("the secret travelled in the form: %v", form)
	}
}

// Whatever is not exactly the issuer's answer to what this very browser asked, or
// not about an administrator, opens no session.
func TestHostileSignIn(t *testing.T) {
	claims := func(change func(authserver.Claims)) func(*rig, *authserver.Server, *visitor) url.Values {
		return func(_ *rig, issuer *authserver.Server, v *visitor) url.Values {
			issuer.Configure(func(s *authserver.Settings) {
				s.Person = func(c authserver.Claims) { c["groups"] = []string{"admins"}; change(c) }
			})
			return v.agree(v.leave(""))
		}
	}
	answer := func(change func(url.Values)) func(*rig, *authserver.Server, *visitor) url.Values {
		return func(_ *rig, issuer *authserver.Server, v *visitor) url.Values {
			issuer.Configure(func(s *authserver.Settings) { s.Answer = change })
			return v.agree(v.leave(""))
		}
	}
	// token has the token endpoint give out an ID token that make makes for a nonce.
	token := func(make func(nonce string) string) func(*rig, *authserver.Server, *visitor) url.Values {
		return func(_ *rig, issuer *authserver.Server, v *visitor) url.Values {
			at := v.leave("")
			issuer.Configure(func(s *authserver.Settings) {
				s.Token = func(w http.ResponseWriter, _ url.Values) bool {
					w.Header().Set("Content-Type", "application/json")
					json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": make(at.Query().Get("nonce"))})
					return true
				}
			})
			return v.agree(at)
		}
	}
	for name, test := range map[string]struct {
		prepare func(*rig, *authserver.Server, *visitor) url.Values
		reason  string
		asks    int // token requests that it may cost
	}{
		"another state": {answer(func(q url.Values) { q.Set("state", "x"+q.Get("state")[1:]) }), "wrong_state", 0},
		"no state":      {answer(func(q url.Values) { q.Del("state") }), "wrong_state", 0},
		"two codes":     {answer(func(q url.Values) { q.Add("code", "another") }), "wrong_state", 0},
		"another browser": {func(r *rig, _ *authserver.Server, _ *visitor) url.Values {
			thief := r.visitor()
			return thief.agree(thief.leave(""))
		}, "wrong_state", 0},
		"answer to an older attempt": {func(_ *rig, _ *authserver.Server, v *visitor) url.Values {
			old := v.agree(v.leave(""))
			v.leave("")
			return old
		}, "wrong_state", 0},
		"older than a person takes": {func(_ *rig, _ *authserver.Server, v *visitor) url.Values {
			back := v.agree(v.leave(""))
			kept := v.kept()
			_, rest, _ := strings.Cut(kept[0].Value, ".")
			kept[0].Value = fmt.Sprintf("%d.%s", time.Now().Add(-federation.SignInTime).Unix(), rest)
			v.keep(kept)
			return back
		}, "wrong_state", 0},
		"made younger": {func(_ *rig, _ *authserver.Server, v *visitor) url.Values {
			back := v.agree(v.leave(""))
			kept := v.kept()
			_, rest, _ := strings.Cut(kept[0].Value, ".")
			kept[0].Value = fmt.Sprintf("%d.%s", time.Now().Add(-time.Minute).Unix(), rest)
			v.keep(kept)
			return back
		}, "wrong_state", 0},
		"a replay": {func(r *rig, _ *authserver.Server, v *visitor) url.Values {
			back := v.agree(v.leave(""))
			kept := v.kept()
			thief := r.visitor()
			thief.keep(kept)
			if status, _, _ := thief.comeBack(back); status != http.StatusOK {
				r.t.Fatalf("the first time: status %d", status)
			}
			v.keep(kept)
			return back
		}, "code_refused", 2},
		"the code of another sign-in": {func(r *rig, _ *authserver.Server, v *visitor) url.Values {
			thief := r.visitor()
			stolen := thief.agree(thief.leave(""))
			back := v.agree(v.leave(""))
			back.Set("code", stolen.Get("code"))
			return back
		}, "code_refused", 1},
		"no code":                {answer(func(q url.Values) { q.Del("code") }), "code_refused", 0},
		"the person said no":     {answer(func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }), "issuer_declined", 0},
		"mix-up: another issuer": {answer(func(q url.Values) { q.Set("iss", "https://evil.example.org") }), "wrong_issuer", 0},
		"mix-up: no issuer":      {answer(func(q url.Values) { q.Del("iss") }), "wrong_issuer", 0},
		"another nonce":          {claims(func(c authserver.Claims) { c["nonce"] = "another" }), "wrong_nonce", 1},
		"no nonce":               {claims(func(c authserver.Claims) { delete(c, "nonce") }), "wrong_nonce", 1},
		"a token of another":     {claims(func(c authserver.Claims) { c["iss"] = "https://evil.example.org" }), "wrong_issuer", 1},
		"a token for another":    {claims(func(c authserver.Claims) { c["aud"] = "https://gate.example.org/mcp" }), "wrong_audience", 1},
		"a token for several":    {claims(func(c authserver.Claims) { c["aud"] = []string{"pages", "another"} }), "wrong_audience", 1},
		"asked for by another":   {claims(func(c authserver.Claims) { c["azp"] = "another" }), "wrong_audience", 1},
		"expired":                {claims(func(c authserver.Claims) { c["exp"] = time.Now().Add(-time.Minute).Unix() }), "token_expired", 1},
		"about nobody":           {claims(func(c authserver.Claims) { c["sub"] = "" }), "unknown_token", 1},
		"no administrator":       {claims(func(c authserver.Claims) { c["groups"] = []string{"staff"} }), "no_administrator", 1},
		"whom no rule lets in":   {claims(func(c authserver.Claims) { c["groups"] = "others" }), "no_rule", 1},
		"signed by another issuer": {token(func(nonce string) string {
			return authserver.New(t).UserToken("operator", "pages", authserver.Claims{"nonce": nonce})
		}), "unknown_token", 1},
		"signed by nobody": {token(func(nonce string) string {
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"nonce":"`+nonce+`"}`)) + "."
		}), "unknown_token", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, issuer := newOIDCRig(t)
			v := r.visitor()
			back := test.prepare(r, issuer, v)
			status, body, header := v.comeBack(back)
			if status != http.StatusUnauthorized || !strings.Contains(body, "signs no administrator in") || header.Get("Refresh") != "" {
				t.Errorf("status %d, refresh %q\n%s", status, header.Get("Refresh"), body)
			}
			for _, cookie := range header.Values("Set-Cookie") {
				if !strings.HasPrefix(cookie, attemptName+"=; ") {
					t.Errorf("a cookie is set: %s", cookie)
				}
			}
			if code := back.Get("code"); code != "" && strings.Contains(body, code) {
				t.Error("the page repeats the code")
			}
			if got := len(issuer.TokenRequests()); got != test.asks {
				t.Errorf("the issuer was asked for %d tokens, want %d", got, test.asks)
			}
			if status, _, _ := v.get("/console/"); status != http.StatusSeeOther {
				t.Errorf("the console is open: status %d", status)
			}
			if err := r.g.Ledger.Append(t.Context(), &gate.Entry{Kind: gate.KindTest}); err != nil { // what was handed over before is written by then
				t.Fatal(err)
			}
			if failures := r.entries(gate.KindAuthFailure); len(failures) != 1 || failures[0].Reason != "console_"+test.reason {
				t.Errorf("on record are %+v; want %s", failures, test.reason)
			}
		})
	}
}

func TestSignInGoesToNoOtherSite(t *testing.T) {
	r, _ := newOIDCRig(t)
	for _, to := range []string{"https://evil.example/console/", "//evil.example/console/", `/console/\evil`, "/mcp", "javascript:alert(1)",
		"/console/" + strings.Repeat("x", 2*maxTo)} {
		v := r.visitor()
		_, _, header := v.comeBack(v.agree(v.leave(to)))
		if header.Get("Refresh") != "0; url=/console/" {
			t.Errorf("%.40q leads to %.80q", to, header.Get("Refresh"))
		}
	}
	// Not even when somebody writes it into the cookie.
	v := r.visitor()
	back := v.agree(v.leave(""))
	kept := v.kept()
	attempt, _, _ := strings.Cut(kept[0].Value, "|")
	kept[0].Value = attempt + "|" + base64.RawURLEncoding.EncodeToString([]byte("https://evil.example/"))
	v.keep(kept)
	if _, _, header := v.comeBack(back); header.Get("Refresh") != "0; url=/console/" {
		t.Errorf("a cookie leads to %q", header.Get("Refresh"))
	}
}

func TestGuessedAnswersAreLimited(t *testing.T) {
	r, issuer := newOIDCRig(t)
	limited := 0
	for range 40 {
		v := r.visitor()
		back := v.agree(v.leave(""))
		back.Set("code", "guess")
		if status, _, _ := v.comeBack(back); status == http.StatusTooManyRequests {
			limited++
		}
	}
	if asked := len(issuer.TokenRequests()); limited == 0 || asked+limited != 40 {
		t.Errorf("%d of 40 guesses were limited, and %d went to the issuer", limited, asked)
	}
}

func TestIssuerThatCannotBeAsked(t *testing.T) {
	r, issuer := newOIDCRig(t)
	v := r.visitor()
	back := v.agree(v.leave(""))
	issuer.Configure(func(s *authserver.Settings) {
		s.Token = func(w http.ResponseWriter, form url.Values) bool {
			http.Error(w, form.Encode(), http.StatusInternalServerError)
			return true
		}
	})
	status, body, _ := v.comeBack(back)
	if status != http.StatusBadGateway || !strings.Contains(body, "cannot be asked") || strings.Contains(body, back.Get("code")) {
		t.Errorf("status %d\n%s", status, body)
	}
	if failures := r.entries(gate.KindAuthFailure); len(failures) != 0 {
		t.Errorf("the issuer's failure is on record as somebody's: %+v", failures)
	}
	issuer.Close()
	r2 := newRigWith(t, fmt.Sprintf(oidcTables, "URL", issuer.Issuer()))
	if status, body, _ := r2.visitor().get(issuerPath); status != http.StatusBadGateway || !strings.Contains(body, "cannot be asked") {
		t.Errorf("status %d\n%s", status, body)
	}
	r2.signedIn(olga) // tokens work without the issuer
}

// What the configuration in force says of somebody counts, not what it said when
// they signed in.
func TestIssuersSessionEndsWithItsRule(t *testing.T) {
	for name, change := range map[string][2]string{
		"no rule":             {`value = "admins"`, `value = "others"`},
		"no administrator":    {"admin = true\n", ""},
		"no sign-in any more": {"[oidc.console]\nclient_id = \"pages\"\nclient_secret = \"env:PAGES_SECRET\"\nscopes = [\"groups\"]\n", ""},
		"another issuer":      {"/tenant\"", "/other\""},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newOIDCRig(t)
			v := r.visitor()
			v.comeBack(v.agree(v.leave("")))
			if status, _, _ := v.get("/console/"); status != http.StatusOK {
				t.Fatalf("before: status %d", status)
			}
			changed := strings.Replace(r.more, change[0], change[1], 1)
			if changed == r.more {
				t.Fatal("nothing changed")
			}
			r.more = changed
			r.write(olga)
			if _, err := r.g.ReloadFile(t.Context(), "test", fileDigest(t, r.path)); err != nil {
				t.Fatal(err)
			}
			if status, _, _ := v.get("/console/"); status != http.StatusSeeOther {
				t.Errorf("after: status %d", status)
			}
		})
	}
}

func TestSignInUnderTLS(t *testing.T) {
	issuer := newIssuer(t)
	r := newRigWith(t, fmt.Sprintf(oidcTables, "https://gate.example.org", issuer.Issuer()))
	_, page, _ := r.visitor().get("/console/signin")
	if !strings.Contains(page, `href="https://gate.example.org/console/signin/issuer`) {
		t.Error("the browser would leave from another host than it comes back to")
	}
	_, _, header := r.visitor().get(issuerPath)
	if cookie := header.Get("Set-Cookie"); !strings.Contains(cookie, "; Secure") {
		t.Errorf("the cookie is %q", cookie)
	}
}

func TestNoIssuerNoSignIn(t *testing.T) {
	r := newRig(t)
	if _, page, _ := r.visitor().get("/console/signin"); strings.Contains(page, issuerPath) {
		t.Error("an issuer is offered where none is configured")
	}
	if status, _, header := r.visitor().get(issuerPath); status != http.StatusSeeOther || header.Get("Location") != "/console/signin" {
		t.Errorf("leaving: status %d to %q", status, header.Get("Location"))
	}
	if status, _, header := r.visitor().get(returnPath + "?code=x&state=y"); status == http.StatusOK || strings.Contains(header.Get("Set-Cookie"), cookieName) {
		t.Errorf("coming back: status %d", status)
	}
}
