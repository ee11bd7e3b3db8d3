package federation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/trace"
	"gatehouse/federation/trace/tracetest"
	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/leak"
)

const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

// traced has a rig's calls traced, to a collector of its own when none is given.
func traced(t *testing.T, c *tracetest.Collector, env ...string) func(*rig) {
	return func(r *rig) {
		t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
		for i := 0; i < len(env); i += 2 {
			t.Setenv(env[i], env[i+1])
		}
		if r.logger == nil {
			r.logger = leak.Logger(t)
		}
		if r.tracer = trace.FromEnvironment("test", r.logger); r.tracer == nil {
			t.Fatal("no tracer")
		}
		t.Cleanup(func() { r.tracer.Close(context.Background()) })
	}
}

// tracedCall is a call of 2026-07-28 with a traceparent in the header and one in
// _meta, each where it is not "".
func (r *rig) tracedCall(who, tool, arguments, header, meta string) told {
	r.t.Helper()
	if meta != "" {
		meta = fmt.Sprintf(`,"traceparent":%q`, meta)
	}
	return r.post(who, fmt.Sprintf(`{"jsonrpc":"2.0","id":"r7","method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}%s}}}`,
		tool, arguments, meta), map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: tool, "Traceparent": header})
}

// outline is a trace as a tree: every span behind the name of its parent.
func outline(spans []tracetest.Span) (out []string) {
	names := map[string]string{}
	for _, s := range spans {
		names[s.ID] = s.Name
	}
	for _, s := range spans {
		above, known := names[s.Parent]
		switch {
		case s.Parent == "":
			above = "nothing"
		case !known:
			above = s.Parent
		}
		out = append(out, above+" > "+s.Name+" ("+s.Kind+")")
	}
	return out
}

func named(t *testing.T, spans []tracetest.Span, kind, name string) tracetest.Span {
	t.Helper()
	for _, s := range spans {
		if s.Kind == kind && s.Name == name {
			return s
		}
	}
	t.Fatalf("no %s span %q in %q", kind, name, outline(spans))
	return tracetest.Span{}
}

func wantOutline(t *testing.T, spans []tracetest.Span, want ...string) {
	t.Helper()
	got := outline(spans)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("spans\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, s := range spans {
		if s.End.Before(s.Start) {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
}

func wantAttributes(t *testing.T, s tracetest.Span, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got, ok := s.Attributes[key]; !ok || value != "*" && got != value {
			t.Errorf("%s: %s is %q, want %q", s.Name, key, got, value)
		}
	}
	for key := range s.Attributes {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: unexpected attribute %s=%q", s.Name, key, s.Attributes[key])
		}
	}
}

