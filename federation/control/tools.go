package control

import (
	"context"
	"fmt"

	"gatehouse/federation"
	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// Tools implements API.
func (l *Local) Tools(_ context.Context, pattern string) ([]Tool, error) {
	entries := l.g.Catalog.Tools(pattern)
	if len(entries) == 0 && pattern != "" {
		return nil, noTool(pattern)
	}
	out := make([]Tool, len(entries))
	for i, e := range entries {
		out[i] = toolOf(e)
	}
	return out, nil
}

// Tool implements API.
func (l *Local) Tool(_ context.Context, name string) (ToolDetail, error) {
	e, ok := l.g.Catalog.Snapshot().Entry(gate.LocalName(name))
	if !ok {
		return ToolDetail{}, noTool(name)
	}
	d := ToolDetail{Tool: toolOf(e), Origin: e.Origin, ServerName: e.ServerName, Unportable: e.Unportable, Warnings: e.Warnings}
	if d.Warnings == nil {
		d.Warnings = []string{}
	}
	if len(e.Raw) > 0 {
		d.Raw = e.Raw
	}
	return d, nil
}

func toolOf(e catalog.Entry) Tool {
	return Tool{
		Name: string(e.Name), Server: string(e.Server), Remote: printable(string(e.Remote)), Group: e.Group,
		State: e.Availability.String(), Detail: e.Detail, Title: e.Title, Description: e.Description,
		Class: e.Class.String(), RequiresApproval: !e.ApprovalWaived, Own: e.Own, Definition: e.Definition.String(),
		FirstSeen: moment(e.FirstSeen), LastSeen: moment(e.LastSeen), EnabledAt: moment(e.EnabledAt),
	}
}

// Diff implements API.
func (l *Local) Diff(_ context.Context, name string) (Difference, error) {
	if _, ok := l.g.Catalog.Snapshot().Entry(gate.LocalName(name)); !ok {
		return Difference{}, noTool(name)
	}
	return l.g.Catalog.Diff(gate.LocalName(name))
}

// Enable implements API.
func (l *Local) Enable(ctx context.Context, patterns []string) ([]ToolChange, error) {
	return changesOf(l.g.EnableAs(ctx, l.actor(), patterns...))
}

// Disable implements API.
func (l *Local) Disable(ctx context.Context, patterns []string) ([]ToolChange, error) {
	return changesOf(l.g.DisableAs(ctx, l.actor(), patterns...))
}

func changesOf(changes []catalog.Change, err error) ([]ToolChange, error) {
	out := make([]ToolChange, len(changes))
	for i, c := range changes {
		out[i] = ToolChange{Name: string(c.Name), Server: string(c.Server), Remote: printable(string(c.Remote)),
			Kind: string(c.Kind), From: c.From.String(), To: c.To.String()}
	}
	return out, err
}

// Explain implements API.
func (l *Local) Explain(_ context.Context, tool, caller string) (Explanation, error) {
	who := l.subject(caller)
	if who == nil {
		return Explanation{}, noCaller(caller)
	}
	return explanation(tool, caller, l.g.Explain(gate.LocalName(tool), who, nil)), nil
}

// Call implements API.
func (l *Local) Call(ctx context.Context, r CallRequest, ask Asker, progress func([]byte)) (CallReply, error) {
	known := l.g.Caller(gate.CallerName(r.Caller))
	if known == nil {
		return CallReply{}, noCaller(r.Caller)
	}
	who := *known
	who.AuthenticatedBy = federation.Operator
	var put func(context.Context, *gate.Question) *gate.Answer
	if ask != nil {
		put = func(ctx context.Context, q *gate.Question) *gate.Answer {
			answer := ask(ctx, Question{Number: q.Number, Message: q.Message, Until: q.Until})
			if answer == Unanswered {
				return &gate.Answer{Failure: "lost"}
			}
			return &gate.Answer{Action: answer.action(), Content: answer.content()}
		}
	}
	return l.g.Call(ctx, &who, gate.LocalName(r.Tool), r.Arguments, put, progress), nil
}

// Approvals implements API.
func (l *Local) Approvals(context.Context) ([]Approval, error) {
	open := l.g.Gate.Questions()
	out := make([]Approval, len(open))
	for i, q := range open {
		out[i] = approvalOf(q)
	}
	return out, nil
}

// Approval implements API.
func (l *Local) Approval(_ context.Context, number uint64) (Approval, error) {
	q, ok := l.g.Gate.Question(number)
	if !ok {
		return Approval{}, noApproval(number)
	}
	return approvalOf(q), nil
}

// Decide implements API.
func (l *Local) Decide(ctx context.Context, number uint64, approve bool) error {
	if _, ok := l.g.Gate.Question(number); !ok {
		return noApproval(number)
	}
	return l.g.Gate.Decide(ctx, l.g.Catalog.Snapshot(), number, l.by, approve)
}

func approvalOf(q gate.Open) Approval {
	return Approval{
		Number: q.Number, Asked: q.Asked, Until: q.Until,
		Caller: string(q.Caller), Zone: q.Zone.String(), Tool: string(q.Tool), Server: string(q.Server),
		ServerName: q.ServerName, Origin: q.Origin, Remote: printable(string(q.RemoteName)), Class: q.Class.String(),
		Arguments: q.Arguments.String(), Message: q.Message,
	}
}

func noTool(name string) error {
	return fmt.Errorf("tool %q: %w; gatehouse tools list shows what there is", name, ErrNotFound)
}

func noApproval(number uint64) error {
	return fmt.Errorf("approval %d: %w; it was decided, has expired, or never was", number, ErrNotFound)
}
