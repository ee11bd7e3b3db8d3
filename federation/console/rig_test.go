package console

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/federation/demo"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// The tokens of the rig's callers.
const (
	olga  = "token-of-olga"
	alice = "token-of-alice"
	guest = "token-of-guest"
)

// A rig is a gateway with the demo upstream, imported and enabled, questions at
// the console, and its pages.
type rig struct {
	t       *testing.T
	g       *federation.Gateway
	console *Console
	url     string
	path    string // of the configuration
	more    string // tables of it
	demo    string // url of the upstream
}

func newRig(t *testing.T) *rig { t.Helper(); return newRigWith(t, "") }

// newRigWith is newRig with more tables in its configuration, where URL stands for
// that of the pages.
func newRigWith(t *testing.T, more string) *rig {
	t.Helper()
	up, err := demo.Start("127.0.0.1:0", "1", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close(context.Background()) })
	server := httptest.NewUnstartedServer(nil)
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "gatehouse.toml"), demo: up.URL, url: "http://" + server.Listener.Addr().String()}
	r.more = strings.ReplaceAll(more, "URL", r.url)
	r.write(olga)
	cfg, problems := config.Load(r.path)
	if cfg == nil {
		t.Fatal(problems)
	}
	if r.g, err = federation.Open(t.Context(), cfg, federation.Options{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	r.console = New(r.g)
	r.g.Mount(Root, r.console)
	server.Config.Handler = r.g.Handler()
	server.Start()
	t.Cleanup(func() {
		server.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := r.g.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	api := control.NewLocal(r.g, true)
	if _, err := api.Import(t.Context(), []string{"demo"}, false, false); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Enable(t.Context(), []string{"mcp_demo"}); err != nil {
		t.Fatal(err)
	}
	return r
}

// write writes the configuration, in which olga has that token.
func (r *rig) write(olgasToken string) {
	r.t.Helper()
	text := "[approval]\nchannel = \"console\"\n[network]\nprivate_hosts = [\"127.0.0.1\"]\n" + r.more
	for _, c := range []struct {
		name, token string
		admin       bool
	}{{"olga", olgasToken, true}, {"alice", alice, true}, {"guest", guest, false}} {
		text += fmt.Sprintf("[[caller]]\nname = %q\ntoken = \"sha256:%s\"\nadmin = %v\n", c.name, gate.DigestOf([]byte(c.token)), c.admin)
	}
	text += fmt.Sprintf("[[server]]\nid = \"demo\"\nname = \"Demo <server>\"\nurl = %q\ndata_class = \"public_content\"\n"+
		"[[server]]\nid = \"bare\"\nurl = %q\n", r.demo, r.demo)
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) entries(kind gate.Kind) (out []gate.Entry) {
	r.t.Helper()
	err := ledger.Read(r.g.Config().LedgerDir(), 1, func(_ []byte, e gate.Entry) error {
		if e.Kind == kind {
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// A visitor is one browser. It follows no redirect by itself.
type visitor struct {
	*rig
	client *http.Client
}

func (r *rig) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return &visitor{r, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn is a visitor who came in with a token.
func (r *rig) signedIn(token string) *visitor {
	r.t.Helper()
	v := r.visitor()
	if status, _, _ := v.post("/console/signin", url.Values{"token": {token}}); status != http.StatusSeeOther {
		r.t.Fatalf("signing in: status %d", status)
	}
	return v
}

func (v *visitor) send(req *http.Request) (status int, body string, header http.Header) {
	v.t.Helper()
	resp, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(raw), resp.Header
}

func (v *visitor) get(path string) (status int, body string, header http.Header) {
	v.t.Helper()
	return v.send(v.request(http.MethodGet, path, nil))
}

func (v *visitor) post(path string, form url.Values) (status int, body string, header http.Header) {
	v.t.Helper()
	return v.send(v.request(http.MethodPost, path, form))
}

func (v *visitor) request(method, path string, form url.Values) *http.Request {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req
}

// follow posts a form and returns the page that it leads to.
func (v *visitor) follow(path string, form url.Values) string {
	v.t.Helper()
	status, body, header := v.post(path, form)
	if status != http.StatusSeeOther {
		v.t.Fatalf("POST %s: status %d\n%s", path, status, body)
	}
	to, _, _ := strings.Cut(header.Get("Location"), "#")
	status, body, _ = v.get(to)
	if status != http.StatusOK {
		v.t.Fatalf("GET %s: status %d", to, status)
	}
	return body
}