// A call is a span below the caller's, whichever way the caller says so, and the
// upstream is told one that is below the call's.
func TestTraceOfACall(t *testing.T) {
	const other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, test := range []struct{ name, header, meta string }{
		{"header", callersParent, ""}, {"meta", "", callersParent}, {"meta goes before the header", other, callersParent},
	} {
		for _, profile := range []upstreamtest.Profile{{Modern: true}, {Sessions: true}} {
			t.Run(fmt.Sprintf("%s/modern=%v", test.name, profile.Modern), func(t *testing.T) {
				c := tracetest.Start(t)
				r := newRig(t, profile, "requires_approval = false", "", traced(t, c))
				if x := r.tracedCall("alice", "mcp_up_echo", `{"text":"said in private"}`, test.header, test.meta); x.verdict() != "ok" {
					t.Fatal(x.raw)
				}
				spans := c.Spans(t, callersTrace)
				want := []string{
					callersSpan + " > tools/call mcp_up_echo (server)",
					"tools/call mcp_up_echo > judge (internal)",
					"tools/call mcp_up_echo > ledger (internal)",
					"tools/call mcp_up_echo > tools/call echo (client)",
					"tools/call echo > tools/call (client)",
				}
				if !profile.Modern {
					want = append(want, "tools/call echo > initialize (client)", "tools/call echo > initialized (client)")
				}
				wantOutline(t, spans, want...)
				intent := r.entries(gate.KindIntent, 1)[0]
				call := named(t, spans, "server", "tools/call mcp_up_echo")
				if !call.RemoteParent || call.Failed {
					t.Errorf("%+v", call)
				}
				wantAttributes(t, call, map[string]string{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
					"gen_ai.tool.name": "mcp_up_echo", "mcp.protocol.version": "2026-07-28", "jsonrpc.request.id": "r7",
					"gatehouse.caller": "alice", "gatehouse.server": "up", "gatehouse.verdict": "ok", "gatehouse.record": fmt.Sprint(intent.Number)})
				judged, written := named(t, spans, "internal", "judge"), named(t, spans, "internal", "ledger")
				wantAttributes(t, judged, map[string]string{"gatehouse.ruling": "permit"})
				wantAttributes(t, written, map[string]string{"gatehouse.kind": "intent", "gatehouse.record": fmt.Sprint(intent.Number)})
				operation := named(t, spans, "client", "tools/call echo")
				wantAttributes(t, operation, map[string]string{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool",
					"gen_ai.tool.name": "echo", "gatehouse.server": "up", "gatehouse.verdict": "ok", "server.address": "127.0.0.1", "server.port": "*"})
				leg := named(t, spans, "client", "tools/call")
				wantAttributes(t, leg, map[string]string{"http.request.method": "POST", "http.response.status_code": "200"})
				for _, pair := range [][2]time.Time{{call.Start, judged.Start}, {judged.End, written.Start}, {written.End, operation.Start}, {operation.Start, leg.Start}, {leg.End, operation.End}, {operation.End, call.End}} {
					if pair[1].Before(pair[0]) {
						t.Errorf("a span is not within its parent, or not behind the one before it: %+v", spans)
					}
				}
				if intent.Trace != callersTrace {
					t.Errorf("the ledger has trace %q", intent.Trace)
				}
				sent, _ := r.upstream.Last("tools/call")
				parent := "00-" + callersTrace + "-" + operation.ID + "-01"
				if got := sent.Header.Get("Traceparent"); got != parent {
					t.Errorf("header traceparent %q, want %q", got, parent)
				}
				if got := string(sent.Meta("traceparent")); got != `"`+parent+`"` {
					t.Errorf("_meta traceparent %s, want %q", got, parent)
				}
				if bytes.Contains(c.Bodies(), []byte("said in private")) {
					t.Error("an argument is in a span")
				}
				if got := c.Resource(); got["service.name"] != "gatehouse" || got["service.version"] != "test" || got["telemetry.sdk.language"] != "go" {
					t.Errorf("resource %v", got)
				}
			})
		}
	}
}

// Who brings no trace gets one, and the ledger says which.
func TestTraceBeginsHere(t *testing.T) {
	for name, parent := range map[string]string{"none": "", "zeros": "00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"no version": "ff-" + callersParent[3:], "text": "not a traceparent"} {
		t.Run(name, func(t *testing.T) {
			c := tracetest.Start(t)
			r := newRig(t, recent, "requires_approval = false", "", traced(t, c))
			r.tracedCall("alice", "mcp_up_echo", `{}`, parent, "")
			spans := c.Spans(t, "")
			call := named(t, spans, "server", "tools/call mcp_up_echo")
			if call.Parent != "" || call.RemoteParent {
				t.Errorf("parent %q", call.Parent)
			}
			if got := r.entries(gate.KindIntent, 1)[0].Trace; got != call.Trace {
				t.Errorf("the ledger has trace %q, want %q", got, call.Trace)
			}
			sent, _ := r.upstream.Last("tools/call")
			if got := sent.Header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+call.Trace) {
				t.Errorf("traceparent %q", got)
			}
		})
	}
}

// A caller who says that a trace is not sampled is believed, and the upstream is
// told the same.
func TestTraceNotSampled(t *testing.T) {
	c := tracetest.Start(t)
	r := newRig(t, recent, "requires_approval = false", "", traced(t, c))
	r.tracedCall("alice", "mcp_up_echo", `{}`, "00-"+callersTrace+"-"+callersSpan+"-00", "")
	sent, _ := r.upstream.Last("tools/call")
	got := sent.Header.Get("Traceparent")
	if !strings.HasPrefix(got, "00-"+callersTrace+"-") || !strings.HasSuffix(got, "-00") || strings.Contains(got, callersSpan) {
		t.Errorf("traceparent %q", got)
	}
	r.tracedCall("alice", "mcp_up_fail", `{}`, "", "")
	if spans := c.Spans(t, ""); slices.ContainsFunc(spans, func(s tracetest.Span) bool { return s.Trace == callersTrace }) {
		t.Errorf("it was sampled: %q", outline(spans))
	}
}

