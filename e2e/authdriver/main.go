// Command authdriver is what the conformance suite runs in client mode for its
// authorization scenarios: it makes the suite's server an upstream that is logged
// in at, and does what an operator with a browser would.
//
//	GATEHOUSE=bin/gatehouse MCP_CONFORMANCE_SCENARIO=auth/basic-cimd authdriver http://localhost:1234/mcp
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// identity opens the vault of these runs, which live for seconds.
const identity = "AGE-SECRET-KEY-16N8A6AKNPSM995A0TR32K9JEKXJU49WQDTLST4MPTD86XHKH2EHSQJNPTS\n"

const configuration = `
[listen]
public_url = "https://conformance-test.local"

[network]
private_hosts = ["127.0.0.1", "localhost"]

[vault]
identity = "file:%s"

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
[server.auth]
mode = "oauth"
%s
`

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: authdriver URL")
	}
	dir, err := os.MkdirTemp("", "gatehouse-authdriver-")
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
	key := filepath.Join(dir, "vault.age")
	if err := os.WriteFile(key, []byte(identity), 0o600); err != nil {
		return err
	}
	g := gatehouse{config: filepath.Join(dir, "gatehouse.toml")}
	if err := os.WriteFile(g.config, fmt.Appendf(nil, configuration, key, url, client()), 0o600); err != nil {
		return err
	}
	if err := g.logIn(); err != nil {
		return err
	}
	_, err := g.run("import", "conf")
	if err != nil && os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/authorization-server-migration" {
		// The server has moved to another authorization server, which the operator
		// is told as a login that is needed.
		if err := g.logIn(); err != nil {
			return err
		}
		_, err = g.run("import", "conf")
	}
	if err != nil {
		return err
	}
	if _, err := g.run("tools", "enable", "mcp_conf_*"); err != nil {
		return err
	}
	var tools []struct{ Name, State string }
	out, err := g.run("tools", "list", "mcp_conf", "--json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, &tools); err != nil {
		return fmt.Errorf("tools list printed %q: %w", out, err)
	}
	for _, t := range tools {
		if t.State != "enabled" {
			continue
		}
		// A tool that fails is the scenario's business, and on stderr. The operator
		// who reads that another login may help tries it, once.
		_, err := g.run("call", t.Name, "--caller", "suite", "--args", "{}")
		if err != nil && os.Getenv("MCP_CONFORMANCE_SCENARIO") == "auth/scope-step-up" {
			if err := g.logIn(); err != nil {
				return err
			}
			_, err = g.run("call", t.Name, "--caller", "suite", "--args", "{}")
		}
		if err != nil {
			log.Print(err)
		}
	}
	return nil
}

// client is the scenario's client, when it brings one.
func client() string {
	var context struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &context); err != nil || context.ID == "" {
		return ""
	}
	if err := os.Setenv("CLIENT_SECRET", context.Secret); err != nil {
		log.Print(err)
	}
	return fmt.Sprintf("client_id = %q\nclient_secret = \"env:CLIENT_SECRET\"", context.ID)
}

type gatehouse struct{ config string }

func (g gatehouse) command(args ...string) *exec.Cmd {
	return exec.Command(os.Getenv("GATEHOUSE"), append([]string{"--config", g.config}, args...)...)
}

func (g gatehouse) run(args ...string) ([]byte, error) {
	cmd := g.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("gatehouse %s: %w\n%s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

var authorize = regexp.MustCompile(`^https?://\S+[?&]response_type=code(&\S*)?$`)

// logIn runs gatehouse login and opens the url that it prints.
func (g gatehouse) logIn() error {
	cmd := g.command("login", "conf")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	browser := &http.Client{Timeout: 10 * time.Second}
	var opening error
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if !authorize.MatchString(lines.Text()) {
			continue
		}
		resp, err := browser.Get(lines.Text())
		if err != nil {
			opening = err
			cmd.Process.Kill() // nobody will come back
			continue
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			opening = fmt.Errorf("the browser ended on %s", resp.Status)
			cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err != nil {
		return errors.Join(fmt.Errorf("gatehouse login: %w\n%s", err, stderr.Bytes()), opening)
	}
	return nil
}
