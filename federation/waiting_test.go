package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
)

const consoleChannel = "[approval]\nchannel = \"console\"\n"

// decide answers the one question that is open, once there is one, as eve.
func (r *rig) decide(approve bool) gate.Open {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
		if open := r.g.Gate.Questions(); len(open) == 1 {
			approver := *r.g.Caller("eve")
			approver.Zone = gate.Local
			if err := r.g.Gate.Decide(context.Background(), r.g.Catalog.Snapshot(), open[0].Number, &approver, approve); err != nil {
				r.t.Error(err)
			}
			return open[0]
		}
	}
	r.t.Error("no question is open")
	return gate.Open{}
}

// A caller of the 2025 era waits within the call, whether it has a session or
// not, and is told so when it asked for progress.
func TestLegacyCallerWaitsForTheConsole(t *testing.T) {
	r := newRig(t, recent, "", consoleChannel)
	c := r.connect("alice", "2025-11-25", `{"elicitation":{}}`)
	for name, send := range map[string]func() told{
		"session": func() told {
			return c.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"mcp_up_echo","arguments":{},"_meta":{"progressToken":"mine"}}}`)
		},
		"no session": func() told {
			return r.post("alice", `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"mcp_up_echo","arguments":{},"_meta":{"progressToken":7}}}`, nil)
		},
		"no stream": func() told {
			return r.post("alice", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"mcp_up_echo","arguments":{}}}`, map[string]string{"Accept": "application/json"})
		},
	} {
		for _, approve := range []bool{true, false} {
			end := make(chan told, 1)
			go func() { end <- send() }()
			open := r.decide(approve)
			x := <-end
			want := map[bool]string{true: "ok", false: "declined"}[approve]
			if x.verdict() != want {
				t.Errorf("%s, %v: %s", name, approve, x.raw)
			}
			if name == "no stream" {
				continue
			}
			if len(x.messages) != 2 || string(x.messages[0]["method"]) != `"notifications/progress"` ||
				!strings.Contains(string(x.messages[0]["params"]), fmt.Sprintf("question %d;", open.Number)) {
				t.Errorf("%s, %v: the wait was not told: %s", name, approve, x.raw)
			}
		}
	}
	if n := r.upstream.Count("tools/call"); n != 3 {
		t.Errorf("%d calls were sent, want 3", n)
	}
	for _, e := range r.entries(gate.KindIntent, 3) {
		if e.AnsweredBy != "eve" || e.Approval == 0 {
			t.Errorf("intent: %+v", e)
		}
	}
}

