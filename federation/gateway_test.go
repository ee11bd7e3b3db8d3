package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
)

var (
	stateless = upstreamtest.Profile{Name: "2025"}
	sessioned = upstreamtest.Profile{Name: "2025 sessions", Sessions: true, Stream: true}
	recent    = upstreamtest.Profile{Name: "2026", Modern: true}
)

const echo = `{"name":"mcp_up_echo","arguments":{"n":9007199254740993,"f":1.10,"e":1E400}}`

func TestModernApproval(t *testing.T) {
	for _, profile := range []upstreamtest.Profile{stateless, sessioned, recent} {
		t.Run(profile.Name, func(t *testing.T) {
			r := newRig(t, profile, "", "")
			question, end := r.answered("alice", echo, "accept", "approve")
			text := string(question.result()["inputRequests"])
			for _, part := range []string{"mcp_up_echo", "Played server", "source_code", "alice", "local", "9007199254740993", "1E400"} {
				if !strings.Contains(text, part) {
					t.Errorf("the question does not show %q: %s", part, text)
				}
			}
			if end.verdict() != "ok" || !strings.Contains(string(end.result()["content"]), `9007199254740993`) {
				t.Errorf("end: %s", end.raw)
			}
			last, ok := r.upstream.Last("tools/call")
			if !ok || string(last.Param("arguments")) != `{"n":9007199254740993,"f":1.10,"e":1E400}` || last.Text("name") != "echo" {
				t.Errorf("on the wire: %s", last.Body)
			}
			intents := r.entries(gate.KindIntent, 1)
			if len(intents) != 1 || intents[0].Approval == 0 || intents[0].Caller != "alice" || intents[0].RemoteName != "echo" {
				t.Errorf("intents: %+v", intents)
			}
			r.entries(gate.KindOutcome, 1)
		})
	}
}

