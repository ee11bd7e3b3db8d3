package federation

import (
	"net/http"

	"gatehouse/federation/trace"
	"gatehouse/gate"
)

// beginTrace begins the span of a call below what the caller does, or gives the
// upstream a parent that is ours where calls are not traced.
func (g *Gateway) beginTrace(inv *invocation, r *http.Request, parent string) {
	switch {
	case g.tracer != nil:
		inv.trace = g.tracer.Begin(parent, r.Header.Get(headerVersion))
		inv.traceParent = inv.trace.TraceParent()
	case parent != "":
		inv.traceParent = ownSpan(parent)
	}
}

// sendingTrace is the traceparent for a tool's server.
func (inv *invocation) sendingTrace(tool *gate.Tool) string {
	if inv.trace == nil {
		return inv.traceParent
	}
	return inv.trace.Sending(tool)
}

// endTrace ends the span of a call. A tool is named when there is one: a name that
// a caller made up is no name for a span.
func (g *Gateway) endTrace(inv *invocation, r *reply, verdict gate.Verdict) {
	if inv.trace == nil {
		return
	}
	e := trace.Ending{Tool: g.Catalog.Snapshot().Tool(inv.name), Caller: inv.caller.Name, Session: inv.session, Request: inv.request,
		Verdict: verdict, Failed: verdict != gate.OK && verdict != asked, Record: r.record}
	if r.failure != nil {
		e.Code = r.failure.code
	}
	inv.trace.End(e)
}
