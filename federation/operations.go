package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
	"gatehouse/upstream"
)

// Operator is who an act on the local socket or the command line is recorded for.
const Operator = "operator"

// An Actor is who does what only an operator can, and how they are known.
type Actor struct {
	Name gate.CallerName
	Via  string // Operator at the command line, Console at the pages
}

var commandLine = Actor{Operator, Operator}

// Test shakes hands with a server. It writes no catalogue.
func (g *Gateway) Test(ctx context.Context, id gate.ServerID) (upstream.Report, error) {
	if err := g.known(id); err != nil {
		return upstream.Report{}, err
	}
	return g.Upstream.Test(ctx, id)
}

// Import takes over what a server lists and puts that on record; with dryRun it
// says what it would take over. A refusal is a *catalog.RefusedError.
func (g *Gateway) Import(ctx context.Context, id gate.ServerID, dryRun bool) (catalog.Report, error) {
	return g.ImportAs(ctx, commandLine, id, dryRun)
}

// ImportAs is Import by somebody who is known by name.
func (g *Gateway) ImportAs(ctx context.Context, by Actor, id gate.ServerID, dryRun bool) (catalog.Report, error) {
	if err := g.known(id); err != nil {
		return catalog.Report{}, err
	}
	if err := g.Ledger.Health(); err != nil && !dryRun {
		return catalog.Report{}, fmt.Errorf("import of %q: the ledger cannot be written: %w", id, err)
	}
	report, err := g.Catalog.Import(ctx, id, func(ctx context.Context) (catalog.Listing, error) {
		listing, err := g.Upstream.List(ctx, id)
		return catalog.Listing{Tools: listing.Tools, Era: listing.Era, Legs: listing.Legs, Pages: listing.Pages}, err
	}, dryRun)
	if dryRun {
		return report, err
	}
	entry := &gate.Entry{Kind: gate.KindImport, Via: by.Via, AnsweredBy: by.Name, Server: id, Verdict: gate.OK, Detail: report.Summary(), Legs: report.Legs}
	if err != nil {
		entry.Verdict, entry.Reason, entry.Detail = gate.Refused, "import_refused", err.Error()
	}
	return report, errors.Join(err, g.Ledger.Append(context.WithoutCancel(ctx), entry))
}

func (g *Gateway) known(id gate.ServerID) error {
	if g.Config().Server(id) == nil {
		return fmt.Errorf("server %q: no [[server]] has this id; see: gatehouse servers", id)
	}
	return nil
}

// Enable opens the tools that the patterns cover, at the definitions now in the
// catalogue. Each change is on record before it is in force.
func (g *Gateway) Enable(ctx context.Context, by string, patterns ...string) ([]catalog.Change, error) {
	return g.EnableAs(ctx, Actor{gate.CallerName(by), Operator}, patterns...)
}

// Disable closes them.
func (g *Gateway) Disable(ctx context.Context, by string, patterns ...string) ([]catalog.Change, error) {
	return g.DisableAs(ctx, Actor{gate.CallerName(by), Operator}, patterns...)
}

// EnableAs is Enable by somebody who is known by name.
func (g *Gateway) EnableAs(ctx context.Context, by Actor, patterns ...string) ([]catalog.Change, error) {
	return g.Catalog.Enable(g.recorder(ctx, by), patterns...)
}

// DisableAs is Disable by somebody who is known by name.
func (g *Gateway) DisableAs(ctx context.Context, by Actor, patterns ...string) ([]catalog.Change, error) {
	return g.Catalog.Disable(g.recorder(ctx, by), patterns...)
}

func (g *Gateway) recorder(ctx context.Context, by Actor) catalog.Recorder {
	return func(changes []catalog.Change) error {
		entries := make([]*gate.Entry, 0, len(changes))
		for _, c := range changes {
			if c.Kind != "" {
				entries = append(entries, &gate.Entry{Kind: c.Kind, Via: by.Via, AnsweredBy: by.Name, Tool: c.Name,
					Server: c.Server, RemoteName: c.Remote, Definition: c.Definition})
			}
		}
		if len(entries) == 0 {
			return nil
		}
		if err := g.Ledger.Append(context.WithoutCancel(ctx), entries...); err != nil {
			return fmt.Errorf("not on record, so not done: %w", err)
		}
		return nil
	}
}

// Explain runs every check for one caller and one tool, with the values compared.
func (g *Gateway) Explain(name gate.LocalName, who *gate.Caller, arguments []byte) []gate.Check {
	return gate.Explain(g.Catalog.Snapshot(), who, gate.Call{Tool: name, Arguments: arguments, CanAsk: true}, g.enforcement())
}

func (g *Gateway) enforcement() gate.Enforcement { return g.inForce().enforcement }

// A CallReply is how a call made by a local command ended. Exactly one of Result
// and Error is set.
type CallReply struct {
	Result  json.RawMessage `json:"result,omitempty"` // as a 2026-07-28 caller reads it
	Error   *CallFailure    `json:"error,omitempty"`
	Verdict gate.Verdict    `json:"verdict"`
	Record  uint64          `json:"record"`
}

// A CallFailure is a JSON-RPC error.
type CallFailure struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Call makes one call as who, through the same gate as any other. ask puts the
// approval question to a person; nil when there is nobody to ask.
func (g *Gateway) Call(ctx context.Context, who *gate.Caller, name gate.LocalName, arguments []byte,
	ask func(context.Context, *gate.Question) *gate.Answer, progress func([]byte)) CallReply {
	key := unguessable()
	inv := &invocation{caller: who, name: name, arguments: arguments, era: modern, canAsk: ask != nil, ask: ask,
		session: label(key), sessionKey: key, progress: progress, request: `"cli"`}
	if ask == nil {
		inv.ask = func(context.Context, *gate.Question) *gate.Answer { return &gate.Answer{Failure: "client_error"} }
	}
	inv.trace = g.tracer.Begin("", "")
	ctx = inv.trace.Context(ctx)
	r := g.invoke(ctx, inv)
	if r.question != nil {
		// It is for the console, and the process that makes this call has none.
		inv.state, inv.answer = r.question.State, &gate.Answer{Failure: gate.FailureClient}
		r = g.invoke(ctx, inv)
	}
	g.endTrace(inv, &r, r.verdict)
	out := CallReply{Verdict: r.verdict, Record: r.record}
	if r.failure != nil {
		out.Error = &CallFailure{Code: r.failure.code, Message: r.failure.message, Data: r.failure.data}
		return out
	}
	out.Result = appendResult(nil, r.result, modern, g.serverInfo, r.verdict, r.record)
	return out
}
