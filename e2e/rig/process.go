// Package rig starts what the outside tests are made of: the gatehouse binary
// with a configuration of its own, and upstream servers, each as a process on a
// free loopback port that is gone when its test ends.
package rig

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest/leak"
)

// ready bounds how long a process may take until it accepts connections; Node
// servers on a busy machine of two cores need some seconds.
const ready = 60 * time.Second

// A Process is a server that runs until its test ends or Kill.
type Process struct {
	Name string
	Port int

	cmd    *exec.Cmd
	output lockedBuffer
	ended  chan struct{} // closed when the process has been waited for
	once   sync.Once     // a process group's number may be used again
}

// Start runs a command, and returns when port accepts connections. env is added
// to this process's environment.
func Start(t *testing.T, name string, port int, env []string, command ...string) *Process {
	t.Helper()
	p := &Process{Name: name, Port: port, ended: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a bridge's children end with it
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() { // ends with the process, which the cleanup below ends
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		leak.Write(t, name+".out", p.Output())
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.Output())
		}
	})
	for limit := time.Now().Add(ready); ; {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			conn.Close()
			return p
		}
		select {
		case <-p.ended:
			t.Fatalf("%s ended before it served:\n%s", name, p.Output())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(limit) {
			t.Fatalf("%s does not accept connections on port %d after %s:\n%s", name, port, ready, p.Output())
		}
	}
}

// Kill ends the process and its children with SIGKILL and waits for it.
func (p *Process) Kill() {
	p.once.Do(func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	<-p.ended
}

// Stop asks the process to end and returns its exit code.
func (p *Process) Stop(t *testing.T) int {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(ready):
		t.Fatalf("%s still runs %s after SIGTERM:\n%s", p.Name, ready, p.Output())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Dump has the process end with a dump of all that runs, and returns what it has
// written.
func (p *Process) Dump(t *testing.T) string {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(ready):
		t.Errorf("%s still runs %s after SIGQUIT", p.Name, ready)
	}
	return p.Output()
}

// Output returns what the process has written so far.
func (p *Process) Output() string { return p.output.String() }

// FreePort returns a loopback port that was free a moment ago.
func FreePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs a command to its end, within a minute.
func Run(t *testing.T, stdin string, command ...string) Result {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watch := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer watch.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", strings.Join(command, " "), err)
	}
	leak.Write(t, "commands.out", stdout.String()+stderr.String())
	return Result{Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}
}

// lockedBuffer collects the output of a process while others read it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
