package client

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"gatehouse/e2e/rig"
)

// TypeScript opens a client of the TypeScript SDK in a process of its own.
func TypeScript(t *testing.T, o Options) Client {
	t.Helper()
	c, failed := startTypeScript(t, o)
	if failed != nil {
		t.Fatalf("the TypeScript client did not connect: %d %s", failed.Code, failed.Message)
	}
	return c
}

// TypeScriptRefused opens a client that is expected not to get in, and returns why.
func TypeScriptRefused(t *testing.T, o Options) Error {
	t.Helper()
	_, failed := startTypeScript(t, o)
	if failed == nil {
		t.Fatal("the TypeScript client connected")
	}
	return *failed
}

func startTypeScript(t *testing.T, o Options) (*typeScript, *Error) {
	t.Helper()
	options, err := json.Marshal(map[string]any{
		"url": o.URL, "token": o.Token, "command": o.Command,
		"answer": o.Answer, "lateMs": o.LateBy.Milliseconds(), "timeoutMs": timeout(o).Milliseconds(),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(rig.Node(t), rig.Root+"/node/client.mjs", string(options))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &typeScript{in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		io.WriteString(in, `{"op":"close"}`+"\n")
		in.Close()
		watch := time.AfterFunc(10*time.Second, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		cmd.Wait()
		watch.Stop()
	})
	var hello struct {
		Connected bool   `json:"connected"`
		Error     *Error `json:"error"`
	}
	c.read(t, &hello)
	return c, hello.Error
}

func timeout(o Options) time.Duration {
	if o.Timeout == 0 {
		return time.Minute
	}
	return o.Timeout
}

type typeScript struct {
	in  io.Writer
	out *bufio.Reader
}

func (c *typeScript) do(t *testing.T, request map[string]any, answer any) {
	t.Helper()
	line, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("the TypeScript client is gone: %v", err)
	}
	c.read(t, answer)
}

func (c *typeScript) read(t *testing.T, answer any) {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the TypeScript client is gone: %v", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		t.Fatalf("the TypeScript client says %q: %v", line, err)
	}
}

func (c *typeScript) List(t *testing.T) []Tool {
	t.Helper()
	var answer struct {
		Tools []Tool
		Error *Error
	}
	c.do(t, map[string]any{"op": "list"}, &answer)
	if answer.Error != nil {
		t.Fatalf("tools/list: %d %s", answer.Error.Code, answer.Error.Message)
	}
	return answer.Tools
}

func (c *typeScript) Call(t *testing.T, name, arguments string, options ...Option) Reply {
	t.Helper()
	o := with(options)
	start := time.Now()
	var r Reply
	c.do(t, map[string]any{
		"op": "call", "name": name, "arguments": arguments,
		"progress": o.progress, "cancelAfterMs": o.cancel.Milliseconds(),
	}, &r)
	r.Took = time.Since(start)
	return r
}

func (c *typeScript) Info(t *testing.T) (string, string) {
	t.Helper()
	var answer struct {
		Server       struct{ Name string }
		Instructions string
	}
	c.do(t, map[string]any{"op": "info"}, &answer)
	return answer.Server.Name, answer.Instructions
}
