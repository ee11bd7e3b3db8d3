package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/federation"
	"gatehouse/gate"
)

// paths are every page.
var paths = []string{"/console/", "/console/servers", "/console/tools", "/console/tools?q=notes&state=enabled&server=demo", "/console/tools/mcp_demo_notes_add",
	"/console/tools/gatehouse_status", "/console/questions", "/console/callers", "/console/callers/olga", "/console/callers/guest?q=notes",
	"/console/whatif", "/console/whatif?caller=guest&tool=mcp_demo_notes_add", "/console/ledger", "/console/ledger?kind=enable&caller=operator&tool=notes&from=2020-01-01T00:00",
	"/console/ledger/1", "/console/flow", "/console/flow?span=day"}

func TestEveryPage(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	for _, path := range paths {
		status, body, header := v.get(path)
		if status != http.StatusOK || body == "" {
			t.Errorf("GET %s: status %d", path, status)
		}
		policy := header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || header.Get("Cache-Control") != "no-store" {
			t.Errorf("GET %s: policy %q, caching %q", path, policy, header.Get("Cache-Control"))
		}
		if strings.Contains(body, "<server>") || strings.Contains(body, "style=") || strings.Contains(body, "<script>") {
			t.Errorf("GET %s: a name became markup, or something is inline", path)
		}
	}
	for _, path := range []string{"/console/nothing", "/console/tools/mcp_demo_nothing", "/console/callers/nobody", "/console/ledger/x"} {
		if status, _, _ := v.get(path); status != http.StatusNotFound {
			t.Errorf("GET %s: status %d", path, status)
		}
	}
}

func TestNobodySignedIn(t *testing.T) {
	r := newRig(t)
	v := r.visitor()
	for _, path := range paths {
		status, _, header := v.get(path)
		if status != http.StatusSeeOther || header.Get("Location") != "/console/signin?to="+url.QueryEscape(path) {
			t.Errorf("GET %s: status %d to %q", path, status, header.Get("Location"))
		}
	}
	for _, path := range []string{"/console/tools", "/console/servers/import", "/console/servers/demo/test", "/console/ledger/export", "/console/questions/1", "/console/signout"} {
		if status, body, _ := v.post(path, url.Values{"action": {"disable:mcp_demo"}}); status != http.StatusSeeOther || body != "" {
			t.Errorf("POST %s: status %d %q", path, status, body)
		}
	}
	if n := len(r.entries(gate.KindDisable)) + len(r.entries(gate.KindExport)) + len(r.entries(gate.KindTest)); n != 0 {
		t.Errorf("%d acts of somebody who is not signed in are on record", n)
	}
	req := v.request(http.MethodGet, "/console/live", nil)
	req.Header.Set("Gatehouse-Live", "1")
	if status, _, _ := v.send(req); status != http.StatusUnauthorized {
		t.Errorf("a script without a session: status %d", status)
	}
}

func TestSignIn(t *testing.T) {
	r := newRig(t)
	for name, test := range map[string]struct{ token, reason string }{
		"wrong":            {"guess", "unknown_token"},
		"empty":            {"", "unknown_token"},
		"no administrator": {guest, "no_administrator"},
	} {
		before := len(r.entries(gate.KindAuthFailure))
		v := r.visitor()
		status, body, header := v.post("/console/signin", url.Values{"token": {test.token}})
		if status != http.StatusUnauthorized || header.Get("Set-Cookie") != "" || !strings.Contains(body, "not the token of an administrator") {
			t.Errorf("%s: status %d, cookie %q", name, status, header.Get("Set-Cookie"))
		}
		if test.token != "" && strings.Contains(body, test.token) {
			t.Errorf("%s: the page repeats the token", name)
		}
		if err := r.g.Ledger.Append(t.Context(), &gate.Entry{Kind: gate.KindTest}); err != nil { // what was handed over before is written by then
			t.Fatal(err)
		}
		failures := r.entries(gate.KindAuthFailure)
		if len(failures) != before+1 || failures[before].Reason != "console_"+test.reason {
			t.Errorf("%s: on record are %+v", name, failures[before:])
		}
	}
	status, _, header := r.visitor().post("/console/signin", url.Values{"token": {" " + olga + "\n"}, "to": {"/console/flow"}})
	cookie := header.Get("Set-Cookie")
	if status != http.StatusSeeOther || header.Get("Location") != "/console/flow" {
		t.Errorf("status %d to %q", status, header.Get("Location"))
	}
	for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/console/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q; want %s", cookie, want)
		}
	}
	if strings.Contains(cookie, "Secure") {
		t.Error("the cookie is for TLS only, and there is none")
	}
	if in := r.entries(gate.KindLogin); len(in) != 1 || in[0].Caller != "olga" || in[0].Via != federation.Console {
		t.Errorf("on record are %+v", in)
	}
}

