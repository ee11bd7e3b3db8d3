package control

import (
	"context"
	"errors"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/plan"
	"gatehouse/gate"
)

// Reloads is the part of API that compares and replaces the configuration.
type Reloads interface {
	// Plan compares the configuration in force with a file. Without data it is
	// the file that the gateway was started with.
	Plan(ctx context.Context, r PlanRequest) (PlanReply, error)
	// Reload puts the file that the gateway was started with into force. Digest,
	// when it is set, is of the file whose plan was agreed to.
	Reload(ctx context.Context, digest string) (PlanReply, error)
}

// A PlanRequest names the new configuration.
type PlanRequest struct {
	Path   string // absolute; for messages and for the paths in the file
	Data   []byte // nil: the gateway's own file
	Replay int    // how many recorded calls to judge under both
}

// A PlanReply is a plan, or what keeps a file from having one.
type PlanReply struct {
	Problems []string   `json:"problems"` // empty: the file is good
	Plan     *plan.Plan `json:"plan"`     // nil with problems
}

// Plan implements API.
func (l *Local) Plan(ctx context.Context, r PlanRequest) (PlanReply, error) {
	path, data, problems := r.Path, r.Data, config.Problems(nil)
	if data == nil {
		path = l.g.Config().Path
		data, problems = config.Read(path)
	}
	var cfg *config.Config
	if problems == nil {
		cfg, problems = config.Parse(path, data)
	}
	if cfg == nil {
		return PlanReply{Problems: texts(problems)}, nil
	}
	p, err := l.g.Plan(ctx, cfg, r.Replay)
	return PlanReply{Problems: []string{}, Plan: p}, err
}

// Reload implements API.
func (l *Local) Reload(ctx context.Context, digest string) (PlanReply, error) {
	var want gate.Digest
	if err := want.UnmarshalText([]byte(digest)); err != nil {
		return PlanReply{}, err
	}
	p, err := l.g.ReloadFile(ctx, federation.Operator, want)
	if invalid, ok := errors.AsType[*federation.InvalidFileError](err); ok {
		return PlanReply{Problems: texts(invalid.Problems)}, nil
	}
	return PlanReply{Problems: []string{}, Plan: p}, err
}

// texts are the problems that keep a file from loading.
func texts(problems config.Problems) []string {
	out := []string{}
	for _, p := range problems.Errors() {
		out = append(out, p.String())
	}
	return out
}

type inReload struct{ Digest string }

// reloadOperations are what the socket serves of Reloads.
func reloadOperations(api Reloads) map[string]operation {
	return map[string]operation{
		"plan":   of(func(ctx context.Context, in PlanRequest) (any, error) { return api.Plan(ctx, in) }),
		"reload": of(func(ctx context.Context, in inReload) (any, error) { return api.Reload(ctx, in.Digest) }),
	}
}

// Plan implements API.
func (r *Remote) Plan(ctx context.Context, in PlanRequest) (out PlanReply, err error) {
	return out, r.send(ctx, "plan", in, &out)
}

// Reload implements API.
func (r *Remote) Reload(ctx context.Context, digest string) (out PlanReply, err error) {
	return out, r.send(ctx, "reload", inReload{digest}, &out)
}
