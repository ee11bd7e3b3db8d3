package scenarios

import (
	"testing"

	"gatehouse/e2e/client"
	"gatehouse/e2e/rig"
)

// The Python SDK: FastMCP of its first version in the 2025 era, its second
// version in the 2026 one.
func TestPythonServers(t *testing.T) {
	for version, era := range map[string]string{"v1": "2025-11-25", "v2": "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			g := rig.New(t, rig.Settings{Callers: callers, Servers: []rig.Upstream{{ID: "letters", URL: rig.Python(t, version), Free: true}}})
			g.Serve(t)
			g.Open(t)
			if servers := rig.JSON[server](t, g, "servers", "list"); len(servers) != 1 || servers[0].Era != era || servers[0].Tools != 1 {
				t.Errorf("servers list says %+v, want one of %s with one tool", servers, era)
			}
			eachKind(t, func(t *testing.T, k client.Kind) {
				c := k.Open(t, client.Options{URL: g.URL, Token: g.Token(t, "alice"), Answer: client.None})
				if r := c.Call(t, "mcp_letters_count_letters", `{"text":"banana","letter":"a"}`); !r.OK() || !r.OnWire(`"structuredContent":{"result":3}`) {
					t.Errorf("count_letters: %s", r)
				}
			})
		})
	}
}