// A question is a span as long as it is open. Where it travels as a result, the
// time of the person lies between two calls.
func TestTraceOfAQuestion(t *testing.T) {
	t.Run("within the call", func(t *testing.T) {
		c := tracetest.Start(t)
		r := newRig(t, recent, "", "", traced(t, c))
		client := r.connect("alice", "2025-11-25", form)
		const thinking = 50 * time.Millisecond
		end, err := client.asked(t.Context(), 5, "mcp_up_echo", `{}`, func(q map[string]json.RawMessage) {
			time.Sleep(thinking)
			client.respond("alice", string(q["id"]), `"result":{"action":"accept","content":{"decision":"approve"}}`)
		})
		if err != nil || end["result"] == nil {
			t.Fatalf("%v, %v", end, err)
		}
		spans := c.Spans(t, "")
		wantOutline(t, spans,
			"nothing > tools/call mcp_up_echo (server)",
			"tools/call mcp_up_echo > judge (internal)", "tools/call mcp_up_echo > ledger (internal)",
			"tools/call mcp_up_echo > question (internal)",
			"tools/call mcp_up_echo > judge (internal)", "tools/call mcp_up_echo > ledger (internal)",
			"tools/call mcp_up_echo > tools/call echo (client)", "tools/call echo > tools/call (client)")
		question := named(t, spans, "internal", "question")
		asked := r.entries(gate.KindQuestion, 1)[0]
		wantAttributes(t, question, map[string]string{"gatehouse.question": fmt.Sprint(asked.Number), "gatehouse.channel": "client"})
		if took := question.End.Sub(question.Start); took < thinking {
			t.Errorf("the question took %s", took)
		}
		for _, s := range spans {
			if s.Name == "judge" && s.End.Sub(s.Start) >= thinking {
				t.Errorf("a check took %s; the person's time is not its own", s.End.Sub(s.Start))
			}
		}
		call := named(t, spans, "server", "tools/call mcp_up_echo")
		if call.Attributes["mcp.protocol.version"] != "2025-11-25" || call.Attributes["gatehouse.session"] == "" || call.Attributes["gatehouse.session"] == client.id {
			t.Errorf("%v", call.Attributes)
		}
		if bytes.Contains(c.Bodies(), []byte(client.id)) {
			t.Error("a session's id is in a span")
		}
	})
	t.Run("as a result", func(t *testing.T) {
		c := tracetest.Start(t)
		r := newRig(t, recent, "", "", traced(t, c))
		r.modern("alice", "tools/call", `{"name":"mcp_up_echo","arguments":{}}`, form)
		spans := c.Spans(t, "")
		wantOutline(t, spans, "nothing > tools/call mcp_up_echo (server)", "tools/call mcp_up_echo > judge (internal)",
			"tools/call mcp_up_echo > ledger (internal)", "tools/call mcp_up_echo > question (internal)")
		call := named(t, spans, "server", "tools/call mcp_up_echo")
		if call.Failed || call.Attributes["gatehouse.verdict"] != "asked" {
			t.Errorf("%+v", call)
		}
		c.Forget()
		r.answered("alice", `{"name":"mcp_up_echo","arguments":{}}`, "accept", "deny")
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			declined := slices.IndexFunc(c.All(), func(s tracetest.Span) bool {
				return s.Kind == "server" && s.Failed && s.Attributes["gatehouse.verdict"] == "declined" && s.Attributes["error.type"] == "declined"
			})
			if declined >= 0 {
				break
			}
			if time.Since(began) > 5*time.Second {
				t.Fatalf("no declined call in %+v", c.All())
			}
		}
	})
}

