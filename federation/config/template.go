package config

import "fmt"

// Template is the file that `gatehouse init` writes: one administrator whose
// token has that digest ("sha256:<hex>"), and the demo server at demoURL, which
// is on loopback. It holds what a first run needs and points at the manual.
func Template(callerName, tokenDigest, demoURL string) string {
	return fmt.Sprintf(`# Gatehouse: one MCP endpoint in front of many servers.
# Every key is explained in config.example.toml; "gatehouse check" says what is
# wrong with this file.

[listen]
address = %q          # anything but loopback needs TLS here

[network]
private_hosts = ["127.0.0.1"]      # hosts that may be private addresses; the demo server is one

# Who may call. A new token and its line: gatehouse token
[[caller]]
name       = %q
token      = %q
admin      = true                  # is offered the tools of servers
trust_zone = "external_global"     # where the model runs that reads the results

# The demo server: gatehouse demo-upstream starts it. Then:
#   gatehouse import demo
#   gatehouse tools enable 'mcp_demo_*'
[[server]]
id         = "demo"
name       = "Demo server"
url        = %q
data_class = "public_content"      # how sensitive its data is; without it nothing is supplied
# requires_approval = false        # only these very words let calls through unasked

# A server of your own:
# [[server]]
# id         = "tickets"
# url        = "https://tickets.example.org/mcp"
# data_class = "editor_content"
# [server.auth]
# mode       = "bearer"
# credential = "env:TICKETS_TOKEN" # a reference, never the token itself
`, defaultAddress, callerName, tokenDigest, demoURL)
}