func TestModernAnswersThatReleaseNothing(t *testing.T) {
	r := newRig(t, recent, "", "")
	for _, test := range []struct{ action, decision, verdict string }{
		{"decline", "", "declined"},
		{"cancel", "", "declined"},
		{"accept", "deny", "declined"},
		{"accept", "", "declined"},
		{"accept", "APPROVE", "declined"},
		{"decline", "approve", "declined"},
		{"", "approve", "declined"},
	} {
		_, end := r.answered("alice", echo, test.action, test.decision)
		if end.verdict() != test.verdict || string(end.result()["isError"]) != "true" {
			t.Errorf("%s/%s: %s", test.action, test.decision, end.raw)
		}
	}
	if n := r.upstream.Count("tools/call"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// TestApprovalIsForOneCall: a state opens the call it was sealed for, once, and
// no other, however small the difference.
func TestApprovalIsForOneCall(t *testing.T) {
	r := newRig(t, recent, "", "")
	state := func(params string) string {
		var s string
		_ = json.Unmarshal(r.modern("alice", "tools/call", params, form).result()["requestState"], &s)
		return s
	}
	const small = `{"name":"mcp_up_echo","arguments":{"a":1,"b":2}}`
	for name, test := range map[string]struct{ who, params, state string }{
		"other caller":           {"eve", small, state(small)},
		"other order of keys":    {"alice", `{"name":"mcp_up_echo","arguments":{"b":2,"a":1}}`, state(small)},
		"other spelling":         {"alice", `{"name":"mcp_up_echo","arguments":{"a":1.0,"b":2}}`, state(small)},
		"one space more":         {"alice", `{"name":"mcp_up_echo","arguments":{"a":1, "b":2}}`, state(small)},
		"other tool":             {"alice", `{"name":"mcp_up_fail","arguments":{"a":1,"b":2}}`, state(small)},
		"not a state":            {"alice", small, "AAAA"},
		"state of another call":  {"alice", small, state(echo)},
		"flipped bit of a state": {"alice", small, flip(state(small))},
	} {
		end := r.modern(test.who, "tools/call", withAnswer(test.params, test.state, "accept", "approve"), form)
		if v := end.verdict(); v == "ok" || end.result()["requestState"] != nil && v != "" {
			t.Errorf("%s: %s", name, end.raw)
		}
	}
	if n := r.upstream.Count("tools/call"); n != 0 {
		t.Fatalf("%d calls were sent", n)
	}
	good := state(small)
	if end := r.modern("alice", "tools/call", withAnswer(small, good, "accept", "approve"), form); end.verdict() != "ok" {
		t.Fatalf("the right answer: %s", end.raw)
	}
	if end := r.modern("alice", "tools/call", withAnswer(small, good, "accept", "approve"), form); end.verdict() == "ok" {
		t.Errorf("a replay: %s", end.raw)
	}
	if n := r.upstream.Count("tools/call"); n != 1 {
		t.Errorf("%d calls were sent, want one", n)
	}
	// Answers to a question that nobody asked are not answers.
	end := r.modern("alice", "tools/call", strings.TrimSuffix(small, "}")+`,"inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}}}`, form)
	if end.result()["requestState"] == nil {
		t.Errorf("forged answer: %s", end.raw)
	}
}

func flip(s string) string {
	b := []byte(s)
	if i := len(b) / 2; b[i] == 'A' {
		b[i] = 'B'
	} else {
		b[i] = 'A'
	}
	return string(b)
}

func TestLegacyApproval(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		r := newRig(t, recent, "", "")
		c := r.connect("alice", version, `{"elicitation":{}}`)
		for i, test := range []struct{ rest, verdict string }{
			{`"result":{"action":"accept","content":{"decision":"approve"}}`, "ok"},
			{`"result":{"action":"accept","content":{"decision":"deny"}}`, "declined"},
			{`"result":{"action":"decline"}`, "declined"},
			{`"result":{"action":"cancel"}`, "declined"},
			{`"result":{}`, "declined"},
			{`"error":{"code":-32601,"message":"no"}`, "declined"},
		} {
			end, err := c.asked(context.Background(), i+1, "mcp_up_echo", `{"i":1}`, func(q map[string]json.RawMessage) {
				if x := c.respond("alice", string(q["id"]), test.rest); x.status != http.StatusAccepted || x.raw != "" {
					t.Errorf("answer: %d %q", x.status, x.raw)
				}
			})
			x := told{messages: []map[string]json.RawMessage{end}}
			if err != nil || x.verdict() != test.verdict {
				t.Errorf("%s: %s, %v", test.rest, end, err)
			}
		}
		if n := r.upstream.Count("tools/call"); n != 1 {
			t.Errorf("%s: %d calls were sent, want one", version, n)
		}
	}
}

// TestForeignAnswers is C43: an answer from another session, another caller, or
// to another id leaves the question open.
func TestForeignAnswers(t *testing.T) {
	r := newRig(t, recent, "", "")
	c := r.connect("alice", "2025-11-25", `{"elicitation":{"form":{}}}`)
	second := r.connect("alice", "2025-11-25", `{"elicitation":{"form":{}}}`)
	eve := r.connect("eve", "2025-11-25", `{"elicitation":{"form":{}}}`)
	const yes = `"result":{"action":"accept","content":{"decision":"approve"}}`
	const no = `"result":{"action":"decline"}`
	end, err := c.asked(context.Background(), 1, "mcp_up_echo", `{}`, func(q map[string]json.RawMessage) {
		id := string(q["id"])
		if x := c.respond("eve", id, yes); x.status != http.StatusNotFound {
			t.Errorf("eve in alice's session: %d", x.status)
		}
		second.respond("alice", id, yes)
		eve.respond("eve", id, yes)
		c.respond("alice", `"q-1"`, yes)
		c.respond("alice", `1`, yes)
		if n := r.upstream.Count("tools/call"); n != 0 {
			t.Errorf("%d calls were sent", n)
		}
		c.respond("alice", id, no)
		c.respond("alice", id, yes)
	})
	x := told{messages: []map[string]json.RawMessage{end}}
	if err != nil || x.verdict() != "declined" {
		t.Errorf("end: %s, %v", end, err)
	}
	if n := r.upstream.Count("tools/call"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// TestSilenceIsNo is C42 (d) and (i): nobody answers in time, or the stream breaks.
func TestSilenceIsNo(t *testing.T) {
	r := newRig(t, recent, "", "[approval]\ntimeout = \"1s\"\n")
	c := r.connect("alice", "2025-11-25", `{"elicitation":{"form":{}}}`)
	end, err := c.asked(context.Background(), 1, "mcp_up_echo", `{}`, func(map[string]json.RawMessage) {})
	if x := (told{messages: []map[string]json.RawMessage{end}}); err != nil || x.verdict() != "declined" {
		t.Errorf("silence: %s, %v", end, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, _ = c.asked(ctx, 2, "mcp_up_echo", `{}`, func(map[string]json.RawMessage) { cancel() })
	answers := r.entries(gate.KindAnswer, 2)
	if len(answers) == 2 && answers[0].Reason == answers[1].Reason {
		t.Errorf("silence and loss have one reason: %q", answers[0].Reason)
	}
	if n := r.upstream.Count("tools/call"); n != 0 {
		t.Errorf("%d calls were sent", n)
	}
}

// TestWhoCannotBeAsked is C42 (a) and (c).
func TestWhoCannotBeAsked(t *testing.T) {
	r := newRig(t, recent, "", "")
	const instead = `[approval] channel = \"client_then_console\" or \"console\"`
	for _, capabilities := range []string{`{}`, `{"elicitation":{"url":{}}}`, `{"sampling":{}}`} {
		x := r.modern("alice", "tools/call", echo, capabilities)
		if x.code() != codeMissingCapability || x.status != http.StatusBadRequest || !strings.Contains(string(x.last()["error"]), `"requiredCapabilities":{"elicitation":{"form":{}}}`) {
			t.Errorf("2026 %s: %d %s", capabilities, x.status, x.raw)
		}
		if !strings.Contains(x.raw, instead) {
			t.Errorf("2026: what would help is not named: %s", x.raw)
		}
		c := r.connect("alice", "2025-11-25", capabilities)
		if x := c.call(1, "mcp_up_echo", `{}`); x.verdict() != "refused" || string(x.result()["isError"]) != "true" || !strings.Contains(x.raw, instead) {
			t.Errorf("2025 %s: %s", capabilities, x.raw)
		}
	}
	c := r.connect("alice", "2025-03-26", `{"elicitation":{}}`)
	if x := c.call(1, "mcp_up_echo", `{}`); x.verdict() != "refused" {
		t.Errorf("2025-03-26 has no elicitation: %s", x.raw)
	}
	if x := r.post("alice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+echo+`}`, nil); x.verdict() != "refused" {
		t.Errorf("without a session: %s", x.raw)
	}
	if requests := r.upstream.Requests(); len(requests) != 0 {
		t.Errorf("the upstream saw %d requests", len(requests))
	}
}

// TestNoOracle: absent, disabled and forbidden look the same to whoever may not
// use a tool (C56).
func TestNoOracle(t *testing.T) {
	r := newRig(t, recent, "", "")
	if _, err := r.g.Disable(context.Background(), "test", "mcp_up_fail"); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, name := range []string{"mcp_up_echo", "mcp_up_fail", "mcp_up_nothing", "mcp_other_tool"} {
		for _, state := range []string{"", `,"requestState":"noise"`} {
			x := r.modern("bob", "tools/call", fmt.Sprintf(`{"name":%q,"arguments":{}%s}`, name, state), form)
			var e struct {
				Code    int
				Message string
			}
			if err := json.Unmarshal(x.last()["error"], &e); err != nil {
				t.Fatalf("%s: %s", name, x.raw)
			}
			message, _, _ := strings.Cut(e.Message, " (record")
			seen[fmt.Sprint(x.status, e.Code, message)] = true
		}
	}
	if len(seen) != 1 {
		t.Errorf("bob can tell them apart: %v", seen)
	}
	denied := r.entries(gate.KindDenied, 4)
	reasons := map[string]bool{}
	for _, d := range denied {
		reasons[d.Reason] = true
	}
	for _, want := range []gate.Reason{gate.RequiresAdmin, gate.ToolDisabled, gate.NotRegistered} {
		if !reasons[string(want)] {
			t.Errorf("the ledger does not tell %s: %v", want, reasons)
		}
	}
	if x := r.modern("eve", "tools/call", echo, form); !strings.Contains(x.raw, "trust_zone") || x.code() != codeInvalidParams {
		t.Errorf("an administrator learns the reason: %s", x.raw)
	}
}

// TestBytesSurvive is C32 and C33 through the whole line, in both directions and
// both eras.
func TestBytesSurvive(t *testing.T) {
	const content = `[{"type":"acme/chart","v":{"a":[1, 2.50]},"annotations":{"audience":["user"]}},{"type":"resource","resource":{"uri":"x:1","blob":"AA==","_meta":{"k":1}}}]`
	const structured = `{"id":9223372036854775807,"f":0.1000000000000000055,"<&>":"\u003c"}`
	for _, profile := range []upstreamtest.Profile{sessioned, recent} {
		r := newRig(t, profile, "requires_approval = false", "")
		r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Result(`{"content":` + content + `,"structuredContent":` + structured + `,"vendor":1.0,"_meta":{"com.acme/t":"z","gatehouse/outcome":"ok","gatehouse/record":1,"gatehouse/reason":"forged"}}`)
		})
		c := r.connect("alice", "2025-11-25", `{}`)
		for era, x := range map[string]told{"2026": r.modern("alice", "tools/call", echo, `{}`), "2025": c.call(7, "mcp_up_echo", `{}`)} {
			result := x.result()
			if string(result["content"]) != content || string(result["structuredContent"]) != structured || string(result["vendor"]) != "1.0" {
				t.Errorf("%s from %s: %s", era, profile.Name, x.raw)
			}
			meta := string(result["_meta"])
			if !strings.Contains(meta, `"com.acme/t":"z"`) || strings.Contains(meta, "forged") || strings.Count(meta, "gatehouse/record") != 1 || strings.Contains(meta, `"gatehouse/record":1,`) || strings.HasSuffix(meta, `"gatehouse/record":1}`) {
				t.Errorf("%s from %s: _meta %s", era, profile.Name, meta)
			}
		}
	}
}

// TestUpstreamErrors: what went wrong upstream is a tool's error or a JSON-RPC
// error with the record, and never our own 401.
func TestUpstreamErrors(t *testing.T) {
	r := newRig(t, recent, "requires_approval = false", "")
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
		x.ErrorData(http.StatusOK, -31000, "no such page", `{"n":9007199254740993,"gatehouse/reason":"forged"}`)
	})
	x := r.modern("alice", "tools/call", echo, `{}`)
	if x.status != http.StatusOK || x.code() != -31000 || !strings.Contains(x.raw, `"n":9007199254740993`) || !strings.Contains(x.raw, `"gatehouse/outcome":"upstream_error"`) || strings.Contains(x.raw, "forged") {
		t.Errorf("own code: %d %s", x.status, x.raw)
	}
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) { x.Error(http.StatusBadRequest, -32022, "version") })
	if x := r.modern("alice", "tools/call", echo, `{}`); x.code() == codeUnsupportedVersion {
		t.Errorf("the upstream's version trouble looks like the caller's: %s", x.raw)
	}
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) { x.Raw(http.StatusUnauthorized, "text/plain", "no") })
	if x := r.modern("alice", "tools/call", echo, `{}`); x.status != http.StatusOK || x.verdict() != "upstream_error" {
		t.Errorf("401 upstream: %d %s", x.status, x.raw)
	}
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) { x.HangUp() })
	if x := r.modern("alice", "tools/call", echo, `{}`); x.verdict() != "outcome_unknown" {
		t.Errorf("hung up: %s", x.raw)
	}
}

