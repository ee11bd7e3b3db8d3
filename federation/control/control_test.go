package control

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
)

// TestHereAndThere asks the same of both ways to reach a gateway.
func TestHereAndThere(t *testing.T) {
	r := newRig(t, "")
	ctx := t.Context()
	for name, ask := range map[string]func(API) (any, error){
		"servers":   func(a API) (any, error) { return a.Servers(ctx) },
		"tools":     func(a API) (any, error) { return a.Tools(ctx, "") },
		"group":     func(a API) (any, error) { return a.Tools(ctx, "mcp_demo") },
		"glob":      func(a API) (any, error) { return a.Tools(ctx, "mcp_demo_notes_*") },
		"tool":      func(a API) (any, error) { return a.Tool(ctx, "mcp_demo_big_number") },
		"diff":      func(a API) (any, error) { return a.Diff(ctx, "mcp_demo_echo") },
		"explain":   func(a API) (any, error) { return a.Explain(ctx, "mcp_demo_echo", "guest") },
		"approvals": func(a API) (any, error) { return a.Approvals(ctx) },
		"dry run": func(a API) (any, error) {
			rs, err := a.Import(ctx, []string{"demo"}, false, true)
			return rs[0].Summary(), err
		},
		"disable":   func(a API) (any, error) { _, err := a.Disable(ctx, []string{"mcp_demo_clock"}); return nil, err },
		"enable":    func(a API) (any, error) { c, err := a.Enable(ctx, []string{"mcp_demo_clock"}); return c[0].To, err },
		"no tool":   func(a API) (any, error) { return a.Tool(ctx, "mcp_demo_nothing") },
		"no server": func(a API) (any, error) { return a.TestServer(ctx, "nothing") },
		"no import": func(a API) (any, error) { return a.Import(ctx, []string{"nothing"}, false, false) },
		"no caller": func(a API) (any, error) { return a.Explain(ctx, "mcp_demo_echo", "nobody") },
		"no match":  func(a API) (any, error) { return a.Enable(ctx, []string{"mcp_demo_nothing"}) },
		"nothing":   func(a API) (any, error) { return nil, a.Decide(ctx, 4711, true) },
		"no vault":  func(a API) (any, error) { return a.Secrets(ctx) },
	} {
		var texts, errs [2]string
		for i, api := range []API{r.local, r.remote} {
			got, err := ask(api)
			b, marshalled := json.Marshal(got)
			if marshalled != nil {
				t.Fatal(marshalled)
			}
			texts[i] = string(b)
			if err != nil {
				errs[i] = err.Error()
				texts[i] = ""
			}
			if strings.HasPrefix(name, "no ") != (err != nil) && name != "nothing" {
				t.Errorf("%s: error %v", name, err)
			}
			wantNotFound := strings.HasPrefix(name, "no ") && name != "no vault" && name != "no match" || name == "nothing"
			if wantNotFound && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v is not ErrNotFound", name, err)
			}
		}
		if texts[0] != texts[1] || errs[0] != errs[1] {
			t.Errorf("%s differs\nhere:  %.400s %s\nthere: %.400s %s", name, texts[0], errs[0], texts[1], errs[1])
		}
		if strings.Contains(texts[0]+errs[0], "not-for-print") {
			t.Errorf("%s shows the query of a url", name)
		}
	}
}

func TestStatus(t *testing.T) {
	r := newRig(t, "")
	s, err := r.remote.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.PID != os.Getpid() || !s.Daemon || s.Tools != 12 || s.Enabled != 12 || s.Version != "test" || len(s.NotReady) != 0 {
		t.Errorf("got %+v", s)
	}
}

func always(a Answer) Asker { return func(context.Context, Question) Answer { return a } }