// What failed says so, and in whose words nobody can put anything.
func TestTraceOfFailures(t *testing.T) {
	c := tracetest.Start(t)
	r := newRig(t, recent, "requires_approval = false", "", traced(t, c))
	const secret = "words of the server"
	for _, test := range []struct {
		name, who, tool, arguments string
		script                     upstreamtest.Script
		span, errorType, verdict   string
		operation, leg             string // their error.type
	}{
		{"no such tool", "alice", "mcp_made_up", `{}`, nil, "tools/call", "-32602", "refused", "", ""},
		{"no administrator", "bob", "mcp_up_echo", `{}`, nil, "tools/call mcp_up_echo", "-32602", "refused", "", ""},
		{"arguments", "alice", "mcp_up_navigate", `{"to":["` + secret + `"]}`, nil, "tools/call mcp_up_navigate", "refused", "refused", "", ""},
		{"tool error", "alice", "mcp_up_fail", `{}`, nil, "tools/call mcp_up_fail", "tool_error", "tool_error", "tool_error", ""},
		{"server error", "alice", "mcp_up_echo", `{}`, func(x *upstreamtest.Exchange) { x.Error(http.StatusOK, -32001, secret) },
			"tools/call mcp_up_echo", "-32603", "upstream_error", "server_error", ""},
		{"status", "alice", "mcp_up_echo", `{}`, func(x *upstreamtest.Exchange) { x.Raw(http.StatusBadGateway, "text/plain", secret) },
			"tools/call mcp_up_echo", "outcome_unknown", "outcome_unknown", "http_status", "502"},
		{"no answer", "alice", "mcp_up_echo", `{}`, func(x *upstreamtest.Exchange) { x.HangUp() },
			"tools/call mcp_up_echo", "outcome_unknown", "outcome_unknown", "transport", "no_answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.Forget()
			if test.script != nil {
				r.upstream.On("tools/call", test.script)
				defer r.upstream.On("tools/call", nil)
			}
			r.tracedCall(test.who, test.tool, test.arguments, callersParent, "")
			spans := c.Spans(t, callersTrace)
			call := named(t, spans, "server", test.span)
			if !call.Failed || call.Attributes["error.type"] != test.errorType || call.Attributes["gatehouse.verdict"] != test.verdict || call.Message != "" {
				t.Errorf("%+v", call)
			}
			if wire := call.Attributes["rpc.response.status_code"]; strings.HasPrefix(test.errorType, "-") != (wire == test.errorType) {
				t.Errorf("rpc.response.status_code %q", wire)
			}
			for _, s := range spans {
				switch {
				case s.Kind != "client":
				case s.Parent == call.ID && (!s.Failed || s.Attributes["error.type"] != test.operation || s.Attributes["gatehouse.verdict"] != test.verdict),
					s.Parent != call.ID && (s.Failed != (test.leg != "") || s.Attributes["error.type"] != test.leg):
					t.Errorf("%+v", s)
				}
			}
		})
	}
	if body := c.Bodies(); bytes.Contains(body, []byte("made_up")) || bytes.Contains(body, []byte(secret)) {
		t.Error("a made-up name or a server's words are in a span")
	}
}

// A collector that is not there slows nothing, and the log is not full of it.
func TestTraceWithoutACollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nowhere := &tracetest.Collector{URL: "http://" + l.Addr().String()}
	l.Close()
	var lines lockedBuffer
	r := newRig(t, recent, "requires_approval = false", "", func(r *rig) { r.logger = slog.New(slog.NewTextHandler(&lines, nil)) },
		traced(t, nowhere, "OTEL_BSP_MAX_QUEUE_SIZE", "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4", "OTEL_EXPORTER_OTLP_TIMEOUT", "50"))
	for range 50 {
		if x := r.tracedCall("alice", "mcp_up_echo", `{}`, callersParent, ""); x.verdict() != "ok" {
			t.Fatal(x.raw)
		}
	}
	const line = "the collector did not take spans"
	for began := time.Now(); !strings.Contains(lines.String(), line); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("it is not in the log")
		}
	}
	time.Sleep(300 * time.Millisecond) // several batches' time
	if n := strings.Count(lines.String(), line); n != 1 {
		t.Errorf("%d lines of the log say so", n)
	}
	began := time.Now()
	r.tracer.Close(context.Background())
	r.tracer = nil
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("closing took %s", took)
	}
}

// A call of our own tool sends nothing, and one from the command line is traced
// like any other.
func TestTraceOfOwnTools(t *testing.T) {
	c := tracetest.Start(t)
	r := newRig(t, recent, "requires_approval = false", "", traced(t, c))
	if reply := r.g.Call(t.Context(), r.g.Caller("alice"), "gatehouse_status", []byte(`{}`), nil, nil); reply.Verdict != gate.OK {
		t.Fatalf("%+v", reply)
	}
	wantOutline(t, c.Spans(t, ""), "nothing > tools/call gatehouse_status (server)", "tools/call gatehouse_status > judge (internal)",
		"tools/call gatehouse_status > ledger (internal)")
}
