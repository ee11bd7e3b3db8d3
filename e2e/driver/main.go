// Command driver is what the conformance suite runs in client mode: it makes the
// suite's server an upstream of Gatehouse and works it with gatehouse import and
// gatehouse call, as an operator would.
//
//	GATEHOUSE=bin/gatehouse MCP_CONFORMANCE_SCENARIO=tools_call driver http://localhost:1234/mcp
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const configuration = `
[network]
private_hosts = ["127.0.0.1", "localhost"]

[[caller]]
name = "suite"
token = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
admin = true
trust_zone = "local"
max_calls_per_minute = 0

[[server]]
id = "conf"
name = "The suite's server"
url = %q
data_class = "public_content"
requires_approval = false
`

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: driver URL")
	}
	dir, err := os.MkdirTemp("", "gatehouse-driver-")
	if err != nil {
		log.Fatal(err)
	}
	err = drive(dir, os.Args[1])
	os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

func drive(dir, url string) error {
	g := gatehouse{config: filepath.Join(dir, "gatehouse.toml")}
	if err := os.WriteFile(g.config, fmt.Appendf(nil, configuration, url), 0o600); err != nil {
		return err
	}
	if _, err := g.run("import", "conf"); err != nil {
		return err
	}
	var tools []tool
	out, err := g.run("tools", "list", "mcp_conf", "--json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, &tools); err != nil {
		return fmt.Errorf("tools list printed %q: %w", out, err)
	}
	for _, t := range tools {
		if t.Name != "" && t.State == "disabled" {
			if _, err := g.run("tools", "enable", t.Name); err != nil {
				return err
			}
		}
	}
	for _, c := range calls(g, tools) {
		// A tool that fails is the scenario's business, and on stderr.
		if _, err := g.run("call", c.name, "--caller", "suite", "--args", c.arguments); err != nil {
			log.Print(err)
		}
	}
	return nil
}

// A tool is what the driver reads of a line of tools list and of tools show.
type tool struct {
	Name   string `json:"name"`
	Remote string `json:"remote_name"`
	State  string `json:"state"`
	Raw    struct {
		InputSchema json.RawMessage `json:"inputSchema"`
	} `json:"raw"`
}

type call struct{ name, arguments string }

// calls says what a scenario wants called. Without wishes of its own: every tool.
func calls(g gatehouse, tools []tool) []call {
	local := map[string]string{}
	for _, t := range tools {
		if t.Name != "" {
			local[t.Remote] = t.Name
		}
	}
	var list []call
	switch os.Getenv("MCP_CONFORMANCE_SCENARIO") {
	case "tools_call":
		return []call{{local["add_numbers"], `{"a":2,"b":3}`}}
	case "http-custom-headers":
		var wishes struct {
			ToolCalls []struct {
				Name      string
				Arguments json.RawMessage
			} `json:"toolCalls"`
		}
		if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &wishes); err != nil {
			log.Printf("the scenario's context: %v", err)
		}
		for _, w := range wishes.ToolCalls {
			list = append(list, call{local[w.Name], string(w.Arguments)})
		}
		return list
	case "http-invalid-tool-headers":
		for _, t := range tools {
			if t.Name != "" {
				list = append(list, call{t.Name, `{"region":"us-west1"}`})
			}
		}
		return list
	case "json-schema-2020-12-preservation":
		return []call{{local["json_schema_echo"], `{"schema":` + schema(g, local["json_schema_2020_12_tool"]) + `}`}}
	}
	for _, t := range tools {
		if t.Name != "" {
			list = append(list, call{t.Name, `{}`})
		}
	}
	return list
}

// schema returns a tool's schema as the catalogue keeps it.
func schema(g gatehouse, name string) string {
	var shown tool
	out, err := g.run("tools", "show", name, "--json")
	if err == nil {
		err = json.Unmarshal(out, &shown)
	}
	if err != nil {
		log.Print(err)
	}
	return string(shown.Raw.InputSchema)
}

type gatehouse struct{ config string }

func (g gatehouse) run(args ...string) ([]byte, error) {
	cmd := exec.Command(os.Getenv("GATEHOUSE"), append([]string{"--config", g.config}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("gatehouse %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
