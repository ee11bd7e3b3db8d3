package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gatehouse": main, "mcppost": mcppost})
}

// mcppost URL FILE posts a message as the caller whose token is "test", and
// prints status and body: a caller of its own process, for calls that take long.
func mcppost() {
	message, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, os.Args[1], bytes.NewReader(message))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer test")
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d %s\n", resp.StatusCode, body)
}

// TestScript runs the binary as an operator does: one theme a file.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":    code,
			"ports":   ports,
			"expand":  expand,
			"await":   await,
			"screen":  screen,
			"waiting": waiting,
			"running": running,
			"sigterm": sigterm,
			"until":   until,
			"demo":    demo,
			"post":    post,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// code N command... runs a command that must exit with N.
func code(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: code N command...")
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// ports NAME... puts free loopback ports into variables.
func ports(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		defer l.Close()
		ts.Setenv(name, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
}

// expand FILE... replaces $NAME in files by the script's variables.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// await URL waits until something answers there at all.
func await(ts *testscript.TestScript, _ bool, args []string) {
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		resp, err := client.Get(args[0])
		if err == nil {
			resp.Body.Close()
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: %v", args[0], err)
		}
	}
}

// waiting waits until a call waits for a person, and puts its number into
// APPROVAL.
func waiting(ts *testscript.TestScript, _ bool, _ []string) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		ts.Check(ts.Exec("gatehouse", "approvals", "list", "--json"))
		var open []struct{ Number uint64 }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &open))
		if len(open) > 0 {
			ts.Setenv("APPROVAL", strconv.FormatUint(open[0].Number, 10))
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no call waits for a person")
		}
	}
}

// running N waits until N calls are on record and under way.
func running(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ts.Check(ts.Exec("gatehouse", "audit", "verify", "--json"))
		var report struct{ Unsettled []uint64 }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &report))
		if strconv.Itoa(len(report.Unsettled)) == args[0] {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%d calls are under way, want %s", len(report.Unsettled), args[0])
		}
	}
}

// sigterm COMMAND sends SIGTERM, as service managers do, to the background
// processes of that command of gatehouse.
func sigterm(ts *testscript.TestScript, _ bool, args []string) {
	sent := false
	for _, c := range ts.BackgroundCmds() {
		if slices.Contains(c.Args, args[0]) {
			ts.Check(c.Process.Signal(syscall.SIGTERM))
			sent = true
		}
	}
	if !sent {
		ts.Fatalf("no background process runs %s", args[0])
	}
}

// demo waits until `serve --demo` is ready, and puts its configuration's path
// into CONFIG.
func demo(ts *testscript.TestScript, _ bool, _ []string) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		found, err := filepath.Glob(filepath.Join(ts.Getenv("TMPDIR"), "gatehouse-demo-*", "gatehouse.db.sock"))
		ts.Check(err)
		if len(found) > 0 {
			config := filepath.Join(filepath.Dir(found[0]), "gatehouse.toml")
			if ts.Exec("gatehouse", "--config", config, "call", "gatehouse_status") == nil &&
				bytes.Contains([]byte(ts.ReadFile("stdout")), []byte("12 enabled")) {
				ts.Setenv("CONFIG", config)
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the demo is not ready")
		}
	}
}

// post STATUS URL AUTHORIZATION FILE posts a message, wants that status, and puts
// the id of the session that comes with the answer into SESSION.
func post(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(http.MethodPost, args[1], strings.NewReader(ts.ReadFile(args[3])))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if args[2] != "" {
		req.Header.Set("Authorization", args[2])
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	ts.Check(err)
	resp.Body.Close()
	if got := strconv.Itoa(resp.StatusCode); got != args[0] {
		ts.Fatalf("status %s, want %s", got, args[0])
	}
	ts.Setenv("SESSION", resp.Header.Get("Mcp-Session-Id"))
}

// until stdout|stderr PATTERN command... runs a command until that stream matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 3 || neg {
		ts.Fatalf("usage: until stdout|stderr PATTERN command...")
	}
	pattern := regexp.MustCompile(args[1])
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		ts.Check(ts.Exec(args[2], args[3:]...))
		if pattern.MatchString(ts.ReadFile(args[0])) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never matched %q", args[0], args[1])
		}
	}
}

// What changes from run to run on a screen, and how a golden file writes it.
var varying = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`gh_[A-Za-z0-9_-]{43}`), "TOKEN"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`"took_ns": \d+`), `"took_ns": N`},
	{regexp.MustCompile(` *\+\d+(\.\d+)?(µs|ms|s)\b`), " +N ms"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms)\b`), "N ms"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\b[a-f][0-9a-f]{15}-\d+`), "ID"},
	{regexp.MustCompile(`(\.toml) [0-9a-f]{8}\b`), "$1 DIGEST"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ms\b`), "N ms"},
	{regexp.MustCompile(`\S*/gatehouse-demo-\d+/`), "SCRATCH/"},
}

// screen FILE [wide] compares what the last command printed with a golden file,
// and refuses blanks at the end of a line and, unless wide, more than 80 characters.
func screen(ts *testscript.TestScript, _ bool, args []string) {
	got := []byte(ts.ReadFile("stdout"))
	for _, v := range varying {
		got = v.pattern.ReplaceAll(got, []byte(v.word))
	}
	for line := range bytes.Lines(got) {
		if shown := bytes.TrimRight(line, "\n"); len(shown) > 0 && shown[len(shown)-1] == ' ' {
			ts.Fatalf("a blank at the end: %q", line)
		}
		if n := len([]rune(string(bytes.TrimRight(line, "\n")))); n > 80 && !slices.Contains(args[1:], "wide") {
			ts.Fatalf("%d characters: %s", n, line)
		}
	}
	if want := ts.ReadFile(args[0]); string(got) != want {
		if os.Getenv("UPDATE_SCREENS") != "" {
			fmt.Printf("-- %s --\n%s", args[0], got)
			return
		}
		ts.Fatalf("the screen differs from %s:\n%s\nwant:\n%s", args[0], got, want)
	}
}
