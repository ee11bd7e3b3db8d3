package console

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"gatehouse/e2e/rig"
	"gatehouse/upstream/upstreamtest/authserver"
)

// A person signs in at an issuer that is another site: there the browser keeps
// the session's cookie to itself until a page of ours asks.
func TestSignInThroughTheIssuer(t *testing.T) {
	auth := authserver.New(t)
	auth.URL = strings.Replace(auth.URL, "127.0.0.1", "localhost", 1)
	auth.AddClient("pages", "")
	// The person has to click at the issuer, which makes it the issuer's doing.
	asks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Issuer</title><main><a id="agree" href="%s">It is me</a></main>`,
			html.EscapeString(auth.URL+"/authorize?"+r.URL.RawQuery))
	}))
	t.Cleanup(asks.Close)
	auth.Configure(func(s *authserver.Settings) {
		s.Metadata = func(m map[string]any) {
			m["authorization_endpoint"] = strings.Replace(asks.URL, "127.0.0.1", "localhost", 1) + "/ask"
		}
	})
	belongs := func(group string) {
		auth.Configure(func(s *authserver.Settings) {
			s.Person = func(c authserver.Claims) { c["groups"] = []string{group} }
		})
	}
	g := rig.New(t, rig.Settings{Callers: people})
	configure(t, g, rig.Settings{Callers: people, Extra: fmt.Sprintf(`[oidc]
issuer = %q
audience = "https://gate.example.org/mcp"
[oidc.console]
client_id = "pages"
[[oidc.rule]]
claim = "groups"
value = "mcp-admins"
admin = true
[[oidc.rule]]
claim = "groups"
value = "staff"
`, auth.Issuer())})
	g.Serve(t)
	b := open(t, g.Base)
	signIn := func() {
		t.Helper()
		b.click(t, ".door a.main")
		b.until(t, `!!document.querySelector("#agree")`)
		b.do(t, chromedp.Click("#agree"))
	}

	b.goTo(t, "/console/tools")
	b.says(t, "main", "Sign in with "+auth.Issuer())
	b.look(t, "30-sign-in-issuer")
	belongs("staff")
	signIn()
	b.until(t, `document.body.textContent.includes("signs no administrator in")`)
	b.look(t, "31-no-administrator")
	belongs("mcp-admins")
	signIn()
	b.until(t, `location.pathname === "/console/tools"`) // where she wanted to go, by itself
	b.says(t, ".who", auth.Issuer()+"|operator")
	b.look(t, "32-signed-in")
	found, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	if c := found.Cookies; len(c) != 1 || !c[0].HTTPOnly || c[0].SameSite != network.CookieSameSiteStrict {
		t.Errorf("the cookies are %+v", c)
	}
	b.click(t, ".who button")
	b.says(t, "h1", "Sign in")
	b.quiet(t)
}
