package scenarios

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

// patience bounds what a browser does once it is asked to.
const patience = 30 * time.Second

// A published server whose tools are of no use without a session: a page that one
// call opens is read by the next. Two callers browse at once, each in a browser
// that the other never sees, and when they leave their browsers end too.
func TestCallersBrowseApart(t *testing.T) {
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>%[1]s</title><h1>%[1]s</h1>", heading(r.URL.Path))
	}))
	t.Cleanup(pages.Close)
	server := chromium(t)
	direct, dir := server.Start(t)
	seen := watch(t, direct)
	const idle = 8 * time.Second // longer than one caller waits for the other between two calls
	g := rig.New(t, rig.Settings{Callers: callers, Servers: []rig.Upstream{
		{ID: "kept", URL: seen.url, Free: true, Extra: `session = "caller"`},
		{ID: "brief", URL: seen.url, Free: true, Extra: fmt.Sprintf("session = \"caller\"\nsession_idle = %q", idle)},
		{ID: "fresh", URL: seen.url, Free: true},
	}, Extra: "[operation]\ntimeout = \"60s\""})
	g.Serve(t)
	g.Open(t)
	seen.wantEnded(t, "the imports", patience)

	// Clients of the 2026 era have no session to leave; theirs end unused.
	t.Run("go-2026", func(t *testing.T) { browse(t, g, client.Go, "brief", pages.URL) })
	unused := seen.open()
	if len(unused) != 2 {
		t.Errorf("two callers left the sessions %q, want two", unused)
	}
	if running := processes(t, dir); len(running) == 0 {
		t.Error("no browser runs while two sessions are kept; the test does not find the processes")
	}

	// Clients of the 2025 era leave with a DELETE, long before theirs would be unused.
	t.Run("typescript-2025", func(t *testing.T) { browse(t, g, client.TypeScript, "kept", pages.URL) })
	seen.wantEnded(t, "callers that left", patience, unused...)
	seen.wantEnded(t, "callers that stayed away", idle+patience)

	// With a session for each call there is no page left to read.
	t.Run("fresh", func(t *testing.T) {
		c := client.Go(t, client.Options{URL: g.URL, Token: g.Token(t, "alice"), Answer: client.None})
		if r := c.Call(t, "mcp_fresh_browser_navigate", target(pages.URL, "/alice")); !r.OK() || !strings.Contains(r.Text(), heading("/alice")) {
			t.Fatalf("browser_navigate: %s", r)
		}
		if r := c.Call(t, "mcp_fresh_browser_snapshot", `{}`); strings.Contains(r.Text(), heading("/alice")) {
			t.Errorf("a fresh session shows the page of another: %s", r)
		}
	})
	seen.wantEnded(t, "the calls", patience)

	for limit := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		running := processes(t, dir)
		if len(running) == 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("every session has ended, and still there run %q", running)
		}
	}
}

// browse has two callers open a page each, at once, and then read it again and
// again, each time at the same time as the other.
func browse(t *testing.T, g *rig.Gatehouse, open func(*testing.T, client.Options) client.Client, server, pages string) {
	people := []string{"alice", "carol"}
	clients := map[string]client.Client{}
	for _, who := range people {
		clients[who] = open(t, client.Options{URL: g.URL, Token: g.Token(t, who), Answer: client.None})
	}
	together := func(tool string, arguments func(who string) string) {
		var group sync.WaitGroup
		for i, who := range people {
			own, others := heading("/"+who), heading("/"+people[1-i])
			group.Go(func() {
				r := clients[who].Call(t, "mcp_"+server+"_"+tool, arguments(who))
				if !r.OK() || !strings.Contains(r.Text(), own) || strings.Contains(r.Text(), others) {
					t.Errorf("%s of %s: want %q and not %q: %s", tool, who, own, others, r)
				}
			})
		}
		group.Wait()
	}
	together("browser_navigate", func(who string) string { return target(pages, "/"+who) })
	for range 4 {
		together("browser_snapshot", func(string) string { return `{}` })
	}
}

func heading(path string) string { return "this is the page " + path }

func target(pages, path string) string { return fmt.Sprintf(`{"url":%q}`, pages+path) }

// chromium is the published browser server with a browser to drive. Without
// --isolated its sessions would share one profile, which the first one locks.
func chromium(t *testing.T) rig.Server {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("no Chromium; apt-get install -y chromium")
	}
	i := slices.IndexFunc(rig.Published, func(s rig.Server) bool { return s.ID == "browser" })
	s := rig.Published[i]
	s.Command = []string{"{module}/cli.js", "--headless", "--isolated", "--no-sandbox",
		"--host", s.Host, "--port", "{port}", "--output-dir", "{dir}", "--executable-path", path}
	return s
}

// processes lists the browsers that a server with this home has started.
func processes(t *testing.T, home string) []string {
	t.Helper()
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, folder := range folders {
		command, _ := os.ReadFile(folder + "/cmdline") // a process may end meanwhile
		environment, _ := os.ReadFile(folder + "/environ")
		if strings.Contains(string(command), "chromium") && !strings.Contains(string(command), "cli.js") &&
			slices.Contains(strings.Split(string(environment), "\x00"), "HOME="+home) {
			found = append(found, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return found
}

// A watched server shows which of its sessions were begun and which were ended.
type watched struct {
	url string

	mu      sync.Mutex
	begun   map[string]bool // guarded by mu, as is the other
	deletes map[string]int
}

// watch puts a proxy in front of a server.
func watch(t *testing.T, server string) *watched {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{begun: map[string]bool{}, deletes: map[string]int{}}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, to.Host
		},
		ModifyResponse: func(r *http.Response) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if r.Request.Method == http.MethodDelete {
				w.deletes[r.Request.Header.Get(sessionHeader)]++
			} else if id := r.Header.Get(sessionHeader); id != "" {
				w.begun[id] = true
			}
			return nil
		},
		FlushInterval: -1,
	})
	t.Cleanup(proxy.Close)
	w.url = proxy.URL + to.Path
	return w
}

const sessionHeader = "Mcp-Session-Id"

// open lists the sessions that were begun and not yet ended.
func (w *watched) open() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(w.begun)) {
		if w.deletes[id] == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// wantEnded waits until every session but some has had its one DELETE.
func (w *watched) wantEnded(t *testing.T, whose string, within time.Duration, but ...string) {
	t.Helper()
	for limit := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		open := slices.DeleteFunc(w.open(), func(id string) bool { return slices.Contains(but, id) })
		if len(open) == 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%s: after %s the sessions %q are not ended", whose, within, open)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, n := range w.deletes {
		if n != 1 || !w.begun[id] {
			t.Errorf("%s: the session %q was ended %d times, begun %v", whose, id, n, w.begun[id])
		}
	}
}
