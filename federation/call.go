package federation

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"gatehouse/federation/catalog"
	"gatehouse/federation/trace"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// An invocation is one tools/call, whatever it came in through.
type invocation struct {
	caller    *gate.Caller
	name      gate.LocalName
	arguments []byte // raw object as received; nil when absent
	era       era

	state  string       // requestState that came back
	answer *gate.Answer // what a person answered to it
	canAsk bool         // the caller can be asked by form elicitation
	// ask asks within the call. Without it a question is handed back in the reply.
	ask func(context.Context, *gate.Question) *gate.Answer
	// connection ends when whoever waits for the reply has gone. nil: they take a
	// question for the console as the reply, and come back with its state.
	connection context.Context
	held       bool // waited for once already, having come back

	progress func(params []byte) // relays notifications/progress; nil when nobody listens

	session     string // for the record, one-way
	sessionKey  string // the id itself; bound into approvals, never recorded
	holder      string // whose kept upstream sessions these are
	request     string // JSON-RPC id, for the record
	traceParent string
	trace       *trace.Call       // nil unless calls are traced
	inbound     credential.Secret // the verified token, for grants that exchange it

	known *settings // those that caller is known by; nil: not looked up since they came in
}

// A reply is how an invocation ended: exactly one of result, question and failure.
type reply struct {
	result   []rawjson.Member
	question *gate.Question
	failure  *rpcError
	verdict  gate.Verdict
	record   uint64
}

// invoke is the spine of a call: judge, ask, permit, send, settle. What gate
// does not permit goes nowhere.
func (g *Gateway) invoke(ctx context.Context, inv *invocation) reply {
	if inv.name == catalog.CallTool && g.offered(inv) {
		if fault := inv.unwrap(); fault != nil {
			refusal := g.Gate.Deny(ctx, g.Catalog.Snapshot(), inv.caller, inv.call(), gate.InvalidArguments, fault.message)
			return reply{failure: fault, verdict: gate.Refused, record: refusal.Record}
		}
	}
	for {
		snapshot, set := g.standing()
		g.recognize(ctx, inv, set)
		call := inv.call()
		call.Current = func() (gate.Snapshot, *gate.Caller) {
			snapshot, set = g.standing()
			g.recognize(ctx, inv, set)
			return snapshot, inv.caller
		}
		inv.trace.Judging()
		ruling := g.Gate.Submit(ctx, snapshot, inv.caller, call)
		inv.trace.Judged(ruling)
		switch {
		case ruling.Permit != nil:
			return g.perform(ctx, inv, set, ruling.Permit)
		case ruling.Refusal != nil:
			return refused(inv, ruling.Refusal)
		}
		if ruling.Question.Channel == gate.ConsoleChannel {
			if g.awaitConsole(ctx, inv, ruling.Question) {
				continue
			}
			return reply{question: ruling.Question}
		}
		if inv.ask == nil {
			return reply{question: ruling.Question}
		}
		if inv.state != "" {
			// Asked and answered, and asked again: whatever the answer was, it
			// opened nothing, and nobody is asked twice for one call.
			return refused(inv, g.Gate.Deny(ctx, snapshot, inv.caller, inv.call(), gate.ApprovalInvalid, "the answer released nothing"))
		}
		inv.state = ruling.Question.State
		inv.answer = inv.ask(ctx, ruling.Question)
	}
}

// recognize makes inv.caller the caller as set knows them. A person may have
// taken minutes to answer, and the operator may have taken rights away since:
// whoever the file in force no longer knows keeps a name and nothing else.
func (g *Gateway) recognize(ctx context.Context, inv *invocation, set *settings) {
	first := inv.known == nil
	if inv.known == set {
		return
	}
	inv.known = set
	who := inv.caller
	current := set.callers.Named(who.Name)
	if who.AuthenticatedBy == "oidc" {
		if first {
			return // the token was verified a moment ago
		}
		current, _ = set.callers.Authenticate(ctx, inv.inbound.Reveal()) // an error is nobody
	}
	switch {
	case current == who:
	case current == nil || current.Name != who.Name:
		inv.caller = &gate.Caller{Name: who.Name, AuthenticatedBy: who.AuthenticatedBy}
	default:
		as := *current
		as.AuthenticatedBy = who.AuthenticatedBy
		inv.caller = &as
	}
}

// call is what gate judges.
func (inv *invocation) call() gate.Call {
	return gate.Call{Tool: inv.name, Arguments: inv.arguments, State: inv.state, Answer: inv.answer, CanAsk: inv.canAsk, Final: inv.connection != nil,
		Session: inv.session, SessionKey: inv.sessionKey, Request: inv.request, Trace: traceID(inv.traceParent)}
}

