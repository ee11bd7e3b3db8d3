package upstream

import (
	"bytes"
	"context"
	"net/http"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// CallOptions is what accompanies a call without being judged.
type CallOptions struct {
	Progress    func(params []byte) // raw params of notifications/progress for our token; nil asks for none
	TraceParent string              // W3C trace context of our own span
	TraceState  string
	Holder      string            // key of the downstream session for kept sessions; "" is the caller alone
	CallerToken credential.Secret // the verified inbound token, for grants that exchange it
	Fleet       *Fleet            // the servers of the moment the call was judged; nil: those of now
}

// A Result is what the tool answered.
type Result struct {
	Raw     []byte       // the result object as received, unpaired surrogate escapes replaced
	Verdict gate.Verdict // gate.OK or gate.ToolError
	Era     string
	Outcome gate.Outcome // what to settle the permit with
}

// Call spends p and sends the call that it stands for, once. An error is of
// type *CallError; whoever calls settles the permit with the outcome in it or
// in the result.
func (c *Client) Call(ctx context.Context, p *gate.Permit, o CallOptions) (Result, error) {
	order, err := p.Spend()
	if err != nil {
		return Result{}, refusal("", ReasonPermit, err.Error())
	}
	return c.perform(ctx, order, o)
}

// perform carries out an order. It is not exported: an order is what a permit
// was traded for.
func (c *Client) perform(ctx context.Context, order gate.Order, o CallOptions) (Result, error) {
	fleet := c.Fleet()
	if o.Fleet != nil {
		fleet = *o.Fleet
	}
	l, refused := c.enter(order.Tool.Server, fleet)
	if refused != nil {
		return Result{}, refused
	}
	defer c.errands.leave()
	purpose := credential.Execution(order.Caller.Name, o.CallerToken)
	op, f := c.begin(ctx, l, purpose, newTrace(o.TraceParent, o.TraceState))
	defer op.end()
	if f != nil {
		return Result{}, op.error(f)
	}
	if l.server.Auth.Mode == credential.Delegated {
		op.subject = string(order.Caller.Name)
	}
	w := &work{op: op, order: order, options: o}
	if o.Progress != nil {
		w.token = c.tokens.next()
	}
	if f := op.inEra(w.do); f != nil {
		return Result{}, op.error(f)
	}
	op.contact()
	return w.result(), nil
}

// A work is the work request of one call.
type work struct {
	op      *operation
	order   gate.Order
	options CallOptions
	token   string
	era     string
	raw     []byte
}

func (w *work) do(era string) *fault {
	w.era = era
	if era == Modern {
		return w.modern()
	}
	session, done, f := w.op.session(w.order.Caller.Name, w.options.Holder)
	if f != nil {
		return f
	}
	f = w.send(wire.Request{Method: "tools/call", Params: w.op.legacyParams(w.params(), w.token), Header: session.header(w.op.trace)})
	if f != nil && f.reason == ReasonCancelled && f.sent {
		w.op.abandon(session, f.wire.ID)
	}
	done(f)
	return f
}

func (w *work) modern() *fault {
	r := w.op.modernRequest("tools/call", w.params(), w.token)
	r.Header["Mcp-Name"] = []string{wire.EncodeHeaderValue(string(w.order.Tool.Remote))}
	if err := setParamHeaders(r.Header, w.order.Tool.ParamHeaders, w.order.Arguments); err != nil {
		return &fault{leg: "tools/call", reason: ReasonArgument, text: "tools/call was not sent: " + err.Error()}
	}
	f := w.send(r)
	switch {
	case f == nil:
		w.op.found(Modern)
	case f.wire != nil && f.wire.HasCode && f.wire.Code == codeHeaderMismatch:
		f.text += "; the stored definition of the tool may be out of date, import the server again"
	case outOfEra(f):
		// The call is over. The next operation finds out anew.
		w.op.lane.remember(w.op.client, "")
	}
	return f
}

// outOfEra reports whether the answer to a 2026 call is one that a server of an
// older era gives.
func outOfEra(f *fault) bool {
	if f.wire == nil || !provesNotRun(f.wire) {
		return false
	}
	if f.wire.HasCode {
		return f.wire.Code == codeMethodNotFound || f.wire.Code == codeInvalidRequest || f.wire.Code == codeVersionUnsupported
	}
	return f.wire.Status == http.StatusBadRequest || f.wire.Status == http.StatusNotFound || f.wire.Status == http.StatusMethodNotAllowed
}

// params are the call's params, open for _meta, with room for it. Name and
// arguments are the bytes that were judged.
func (w *work) params() [][]byte {
	arguments := w.order.Arguments
	if arguments == nil {
		arguments = noArguments
	}
	name := rawjson.AppendString([]byte(`{"name":`), string(w.order.Tool.Remote))
	return append(make([][]byte, 0, 4), append(name, `,"arguments":`...), arguments, comma)
}

var noArguments = []byte("{}")

// send makes the work request. It is the only place that does, it does so once,
// and wire sees to it that the HTTP library does not either.
func (w *work) send(r wire.Request) *fault {
	r.Once = true
	r.Token, r.Progress = w.token, w.options.Progress
	reply, f := w.op.leg("tools/call", r)
	if f != nil {
		f.work = true
		return f
	}
	w.raw = reply.Result
	return nil
}

func (w *work) result() Result {
	verdict := gate.OK
	if failed(w.raw) {
		verdict = gate.ToolError
	}
	outcome := w.op.outcome(verdict)
	outcome.ResultDigest = gate.DigestOf(w.raw)
	return Result{Raw: w.raw, Verdict: verdict, Era: w.era, Outcome: outcome}
}

// failed reports whether the tool itself says that it failed.
func failed(result []byte) bool {
	// Most results say nothing about it, and then they need not be taken apart.
	// A key may also be spelled with escapes.
	if !bytes.Contains(result, []byte("isError")) && bytes.IndexByte(result, '\\') < 0 {
		return false
	}
	members, err := rawjson.Object(result)
	if err != nil {
		return false // unreachable: wire accepts objects only
	}
	value, _ := rawjson.Get(members, "isError")
	return string(value) == "true"
}
