package trace

import (
	"context"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otrace "go.opentelemetry.io/otel/trace"

	"gatehouse/gate"
)

// textLimit is the longest text of an attribute that somebody else chose.
const textLimit = 128

// A Call is the spans of one call. One goroutine at a time works on it; nil
// records nothing.
//
// Below the call's span are, one after the other, its checks, the question to a
// person, the writes to the ledger, and the operation upstream with its requests.
type Call struct {
	spans otrace.Tracer
	span  otrace.Span

	protocol string

	judge    otrace.Span // while the gate decides
	judged   time.Time   // when it began to write down what it decided
	question otrace.Span // while it is open

	sending otrace.Span // while the upstream is at work
	sent    time.Time
}

// Begin begins the span of a call. Parent is the traceparent of the caller; what
// is none begins a trace of its own. Protocol is the MCP revision that the caller
// speaks, "" when it does not say.
func (t *Tracer) Begin(parent, protocol string) *Call {
	if t == nil {
		return nil
	}
	c := &Call{spans: t.spans, protocol: protocol}
	ctx := context.Background()
	if above := parse(parent); above.IsValid() {
		ctx = otrace.ContextWithRemoteSpanContext(ctx, above)
	}
	_, c.span = t.spans.Start(ctx, "tools/call", otrace.WithSpanKind(otrace.SpanKindServer))
	return c
}

// parse reads a traceparent (W3C Trace Context); what is none gives an invalid context.
func parse(parent string) (none otrace.SpanContext) {
	if len(parent) != 55 || parent[:2] == "ff" {
		return none
	}
	trace, err := otrace.TraceIDFromHex(parent[3:35])
	if err != nil {
		return none
	}
	span, err := otrace.SpanIDFromHex(parent[36:52])
	if err != nil {
		return none
	}
	flags, err := hex.DecodeString(parent[53:])
	if err != nil {
		return none
	}
	return otrace.NewSpanContext(otrace.SpanContextConfig{TraceID: trace, SpanID: span, TraceFlags: otrace.TraceFlags(flags[0]), Remote: true})
}