// offered reports whether the caller may use the tool that the call names.
func (g *Gateway) offered(inv *invocation) bool {
	reason, _ := gate.Offered(g.Catalog.Snapshot().Tool(inv.name), inv.caller, g.enforcement())
	return reason == ""
}

// unwrap turns a call of gatehouse_call into the call it names, which then takes
// the same way as any other: the same judge, the same question, the same permit.
func (inv *invocation) unwrap() *rpcError {
	members, err := rawjson.UniqueObject(inv.arguments)
	if err != nil {
		return &rpcError{code: codeInvalidParams, message: "gatehouse_call: arguments must be an object with name and arguments"}
	}
	raw, _ := rawjson.Get(members, "name")
	name, err := rawjson.String(raw)
	if raw == nil || err != nil || gate.LocalName(name) == catalog.CallTool {
		return &rpcError{code: codeInvalidParams, message: "gatehouse_call: name must name another tool"}
	}
	inv.name = gate.LocalName(name)
	inv.arguments, _ = rawjson.Get(members, "arguments")
	return nil
}

// perform spends a permit, here or upstream, and settles it whatever happens: a
// panic on the way is an outcome too.
func (g *Gateway) perform(ctx context.Context, inv *invocation, set *settings, permit *gate.Permit) (r reply) {
	outcome := gate.Outcome{Verdict: gate.OutcomeUnknown, Reason: "panic"}
	defer func() {
		inv.trace.Sent(&outcome)
		g.Gate.Settle(permit, outcome)
	}()
	if permit.Tool().Own {
		r, outcome = g.performOwn(inv, permit)
		return r
	}
	result, err := g.Upstream.Call(ctx, permit, upstream.CallOptions{Progress: inv.progress, Holder: inv.holder,
		TraceParent: inv.sendingTrace(permit.Tool()), CallerToken: inv.inbound, Fleet: &set.fleet})
	if err != nil {
		r, outcome = failed(inv, permit, err)
		return r
	}
	outcome = result.Outcome
	members := rawjson.Split(result.Raw) // checked on the wire
	if server := set.config.Server(permit.Tool().Server); server != nil {
		var cut bool
		if members, cut = limitResult(members, server.ResultLimit, permit.Tool().Structured); cut {
			outcome.Detail = "the result was cut to result_limit"
		}
	}
	return reply{result: members, verdict: result.Verdict, record: permit.Record()}
}

// refused words a refusal for the caller. Someone who is no administrator learns
// one sentence, the same for absent, disabled and forbidden.
func refused(inv *invocation, refusal *gate.Refusal) reply {
	r := reply{verdict: refusal.Verdict, record: refusal.Record}
	switch refusal.Reason {
	case gate.InvalidArguments, gate.BudgetSpent, gate.LedgerUnavailable:
		// The tool is the caller's to use; a model can act on what it reads here.
		r.result = textResult(refusalText(inv, refusal), true)
	case gate.ApprovalRequired, gate.ApproverUnavailable:
		if inv.era == modern && !inv.canAsk && refusal.Reason == gate.ApprovalRequired {
			r.failure = &rpcError{code: codeMissingCapability, message: refusalText(inv, refusal),
				data: []byte(`{"requiredCapabilities":{"elicitation":{"form":{}}}}`)}
			break
		}
		r.result = textResult(refusalText(inv, refusal), true)
	case gate.ReasonDeclined, gate.ApprovalExpired, gate.ApprovalInvalid, gate.CallerGone:
		r.result = textResult(refusalText(inv, refusal), true)
	default:
		reason := ""
		if inv.caller.Admin {
			reason = string(refusal.Reason)
		}
		r.failure = &rpcError{code: codeInvalidParams, message: refusalText(inv, refusal), data: refusalData(refusal.Verdict, reason, refusal.Record)}
	}
	return r
}

// failed words what went wrong after the permit, and says what to settle it with.
func failed(inv *invocation, permit *gate.Permit, err error) (reply, gate.Outcome) {
	r := reply{record: permit.Record()}
	var failure *upstream.CallError
	if !errors.As(err, &failure) {
		// Only a permit that bought nothing ends here: nothing was sent.
		r.verdict = gate.NotSent
		r.result = textResult(recorded(string(inv.name)+" was not sent: "+err.Error(), r.record), true)
		return r, gate.Outcome{Verdict: gate.NotSent, Reason: "permit", Detail: err.Error()}
	}
	r.verdict = failure.Verdict
	if failure.HasCode {
		r.failure = &rpcError{code: relayedCode(failure.Code), message: recorded(failure.Error(), r.record),
			data: withRecord(failure.Data, failure.Verdict, r.record)}
		return r, failure.Outcome
	}
	r.result = textResult(recorded(failure.Error(), r.record), true)
	return r, failure.Outcome
}