// Silence at the console is a refusal at the deadline, and hanging up, cancelling
// and ending the session close the question: nobody approves what nobody awaits.
func TestLegacyCallerWhoStopsWaiting(t *testing.T) {
	r := newRig(t, recent, "", consoleChannel+"timeout = \"1s\"\n")
	c := r.connect("alice", "2025-11-25", `{}`)
	if x := c.call(1, "mcp_up_echo", `{}`); x.verdict() != "declined" || !strings.Contains(x.raw, "nobody answered") {
		t.Errorf("silence: %s", x.raw)
	}
	if err := r.g.Gate.Configure(gate.Options{Channel: gate.ConsoleChannel, ApprovalTimeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	call := func(id int) chan told {
		end := make(chan told, 1)
		go func() { end <- c.call(id, "mcp_up_echo", `{}`) }()
		return end
	}
	r.quiet(0)
	ctx, hangUp := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = c.asked(ctx, 2, "mcp_up_echo", `{}`, func(map[string]json.RawMessage) {})
	}()
	r.quiet(1)
	hangUp()
	<-gone
	r.quiet(0)
	cancelled := call(3)
	r.quiet(1)
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	if x := <-cancelled; x.verdict() != "declined" {
		t.Errorf("cancelled: %s", x.last())
	}
	r.quiet(0)
	ended := call(4)
	r.quiet(1)
	res, err := r.request(context.Background(), "alice", http.MethodDelete, "", c.header())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if x := <-ended; x.verdict() != "declined" {
		t.Errorf("session ended: %s", x.last())
	}
	reasons := map[string]int{}
	for _, e := range r.entries(gate.KindAnswer, 4) {
		reasons[e.Reason]++
	}
	if reasons["approval_expired"] != 1 || reasons["lost"] != 3 {
		t.Errorf("answers: %v", reasons)
	}
	if n := r.upstream.Count("tools/call"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// quiet waits until so many questions are open.
func (r *rig) quiet(open int) {
	r.t.Helper()
	for began := time.Now(); len(r.g.Gate.Questions()) != open; time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			r.t.Fatalf("%d questions are open, want %d", len(r.g.Gate.Questions()), open)
		}
	}
}

func (x told) state() (s string) {
	_ = json.Unmarshal(x.result()["requestState"], &s)
	return s
}

func withState(params, state string) string {
	return fmt.Sprintf(`%s,"requestState":%q}`, strings.TrimSuffix(params, "}"), state)
}

// A caller of the 2026 era gets only a state at once. When it comes back, it is
// held until somebody decides; when it leaves meanwhile, the question stays.
func TestModernCallerComesBack(t *testing.T) {
	r := newRig(t, recent, "", consoleChannel)
	for _, approve := range []bool{true, false} {
		question := r.modern("alice", "tools/call", echo, form)
		if question.state() == "" || question.result()["inputRequests"] != nil {
			t.Fatalf("the question: %s", question.raw)
		}
		again := withState(echo, question.state())

		ctx, hangUp := context.WithCancel(context.Background())
		held := make(chan struct{})
		go func() {
			defer close(held)
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"h","method":"tools/call","params":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, strings.TrimSuffix(again, "}"))
			res, err := r.request(ctx, "alice", http.MethodPost, body, map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: "mcp_up_echo"})
			if err == nil {
				res.Body.Close()
			}
		}()
		select {
		case <-held:
			t.Fatal("the retry was not held open")
		case <-time.After(50 * time.Millisecond):
		}
		hangUp()
		<-held
		r.quiet(1)

		end := make(chan told, 1)
		go func() { end <- r.modern("alice", "tools/call", again, form) }()
		select {
		case x := <-end:
			t.Fatalf("the retry was not held open: %s", x.raw)
		case <-time.After(50 * time.Millisecond):
		}
		r.decide(approve)
		x := <-end
		if want := map[bool]string{true: "ok", false: "declined"}[approve]; x.verdict() != want {
			t.Errorf("after %v: %s", approve, x.raw)
		}
		if x := r.modern("alice", "tools/call", again, form); x.verdict() == "ok" || x.state() != "" {
			t.Errorf("a second use of the state: %s", x.raw)
		}
	}
	if n := r.upstream.Count("tools/call"); n != 1 {
		t.Errorf("%d calls were sent, want 1", n)
	}
}

// A process that stops does not wait for people: whoever can come back is given
// the state, which is good for the next process too.
func TestNobodyIsWaitedForAtTheEnd(t *testing.T) {
	r := newRig(t, recent, "", consoleChannel)
	question := r.modern("alice", "tools/call", echo, form)
	c := r.connect("alice", "2025-11-25", `{}`)
	held, waiting := make(chan told, 1), make(chan told, 1)
	go func() { held <- r.modern("alice", "tools/call", withState(echo, question.state()), form) }()
	go func() { waiting <- c.call(1, "mcp_up_echo", `{}`) }()
	r.quiet(2)
	r.g.leave()
	if x := <-held; x.state() != question.state() {
		t.Errorf("2026: %s", x.raw)
	}
	if x := <-waiting; x.verdict() != "declined" {
		t.Errorf("2025: %s", x.raw)
	}
}

// A call of a command has no console when no daemon runs.
func TestCommandHasNoConsole(t *testing.T) {
	r := newRig(t, recent, "", consoleChannel)
	reply := r.g.Call(context.Background(), r.g.Caller("alice"), "mcp_up_echo", []byte(`{}`),
		func(context.Context, *gate.Question) *gate.Answer {
			t.Error("the terminal was asked what the console decides")
			return &gate.Answer{Failure: gate.FailureClient}
		}, nil)
	if reply.Verdict != gate.Declined || len(r.g.Gate.Questions()) != 0 {
		t.Errorf("%+v", reply)
	}
}
