package console

import (
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/control"
	"gatehouse/gate"
)

// Root is where the pages are.
const Root = "/console/"

// maxForm bounds what a form may send; the largest is a call's arguments.
const maxForm = 1 << 20

//go:embed templates static
var files embed.FS

// A Console serves the operator's pages of one gateway. It is safe for
// concurrent use and has no goroutines of its own: those of its requests belong to
// the server that it is mounted at, and end when the gateway leaves.
type Console struct {
	g        *federation.Gateway
	api      *control.Local
	pages    map[string]*template.Template
	assets   map[string]asset
	sessions *sessions
	flow     *flow
	now      func() time.Time
	handler  http.Handler
}

// New makes the pages of g. It is an http.Handler for everything under Root.
func New(g *federation.Gateway) *Console {
	c := &Console{g: g, api: control.NewLocal(g, true), sessions: newSessions(time.Now), flow: newFlow(), now: time.Now}
	c.assets = loadAssets()
	c.pages = parsePages(c.assets)
	c.handler = c.routes()
	return c
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

func (c *Console) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /console/static/{file}", c.serveAsset)
	mux.HandleFunc("GET /console/signin", c.showSignIn)
	mux.HandleFunc("POST /console/signin", c.signIn)
	mux.HandleFunc("GET "+issuerPath, c.goToIssuer)
	mux.HandleFunc("GET "+returnPath, c.returnFromIssuer)
	for pattern, serve := range map[string]func(*visit) error{
		"POST /console/signout":             signOut,
		"GET /console/live":                 showLive,
		"GET /console/{$}":                  showNow,
		"GET /console/servers":              showServers,
		"POST /console/servers/import":      importAll,
		"POST /console/servers/{id}/test":   testServer,
		"POST /console/servers/{id}/import": importServer,
		"GET /console/tools":                showTools,
		"POST /console/tools":               changeTools,
		"GET /console/tools/{name}":         showTool,
		"GET /console/questions":            showQuestions,
		"POST /console/questions/{number}":  decide,
		"GET /console/callers":              showCallers,
		"GET /console/callers/{name}":       showCaller,
		"GET /console/whatif":               showWhatIf,
		"POST /console/whatif":              showWhatIf,
		"GET /console/ledger":               showLedger,
		"GET /console/ledger/{number}":      showStory,
		"POST /console/ledger/verify":       verifyLedger,
		"POST /console/ledger/export":       exportLedger,
		"GET /console/flow":                 showFlow,
		"/console/":                         func(*visit) error { return errNoPage },
	} {
		mux.HandleFunc(pattern, c.signedIn(serve))
	}
	// Host and Origin were checked before us; this also covers a browser that
	// sends no Origin but says that another site caused the request.
	return policy(http.NewCrossOriginProtection().Handler(mux))
}

// policy says what a page of ours may load and where its forms may go: to us
// and nowhere else, and nothing that is written into a page runs.
func policy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "+
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		// Not "no-referrer": with it browsers send their forms from the origin "null".
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		}
		next.ServeHTTP(w, r)
	})
}

// A visit is one request of somebody who is signed in.
type visit struct {
	*Console
	w       http.ResponseWriter
	r       *http.Request
	session *session
	who     *gate.Caller
	api     *control.Local // in the name of who
}

// Errors that choose the answer's status.
var (
	errNoPage  = errors.New("there is no such page")
	errBadForm = errors.New("the form could not be read")
)

// signedIn serves whoever has a session. A page's error is shown as a page.
func (c *Console) signedIn(serve func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// What a script asks for by itself does not keep a session alive: a screen
		// that nobody sits at has to lock.
		s, who := c.sessionOf(r, r.Header.Get("Gatehouse-Live") == "")
		if s == nil {
			c.askToSignIn(w, r)
			return
		}
		v := &visit{c, w, r, s, who, c.api.As(who)}
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				v.fail(errBadForm)
				return
			}
		}
		if err := serve(v); err != nil {
			v.fail(err)
		}
	}
}

// fail shows an error as a page.
func (v *visit) fail(err error) {
	status := http.StatusUnprocessableEntity
	var forbidden *gate.ForbiddenError
	switch {
	case errors.Is(err, errNoPage), errors.Is(err, control.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, errBadForm):
		status = http.StatusBadRequest
	case errors.As(err, &forbidden):
		status = http.StatusForbidden
	}
	v.render(status, "error", "That did not work", control.Visible(err.Error()))
}

// back answers a form: what came of it is shown on the page at path, which a
// reload then asks for again instead of the form.
func (v *visit) back(path string, err error, done string, args ...any) error {
	n := notice{Good: err == nil, Text: fmt.Sprintf(done, args...)}
	if err != nil {
		n.Text = control.Visible(err.Error())
	}
	v.session.tell(n)
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// local returns path when it is a page of ours to go to after signing in.
func local(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, Root) ||
		strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n") {
		return Root
	}
	return path
}
