package control

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/demo"
)

// A rig is a gateway in front of the demo upstream, imported and enabled, with
// its socket.
type rig struct {
	g      *federation.Gateway
	local  *Local
	remote *Remote
	socket string
}

// newRig takes lines for the file's [approval] table.
func newRig(t *testing.T, approval string) *rig {
	t.Helper()
	up, err := demo.Start("127.0.0.1:0", "1", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close(context.Background()) })
	path := filepath.Join(t.TempDir(), "gatehouse.toml")
	file := fmt.Sprintf(`
[approval]
%s
[network]
private_hosts = ["127.0.0.1"]
[[caller]]
name = "me"
token = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
admin = true
[[caller]]
name = "guest"
token = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
[[server]]
id = "demo"
url = %q
data_class = "public_content"
`, approval, up.URL+"?project=not-for-print")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, problems := config.Load(path)
	if cfg == nil {
		t.Fatal(problems)
	}
	g, err := federation.Open(t.Context(), cfg, federation.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{g: g, local: NewLocal(g, true), socket: cfg.SocketPath()}
	socket, err := Serve(g, r.socket, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if r.remote, err = Dial(t.Context(), r.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.remote.Close()
		for _, err := range []error{socket.Close(ctx), g.Close(ctx)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	reports, err := r.local.Import(t.Context(), nil, true, false)
	if err != nil || len(reports) != 1 || reports[0].Refusal != "" {
		t.Fatalf("import: %+v, %v", reports, err)
	}
	if _, err := r.local.Enable(t.Context(), []string{"mcp_demo"}); err != nil {
		t.Fatal(err)
	}
	return r
}