func TestCall(t *testing.T) {
	r := newRig(t, "")
	for where, api := range map[string]API{"here": r.local, "there": r.remote} {
		for _, c := range []struct {
			name    string
			request CallRequest
			ask     Asker
			verdict gate.Verdict
			want    string
		}{
			{"approved", CallRequest{"mcp_demo_echo", "me", []byte(`{ "message":"hi <b>" }`)}, always(Approve), gate.OK, `hi \u003cb\u003e`},
			{"big number", CallRequest{"mcp_demo_big_number", "me", []byte(`{"number":9007199254740993}`)}, always(Approve), gate.OK, `{"number":9007199254740993}`},
			{"denied", CallRequest{"mcp_demo_echo", "me", []byte(`{"message":"hi"}`)}, always(Deny), gate.Declined, "not approved"},
			{"unanswered", CallRequest{"mcp_demo_echo", "me", []byte(`{"message":"hi"}`)}, always(Unanswered), gate.Declined, "not approved"},
			{"nobody to ask", CallRequest{"mcp_demo_echo", "me", []byte(`{"message":"hi"}`)}, nil, gate.Refused, "needs a person's approval"},
			{"fails", CallRequest{"mcp_demo_simulate_failure", "me", nil}, always(Approve), gate.ToolError, "always fails"},
			{"bad arguments", CallRequest{"mcp_demo_echo", "me", []byte(`{}`)}, always(Approve), gate.Refused, "message"},
			{"guest", CallRequest{"mcp_demo_echo", "guest", []byte(`{"message":"hi"}`)}, always(Approve), gate.Refused, "not available to you"},
			{"own", CallRequest{"gatehouse_status", "guest", nil}, nil, gate.OK, "guest"},
		} {
			reply, err := api.Call(t.Context(), c.request, c.ask, nil)
			if err != nil {
				t.Errorf("%s, %s: %v", where, c.name, err)
				continue
			}
			text := string(reply.Result)
			if reply.Error != nil {
				text = reply.Error.Message
			}
			if reply.Verdict != c.verdict || !strings.Contains(text, c.want) {
				t.Errorf("%s, %s: %s %s, want %s with %s", where, c.name, reply.Verdict, text, c.verdict, c.want)
			}
			if reply.Record == 0 && reply.Error == nil {
				t.Errorf("%s, %s: no record number", where, c.name)
			}
		}
		if _, err := api.Call(t.Context(), CallRequest{"gatehouse_status", "nobody", nil}, nil, nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s, a caller that does not exist: %v", where, err)
		}
	}
}

func TestCallShowsProgress(t *testing.T) {
	r := newRig(t, "")
	var seen []string
	reply, err := r.remote.Call(t.Context(), CallRequest{"mcp_demo_slow_count", "me", []byte(`{"to":3,"delay_ms":20}`)}, always(Approve),
		func(params []byte) { seen = append(seen, string(params)) })
	if err != nil || reply.Verdict != gate.OK {
		t.Fatalf("%+v, %v", reply, err)
	}
	// The last event may be lost on the way; the first is not.
	if len(seen) == 0 || !strings.Contains(seen[0], `"progress":1`) || !strings.Contains(seen[0], `"progressToken":"p"`) {
		t.Errorf("progress %q", seen)
	}
}

func TestConsoleDecides(t *testing.T) {
	r := newRig(t, `channel = "console"`)
	for _, c := range []struct {
		approve bool
		want    gate.Verdict
	}{{true, gate.OK}, {false, gate.Declined}} {
		done := make(chan CallReply, 1)
		go func() {
			reply, err := r.remote.Call(t.Context(), CallRequest{"mcp_demo_echo", "me", []byte(`{"message":"hi"}`)}, nil, nil)
			if err != nil {
				t.Error(err)
			}
			done <- reply
		}()
		open := waitForApproval(t, r.remote)
		if open.Caller != "me" || open.Tool != "mcp_demo_echo" || !strings.Contains(open.Message, "hi") {
			t.Errorf("asked %+v", open)
		}
		if err := r.remote.Decide(t.Context(), open.Number, c.approve); err != nil {
			t.Fatal(err)
		}
		if reply := <-done; reply.Verdict != c.want {
			t.Errorf("approve %v: %s, want %s", c.approve, reply.Verdict, c.want)
		}
		if err := r.remote.Decide(t.Context(), open.Number, c.approve); !errors.Is(err, ErrNotFound) {
			t.Errorf("decided twice: %v", err)
		}
	}
}

func waitForApproval(t *testing.T, api API) Approval {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		open, err := api.Approvals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(open) > 0 {
			return open[0]
		}
	}
	t.Fatal("nothing waits for approval")
	return Approval{}
}

func TestSocket(t *testing.T) {
	r := newRig(t, "")
	info, err := os.Stat(r.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("socket %v, %v, want mode 600", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(r.socket), ".gh*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNoDaemon(t *testing.T) {
	dir := t.TempDir()
	if _, err := Dial(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("no socket: %v", err)
	}
	// A socket that a killed process left behind.
	stale := filepath.Join(dir, "stale")
	l, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := Dial(t.Context(), stale); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("stale socket: %v", err)
	}
	again, err := listenSocket(stale)
	if err != nil {
		t.Fatalf("a stale socket is in the way: %v", err)
	}
	again.Close()

	// A process that has the socket open and does not answer is no "no daemon":
	// it may hold the state.
	mute := filepath.Join(dir, "mute")
	if l, err = net.Listen("unix", mute); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	_, err = Dial(t.Context(), mute)
	if err == nil || errors.Is(err, ErrNoDaemon) {
		t.Errorf("a mute daemon: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("a mute daemon was waited for for %v", took)
	}
}

func TestSocketPathRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                               "is in the way",
		"/tmp/" + strings.Repeat("x", 100): "too long for a socket",
		"/no/such/directory/at.sock":       "control socket",
	} {
		l, err := listenSocket(path)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Errorf("the file in the way was touched: %q, %v", b, err)
	}
}