// traceparent is the header of a span.
func traceparent(s otrace.Span) string {
	c := s.SpanContext()
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// TraceParent is the traceparent of the call itself.
func (c *Call) TraceParent() string { return traceparent(c.span) }

// child begins a span below parent at a time. A trace that is not sampled has
// none: it is only passed on.
func (c *Call) child(parent otrace.Span, at time.Time, kind otrace.SpanKind, name string, attributes ...attribute.KeyValue) otrace.Span {
	if !parent.IsRecording() {
		return parent
	}
	_, s := c.spans.Start(otrace.ContextWithSpan(context.Background(), parent), name,
		otrace.WithTimestamp(at), otrace.WithSpanKind(kind), otrace.WithAttributes(attributes...))
	return s
}

// finish ends a span that child began, and nothing else: of a trace that is not
// sampled that is the call's own.
func (c *Call) finish(s otrace.Span, at time.Time) {
	if c.span.IsRecording() {
		s.End(otrace.WithTimestamp(at))
	}
}

// Judging says that the gate begins to decide. A question that was open has been
// answered then, one way or another.
func (c *Call) Judging() {
	if c == nil {
		return
	}
	now := time.Now()
	c.answered(now)
	c.judge, c.judged = c.child(c.span, now, otrace.SpanKindInternal, "judge"), time.Time{}
}

// Judged says what the gate decided. Its span ends where it began to write that
// down; a wait for a slot is part of it.
func (c *Call) Judged(r gate.Ruling) {
	if c == nil {
		return
	}
	now := time.Now()
	if c.judged.IsZero() {
		c.judged = now
	}
	switch {
	case r.Permit != nil:
		c.judge.SetAttributes(attribute.String("gatehouse.ruling", "permit"))
	case r.Refusal != nil:
		c.judge.SetAttributes(attribute.String("gatehouse.ruling", "refusal"), attribute.String("gatehouse.reason", string(r.Refusal.Reason)))
	case r.Question != nil:
		c.judge.SetAttributes(attribute.String("gatehouse.ruling", "question"))
		channel := "client"
		if r.Question.Channel == gate.ConsoleChannel {
			channel = "console"
		}
		c.question = c.child(c.span, now, otrace.SpanKindInternal, "question",
			attribute.Int64("gatehouse.question", int64(r.Question.Number)), attribute.String("gatehouse.channel", channel))
	}
	c.finish(c.judge, c.judged)
	c.judge = nil
}

func (c *Call) answered(at time.Time) {
	if c.question != nil {
		c.finish(c.question, at)
		c.question = nil
	}
}

// wrote records one write to the ledger.
func (c *Call) wrote(began time.Time, entries []*gate.Entry, err error) {
	s := c.child(c.span, began, otrace.SpanKindInternal, "ledger")
	if len(entries) > 0 {
		last := entries[len(entries)-1]
		s.SetAttributes(attribute.String("gatehouse.kind", string(last.Kind)), attribute.Int64("gatehouse.record", int64(last.Number)))
		if last.Approval != 0 {
			s.SetAttributes(attribute.Int64("gatehouse.question", int64(last.Approval)))
		}
	}
	if err != nil {
		fail(s, "not_recorded")
	}
	c.finish(s, time.Now())
}

// Sending begins the operation with a tool's server, and returns the traceparent
// that goes with it.
func (c *Call) Sending(tool *gate.Tool) string {
	remote := clip(string(tool.Remote))
	c.sent = time.Now()
	c.sending = c.child(c.span, c.sent, otrace.SpanKindClient, "tools/call "+remote,
		attribute.String("mcp.method.name", "tools/call"), attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gen_ai.tool.name", remote), attribute.String("gatehouse.server", string(tool.Server)))
	if u, err := url.Parse(tool.Origin); err == nil {
		c.sending.SetAttributes(attribute.String("server.address", u.Hostname()))
		if port, err := strconv.Atoi(u.Port()); err == nil {
			c.sending.SetAttributes(attribute.Int("server.port", port))
		}
	}
	return traceparent(c.sending)
}

// Sent ends the operation with its account. The account has what each request
// took and not when it began: they are laid one behind the other, and the last
// ends with the operation, so that pauses between repetitions lie before it.
func (c *Call) Sent(o *gate.Outcome) {
	if c == nil || c.sending == nil {
		return
	}
	now := time.Now()
	at := c.sent
	for i, leg := range o.Legs {
		if last := now.Add(-leg.Took); i == len(o.Legs)-1 && last.After(at) {
			at = last
		}
		s := c.child(c.sending, at, otrace.SpanKindClient, leg.Name, attribute.String("http.request.method", "POST"))
		if leg.Status != 0 {
			s.SetAttributes(attribute.Int("http.response.status_code", leg.Status))
		}
		switch {
		case leg.Status >= 400:
			fail(s, strconv.Itoa(leg.Status))
		case leg.Status == 0:
			fail(s, "no_answer")
		}
		at = at.Add(leg.Took)
		c.finish(s, at)
	}
	c.sending.SetAttributes(attribute.String("gatehouse.verdict", string(o.Verdict)))
	switch {
	case o.Verdict == gate.OK:
	case o.Reason != "":
		fail(c.sending, o.Reason)
	default:
		fail(c.sending, string(o.Verdict))
	}
	c.finish(c.sending, now)
	c.sending = nil
}

// An Ending is what a call's span says beside its times.
type Ending struct {
	Tool    *gate.Tool // nil when there is no such tool
	Caller  gate.CallerName
	Session string // for the record, one-way
	Request string // JSON-RPC id, as JSON text
	Verdict gate.Verdict
	Failed  bool  // the verdict is one that stands for a failure
	Code    int64 // of the JSON-RPC error that the caller gets, 0 for none
	Record  uint64
}

// End ends the call.
func (c *Call) End(e Ending) {
	if c == nil {
		return
	}
	now := time.Now()
	c.answered(now)
	set := c.span.SetAttributes
	set(attribute.String("mcp.method.name", "tools/call"), attribute.String("gen_ai.operation.name", "execute_tool"),
		attribute.String("gatehouse.caller", string(e.Caller)), attribute.String("gatehouse.verdict", string(e.Verdict)))
	if e.Tool != nil {
		name := string(e.Tool.Name)
		c.span.SetName("tools/call " + name)
		set(attribute.String("gen_ai.tool.name", name))
		if e.Tool.Server != "" {
			set(attribute.String("gatehouse.server", string(e.Tool.Server)))
		}
	}
	for key, text := range map[attribute.Key]string{"mcp.protocol.version": c.protocol, "gatehouse.session": e.Session,
		"jsonrpc.request.id": clip(strings.Trim(e.Request, `"`))} {
		if text != "" {
			set(key.String(text))
		}
	}
	if e.Record != 0 {
		set(attribute.Int64("gatehouse.record", int64(e.Record)))
	}
	failure := string(e.Verdict)
	if e.Code != 0 {
		failure = strconv.FormatInt(e.Code, 10)
		set(attribute.String("rpc.response.status_code", failure))
	}
	if e.Failed {
		fail(c.span, failure)
	}
	c.span.End(otrace.WithTimestamp(now))
}

// fail marks a span as failed. The description would be the place for an error's
// words, which may quote anything.
func fail(s otrace.Span, class string) {
	s.SetAttributes(attribute.String("error.type", class))
	s.SetStatus(codes.Error, "")
}

func clip(s string) string {
	if len(s) > textLimit {
		s = s[:textLimit]
	}
	return strings.ToValidUTF8(s, "")
}
