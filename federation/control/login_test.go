package control

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gatehouse/federation"
	"gatehouse/federation/config"
)

// A server that refuses our credential twice is left alone by an import of all,
// until the credential is another one; naming it always tries.
func TestImportOfAllLeavesARefusingServerAlone(t *testing.T) {
	var requests atomic.Int64
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(locked.Close)
	t.Setenv("LOCKED_KEY", "first")
	cfg, problems := config.Parse(filepath.Join(t.TempDir(), "gatehouse.toml"), fmt.Appendf(nil, `
[network]
private_hosts = ["127.0.0.1"]
[[server]]
id = "locked"
url = %q
data_class = "public_content"
protocol = "2026-07-28"
[server.auth]
mode = "header"
header = "X-Key"
credential = "env:LOCKED_KEY"
`, locked.URL+"/mcp"))
	if cfg == nil {
		t.Fatal(problems)
	}
	g, err := federation.Open(t.Context(), cfg, federation.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l := NewLocal(g, false)
	// asked imports and says how many requests that was.
	asked := func(ids []string, all bool) int64 {
		t.Helper()
		before := requests.Load()
		reports, err := l.Import(t.Context(), ids, all, false)
		if err != nil || len(reports) != 1 || reports[0].Refusal == "" {
			t.Fatalf("%+v, %v", reports, err)
		}
		if n := requests.Load() - before; n > 0 {
			return n
		}
		if !strings.Contains(reports[0].Refusal, "left alone") {
			t.Errorf("nothing was sent, and the report says %q", reports[0].Refusal)
		}
		return 0
	}
	state := func() string {
		t.Helper()
		servers, err := l.Servers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return servers[0].CredentialState
	}
	if asked(nil, true) != 1 || state() != "ok" {
		t.Errorf("one refusal: state %q", state())
	}
	if asked(nil, true) != 1 || state() != "refused" {
		t.Errorf("two refusals: state %q", state())
	}
	if asked(nil, true) != 0 {
		t.Error("asked again by itself")
	}
	if asked([]string{"locked"}, false) != 1 {
		t.Error("not asked when named")
	}
	t.Setenv("LOCKED_KEY", "second")
	if state() != "ok" || asked(nil, true) != 1 {
		t.Errorf("another credential: state %q", state())
	}
}

// What is wrong about an identity or a login is said before anything is done.
func TestLoginAndRekeyRefuse(t *testing.T) {
	r := newRig(t, "")
	for _, api := range []API{r.local, r.remote} {
		if _, err := api.RekeySecrets(t.Context(), "env:X"); err == nil || !strings.Contains(err.Error(), "no vault") {
			t.Errorf("rekey without a vault: %v", err)
		}
		if _, err := api.BeginLogin(t.Context(), "demo", "http://127.0.0.1:1/callback"); err == nil || !strings.Contains(err.Error(), "auth mode") {
			t.Errorf("login at a server of another mode: %v", err)
		}
		if err := api.FinishLogin(t.Context(), "unknown", nil); err == nil {
			t.Error("a login that nobody began was finished")
		}
		if err := api.Logout(t.Context(), "demo"); err == nil {
			t.Error("logged out where nobody logs in")
		}
	}
}