func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(r *rig, v *visitor){
		"sign out": func(r *rig, v *visitor) {
			v.post("/console/signout", nil)
			if n := len(r.entries(gate.KindLogin)); n != 2 {
				t.Errorf("%d entries of signing in and out", n)
			}
		},
		"idle, though a script asks": func(r *rig, v *visitor) {
			now := time.Now()
			r.console.sessions.now = func() time.Time { return now }
			for range 4 {
				now = now.Add(idleLimit / 3)
				req := v.request(http.MethodGet, "/console/questions", nil)
				req.Header.Set("Gatehouse-Live", "1")
				v.send(req)
			}
		},
		"too long, though used": func(r *rig, v *visitor) {
			now := time.Now()
			r.console.sessions.now = func() time.Time { return now }
			for range lifeLimit / (idleLimit / 2) {
				now = now.Add(idleLimit / 2)
				v.get("/console/")
			}
		},
		"another token": func(r *rig, _ *visitor) {
			r.write("another")
			if _, err := r.g.ReloadFile(t.Context(), "test", fileDigest(t, r.path)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			v := r.signedIn(olga)
			if status, _, _ := v.get("/console/"); status != http.StatusOK {
				t.Fatalf("before: status %d", status)
			}
			end(r, v)
			if status, _, _ := v.get("/console/"); status != http.StatusSeeOther {
				t.Errorf("after: status %d", status)
			}
		})
	}
}

func TestOtherSitesCannotAct(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	for name, header := range map[string][2]string{
		"another site":   {"Sec-Fetch-Site", "cross-site"},
		"another host":   {"Sec-Fetch-Site", "same-site"},
		"another origin": {"Origin", "https://evil.example"},
		"no origin":      {"Origin", "null"},
	} {
		req := v.request(http.MethodPost, "/console/tools", url.Values{"action": {"disable"}, "tool": {"mcp_demo_notes_add x"}})
		req.Header.Set(header[0], header[1])
		if status, _, _ := v.send(req); status != http.StatusForbidden {
			t.Errorf("%s: status %d", name, status)
		}
	}
	if n := len(r.entries(gate.KindDisable)); n != 0 {
		t.Errorf("%d tools were disabled", n)
	}
	req := v.request(http.MethodPost, "/console/tools", url.Values{"action": {"disable"}, "tool": {"mcp_demo_notes_add x"}})
	req.Header.Set("Origin", r.url)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if status, _, _ := v.send(req); status != http.StatusSeeOther {
		t.Errorf("our own page: status %d", status)
	}
	if n := len(r.entries(gate.KindDisable)); n != 1 {
		t.Errorf("%d tools were disabled by our own page", n)
	}
}

func TestLocal(t *testing.T) {
	for path, want := range map[string]string{
		"/console/flow?span=day":        "/console/flow?span=day",
		"":                              Root,
		"/mcp":                          Root,
		"//evil.example/console/":       Root,
		"https://evil.example/console/": Root,
		"/console/\r\nSet-Cookie: a":    Root,
		`/console/\evil`:                Root,
		"javascript:alert(1)":           Root,
	} {
		if got := local(path); got != want {
			t.Errorf("local(%q) = %q, want %q", path, got, want)
		}
	}
}
