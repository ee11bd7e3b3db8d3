package config

import (
	"testing"
	"time"
)

// The strict client gets the servers that can be reached, with what their
// tables and the general ones say.
func TestUpstreamServers(t *testing.T) {
	c := mustParse(t, `
operation.timeout = "30s"
[[caller]]
name = "a"
token = "env:A"
[[server]]
id = "off"
url = "https://off.example.org/mcp"
data_class = "public_content"
enabled = false
[[server]]
id = "nowhere"
data_class = "public_content"
[[server]]
id = "docs"
url = "https://docs.example.org/mcp"
data_class = "public_content"
protocol = "2025-11-25"
session = "caller"
session_idle = "1m"
max_sessions = 4
max_response = "4MiB"
ca_file = "ca.pem"
`)
	servers := c.UpstreamServers()
	if len(servers) != 1 {
		t.Fatalf("%d servers, want 1", len(servers))
	}
	s := servers[0]
	if s.ID != "docs" || s.Name != "docs" || s.URL != "https://docs.example.org/mcp" || s.Timeout != 30*time.Second || s.Protocol != "2025-11-25" ||
		s.Session != "caller" || s.SessionIdle != time.Minute || s.MaxSessions != 4 || s.MaxResponse != 4<<20 || s.TLS.CAFile != "/etc/gatehouse/ca.pem" {
		t.Errorf("server %+v", s)
	}
}
