package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A buffer can be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestTheServiceManagerIsTold: ready, alive again and again, stopping.
func TestTheServiceManagerIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "gh") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Close() })
	config := filepath.Join(dir, "gatehouse.toml")
	if err := os.WriteFile(config, []byte("[listen]\naddress = \"127.0.0.1:0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": fmt.Sprint(os.Getpid())}
	ctx, stop := context.WithCancel(t.Context())
	var out, log buffer
	done := make(chan int, 1)
	go func() {
		done <- Run(ctx, "test", []string{"--config", config, "serve"}, strings.NewReader(""), &out, &log, func(k string) string { return env[k] })
	}()
	hear := func() string {
		b := make([]byte, 4<<10)
		manager.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := manager.Read(b)
		if err != nil {
			stop()
			<-done
			t.Fatalf("%v; %s %s", err, out.String(), log.String())
		}
		return string(b[:n])
	}
	if got := hear(); !strings.HasPrefix(got, "READY=1\nSTATUS=serving http://127.0.0.1:") {
		t.Errorf("first it says %q", got)
	}
	for range 3 {
		if got := hear(); !strings.HasPrefix(got, "WATCHDOG=1\n") {
			t.Errorf("then it says %q", got)
		}
	}
	stop()
	last := hear()
	for strings.HasPrefix(last, "WATCHDOG=1") {
		last = hear()
	}
	if !strings.HasPrefix(last, "STOPPING=1\nEXTEND_TIMEOUT_USEC=") {
		t.Errorf("at the end it says %q", last)
	}
	if code := <-done; code != exitDone {
		t.Errorf("exit code %d: %s", code, log.String())
	}
	if strings.Contains(log.String(), "service manager") {
		t.Errorf("log: %s", log.String())
	}
}

// TestNobodyIsTold: without a manager, or with one that means another process.
func TestNobodyIsTold(t *testing.T) {
	env := map[string]string{"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
	a := &app{getenv: func(k string) string { return env[k] }}
	if s := a.supervised(nil); s.socket != "" || s.beat != 0 {
		t.Errorf("got %+v", s)
	}
	supervisor{}.tell("READY=1") // no logger, no socket, no panic
}

func TestLogsAreTextForPeopleAndJSONOtherwise(t *testing.T) {
	for format, want := range map[string]string{"": `"msg":"hello"`, "json": `"msg":"hello"`, "text": `msg=hello`} {
		var out bytes.Buffer
		logger, err := (&app{stderr: &out}).logger(&out, false, format)
		if err != nil {
			t.Fatal(err)
		}
		logger.Debug("hidden")
		if logger.Info("hello"); !strings.Contains(out.String(), want) || strings.Contains(out.String(), "hidden") {
			t.Errorf("--log %q: %s", format, out.String())
		}
	}
	if _, err := (&app{}).logger(io.Discard, false, "xml"); err == nil {
		t.Error("xml is a format")
	}
}
