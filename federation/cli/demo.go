package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"gatehouse/federation"
	"gatehouse/federation/caller"
	"gatehouse/federation/config"
	"gatehouse/federation/console"
	"gatehouse/federation/control"
	"gatehouse/federation/demo"
)

// The demo's caller and what it is told to try.
const (
	demoCaller    = "me"
	demoTool      = "mcp_demo_notes_search"
	demoArguments = `{"words":"coffee"}`
)

// serveDemo serves a gateway that needs nothing and leaves nothing: state in a
// directory that goes away with it, an upstream in this process.
func (a *app) serveDemo(ctx context.Context, logger *slog.Logger) (err error) {
	if a.configPath != "" {
		return usagef("serve --demo brings its own configuration; leave --config out")
	}
	dir, err := os.MkdirTemp("", "gatehouse-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	upstream, err := demo.Start("127.0.0.1:0", a.version, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.closeWithin(ctx, upstream.Close)) }()

	token, digest := caller.NewToken()
	a.configPath = filepath.Join(dir, defaultConfig)
	text := config.Template(demoCaller, "sha256:"+digest.String(), upstream.URL)
	if err := os.WriteFile(a.configPath, []byte(text), 0o600); err != nil {
		return err
	}
	cfg, problems := config.Load(a.configPath)
	if cfg == nil {
		return problems
	}
	if cfg.Listen.Address, err = freeAddress(cfg.Listen.Address); err != nil {
		return err
	}
	return a.serve(ctx, cfg, logger, false, func(g *federation.Gateway) error {
		return a.announceDemo(ctx, g, token)
	})
}

// freeAddress is address, or another port of its host when that one is taken.
func freeAddress(address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		host, _, _ := net.SplitHostPort(address)
		if l, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
			return "", err
		}
	}
	return l.Addr().String(), l.Close()
}

// announceDemo imports and enables everything, and says how to use it.
func (a *app) announceDemo(ctx context.Context, g *federation.Gateway, token string) error {
	api := control.NewLocal(g, true)
	reports, err := api.Import(ctx, []string{"demo"}, false, false)
	if err != nil {
		return err
	}
	if reports[0].Refusal != "" {
		return fmt.Errorf("the demo upstream could not be imported: %s", reports[0].Refusal)
	}
	if _, err := api.Enable(ctx, []string{"mcp_demo"}); err != nil {
		return err
	}
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	client, err := json.MarshalIndent(map[string]any{"mcpServers": map[string]any{"gatehouse": map[string]any{
		"type": "http", "url": status.URL, "headers": map[string]string{"Authorization": "Bearer " + token}}}}, "  ", "  ")
	if err != nil {
		return err
	}
	a.printf("serving the demo at %s, gone when it stops\n", status.URL)
	a.printf("%s imported, %d enabled; each call asks a person first\n\n", count(status.Tools, "tool"), status.Enabled)
	a.printf("token of caller %q:\n  %s\n\n", demoCaller, token)
	a.printf("pages for operators, with the same token:\n  %s%s\n\n", g.PublicURL(), console.Root)
	a.printf("for an MCP client's configuration:\n  %s\n\n", client)
	a.printf("for Claude Code:\n  claude mcp add --transport http gatehouse %s --header 'Authorization: Bearer %s'\n\n", status.URL, token)
	a.printf("the catalogue, with curl:\n  curl -s %s -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' -d '%s'\n\n",
		status.URL, token, demoListing)
	a.printf("next, in another terminal, a call that asks you first:\n  %s\n", a.command("call "+demoTool+" --args '"+demoArguments+"'"))
	return nil
}

const demoListing = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"curl","version":"8"}}}}`