// relayedCode is the code under which an upstream's error reaches the caller.
// Codes that say something about a connection are about the upstream's with us,
// and would mislead a caller about its own.
func relayedCode(code int64) int64 {
	if code == codeInvalidParams || code < -32768 || code > -32000 {
		return code
	}
	return codeInternal
}

// withRecord adds verdict and record to an upstream's error data where that is
// an object; other data passes as it is, absent data becomes the two alone.
func withRecord(data []byte, verdict gate.Verdict, record uint64) []byte {
	ours := refusalData(verdict, "", record)
	if data == nil {
		return ours
	}
	if !rawjson.IsObject(data) {
		return data
	}
	members, err := rawjson.Object(data)
	if err != nil {
		return ours
	}
	out := []byte{'{'}
	for _, m := range members {
		if !strings.HasPrefix(m.Key, metaOurs) {
			out = append(append(append(append(out, m.Name...), ':'), m.Value...), ',')
		}
	}
	return append(out, bytes.TrimPrefix(ours, []byte{'{'})...)
}

// newInvocation reads the parameters of tools/call.
func (g *Gateway) newInvocation(r *http.Request, who *gate.Caller, m *message, e era) (*invocation, *rpcError) {
	raw := m.param("name")
	name, err := rawjson.String(raw)
	if raw == nil || err != nil {
		return nil, &rpcError{code: codeInvalidParams, message: "params.name is not a string"}
	}
	inv := &invocation{caller: who, name: gate.LocalName(name), arguments: m.param("arguments"), era: e, request: string(m.id)}
	if token, presented := bearer(r); presented {
		inv.inbound = credential.SecretString(token)
	}
	g.beginTrace(inv, r, traceContext(r, m))
	return inv, nil
}

// answerCall runs an invocation and writes its end.
func (g *Gateway) answerCall(ctx context.Context, a *answer, m *message, inv *invocation) {
	began := g.now()
	progress, stop := relay(a, m)
	inv.progress = progress
	if inv.progress != nil || a.streams {
		a.keepAlive()
	}
	defer a.abandon() // where invoke panics
	r := g.invokeThen(inv.trace.Context(ctx), inv, stop)
	g.finished(inv, &r, g.now().Sub(began))
	status := http.StatusOK
	var body []byte
	switch {
	case r.failure != nil:
		if inv.era == modern {
			status = statusOf(r.failure.code)
		}
		body = appendError(nil, m.id, r.failure)
	case r.question != nil:
		body = appendInputRequired(nil, m.id, r.question, g.serverInfo)
	default:
		size := 256
		for i := range r.result {
			size += len(r.result[i].Name) + len(r.result[i].Value) + 2
		}
		body = resultHead(make([]byte, 0, size), m.id)
		body = append(appendResult(body, r.result, inv.era, g.serverInfo, r.verdict, r.record), '}')
	}
	a.finish(status, body)
}

// progressQueue is how many notices of progress wait for a slow caller; what
// comes while it is full is left out.
const progressQueue = 64

// relay passes an upstream's progress to the caller under the caller's own
// token. The notices are written by a goroutine of their own, because a caller
// who does not read must not hold up the upstream's answer: the time would be
// taken from the operation's budget, and the outcome would depend on who
// listens. stop waits for what is being written; nothing may be offered after
// it. offer is nil when the caller gave no token or takes no stream.
func relay(a *answer, m *message) (offer func([]byte), stop func()) {
	token, _ := rawjson.Get(m.meta, "progressToken")
	if !a.streams || token == nil || !rawjson.IsString(token) && !safeID(token) {
		return nil, func() {}
	}
	queue, done := make(chan []byte, progressQueue), make(chan struct{})
	started := false
	offer = func(params []byte) {
		notice := progressNotice(token, params)
		if notice == nil {
			return
		}
		if !started { // offers come one after the other
			started = true
			go func() { // ended and waited for by stop
				defer close(done)
				for notice := range queue {
					_ = a.event(notice) // a caller who left misses progress and nothing else
				}
			}()
		}
		select {
		case queue <- notice:
		default:
		}
	}
	return offer, func() {
		close(queue)
		if started {
			<-done
		}
	}
}

// progressNotice is the notification for a caller's token, nil when params are none.
func progressNotice(token, params []byte) []byte {
	members, err := rawjson.Object(params)
	if err != nil {
		return nil
	}
	b := append([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), token...)
	for _, p := range members {
		switch p.Key {
		case "progress", "total", "message":
			b = append(append(append(append(b, ','), p.Name...), ':'), p.Value...)
		}
	}
	return append(b, "}}"...)
}