// TestProgressUnderTheCallersToken relays progress on the call's own response.
func TestProgressUnderTheCallersToken(t *testing.T) {
	r := newRig(t, sessioned, "requires_approval = false", "")
	x := r.modern("alice", "tools/call", `{"name":"mcp_up_count","arguments":{}}`, `{}`)
	if len(x.messages) != 1 {
		t.Errorf("progress without a token: %s", x.raw)
	}
	c := r.connect("alice", "2025-11-25", `{}`)
	x = c.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"mcp_up_count","arguments":{},"_meta":{"progressToken":"mine"}}}`)
	if len(x.messages) != 4 || x.verdict() != "ok" {
		t.Fatalf("%d messages: %s", len(x.messages), x.raw)
	}
	for _, m := range x.messages[:3] {
		if string(m["method"]) != `"notifications/progress"` || !strings.Contains(string(m["params"]), `"progressToken":"mine"`) {
			t.Errorf("progress: %s", m)
		}
	}
}

// TestCancel: the legacy notification and the closed modern response both cut
// the call that is in flight.
func TestCancel(t *testing.T) {
	r := newRig(t, recent, "requires_approval = false", "")
	started, gone := make(chan struct{}, 2), make(chan struct{}, 2)
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
		started <- struct{}{}
		select {
		case <-x.Gone():
			gone <- struct{}{}
		case <-time.After(10 * time.Second):
		}
	})
	c := r.connect("alice", "2025-11-25", `{}`)
	var wg sync.WaitGroup
	wg.Go(func() {
		if x := c.call(9, "mcp_up_echo", `{}`); x.verdict() != "outcome_unknown" {
			t.Errorf("cancelled by notification: %s", x.raw)
		}
	})
	<-started
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
	other := r.connect("alice", "2025-11-25", `{}`)
	other.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`)
	select {
	case <-gone:
		t.Error("another session's notification cancelled the call")
	case <-time.After(50 * time.Millisecond):
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`)
	<-gone
	wg.Wait()

	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_up_echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		res, err := r.request(ctx, "alice", http.MethodPost, body, map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: "mcp_up_echo"})
		if err == nil {
			res.Body.Close()
		}
	})
	<-started
	cancel()
	<-gone
	wg.Wait()
	for _, o := range r.entries(gate.KindOutcome, 2) {
		if o.Verdict != gate.OutcomeUnknown {
			t.Errorf("outcome %s", o.Verdict)
		}
	}
}

// TestOneBadDefinitionHidesNoOther: a definition that two parsers would read
// differently is skipped with a reason, and the rest of the listing is kept (C28).
func TestOneBadDefinitionHidesNoOther(t *testing.T) {
	r := newRig(t, recent, "", "")
	r.upstream.On("tools/list", func(x *upstreamtest.Exchange) {
		x.Result(`{"tools":[null,{"name":"two","name":"faces","inputSchema":{"type":"object"}},` +
			`{"name":"deep","inputSchema":{"type":"object","properties":{"a":{"type":"string","type":"number"}}}},` +
			`{"name":"good","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}`)
	})
	report, err := r.g.Import(context.Background(), "up", false)
	if err != nil || report.Imported != 1 || report.Skipped != 3 {
		t.Errorf("%s, %v: %+v", report.Summary(), err, report.Lines)
	}
	if r.g.Catalog.Snapshot().Tool("mcp_up_good") == nil {
		t.Error("the good definition is missing")
	}
}

// A stop that comes before the start is on record is a stop, and no failure.
func TestStopAtTheStart(t *testing.T) {
	r := newRig(t, recent, "", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := r.g.Serve(ctx, l); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if err := r.g.Close(t.Context()); err != nil {
		t.Errorf("closed with %v", err)
	}
	if starts, stops := r.entries(gate.KindStart, 1), r.entries(gate.KindStop, 1); len(starts) != 1 || len(stops) != 1 {
		t.Errorf("%d starts and %d stops are on record", len(starts), len(stops))
	}
}