// callModern runs one tools/call of 2026-07-28. Closing the response cancels it.
func (g *Gateway) callModern(w http.ResponseWriter, r *http.Request, who *gate.Caller, m *modernRequest) {
	inv, fault := g.newInvocation(r, who, m.message, modern)
	if fault == nil {
		fault = inv.readAnswers(m.message)
	}
	if fault == nil {
		snapshot := g.Catalog.Snapshot()
		if tool := snapshot.Tool(inv.name); tool != nil && len(tool.ParamHeaders) > 0 && snapshot.Listed(who, inv.name) {
			fault = checkParamHeaders(r.Header, tool, inv.arguments)
		}
	}
	if fault != nil {
		g.recordFault(r, who, &faultyMessage{text: fault.message, id: m.id})
		writeEraError(w, modern, m.id, fault)
		return
	}
	inv.canAsk = m.elicits
	inv.holder = ""
	g.answerCall(r.Context(), &answer{w: w, streams: accepts(r)}, m.message, inv)
}

// inputKey names our question among inputRequests.
const inputKey = "approval"

// invokeThen is invoke with an end that comes also where it panics.
func (g *Gateway) invokeThen(ctx context.Context, inv *invocation, end func()) reply {
	defer end()
	return g.invoke(ctx, inv)
}

// readAnswers takes requestState and the answer to our question. Answers without
// a state are not looked at: nobody was asked.
func (inv *invocation) readAnswers(m *message) *rpcError {
	raw := m.param("requestState")
	if raw == nil {
		return nil
	}
	var err error
	if inv.state, err = rawjson.String(raw); err != nil {
		return &rpcError{code: codeInvalidParams, message: "params.requestState is not a string"}
	}
	responses := m.param("inputResponses")
	if responses == nil {
		return nil
	}
	if !rawjson.IsObject(responses) {
		return &rpcError{code: codeInvalidParams, message: "params.inputResponses is not an object"}
	}
	members, _ := rawjson.Object(responses) // checked with the whole body
	if response, ok := rawjson.Get(members, inputKey); ok {
		inv.answer = parseAnswer(response)
	}
	return nil
}

// appendInputRequired appends the response that hands a question to a modern
// caller (MCP 2026-07-28, basic/patterns/mrtr). A question for the console has
// no request in it, only the state to come back with.
func appendInputRequired(dst, id []byte, q *gate.Question, serverInfo []byte) []byte {
	dst = append(resultHead(dst, id), `{"resultType":"input_required",`...)
	if q.Channel != gate.ConsoleChannel {
		dst = append(dst, `"inputRequests":{"`+inputKey+`":{"method":"elicitation/create","params":`...)
		dst = append(appendForm(dst, q, modern), `}},`...)
	}
	dst = rawjson.AppendString(append(dst, `"requestState":`...), q.State)
	dst = append(dst, `,"_meta":{"`+metaServerInfo+`":`...)
	return append(append(dst, serverInfo...), "}}}"...)
}

// traceContext takes the caller's W3C traceparent, from _meta or the header. What
// is not of the right form is dropped, and so is tracestate: it is half a kilobyte of the caller's own text that would
// reach a server without having been judged or shown to anybody, and W3C lets
// anyone on the way leave it out.
func traceContext(r *http.Request, m *message) (parent string) {
	if raw, ok := rawjson.Get(m.meta, "traceparent"); ok {
		parent, _ = rawjson.String(raw)
	} else {
		parent = r.Header.Get("Traceparent")
	}
	if traceID(parent) == "" {
		return ""
	}
	return parent
}

// ownSpan is a traceparent of the same trace whose span is ours: what the
// upstream does is a child of what we do, and not of what the caller does.
func ownSpan(parent string) string {
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	id[0] |= 1       // an id of zeros would be none
	return parent[:36] + hex.EncodeToString(id[:]) + parent[52:]
}

// traceID returns the trace id of a traceparent, "" when it is none.
func traceID(parent string) string {
	if len(parent) != 55 || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return ""
	}
	for i, c := range []byte(parent) {
		if i != 2 && i != 35 && i != 52 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return parent[3:35]
}

// asked stands for the verdict of a call that ends with a question.
const asked gate.Verdict = "asked"

// finished counts a call and writes its one line. The line has no argument and
// nothing of the result; the ledger's entry of that number says the rest.
func (g *Gateway) finished(inv *invocation, r *reply, took time.Duration) {
	verdict := r.verdict
	if r.question != nil {
		verdict = asked
	}
	g.metrics.Operation("tools/call", g.groupOf(inv.name), verdict, took)
	g.endTrace(inv, r, verdict)
	g.Logger.LogAttrs(context.Background(), slog.LevelInfo, "call", slog.String("tool", wire.Clip(string(inv.name))),
		slog.String("caller", string(inv.caller.Name)), slog.String("verdict", string(verdict)), slog.Uint64("record", r.record),
		slog.Duration("took", took))
}
