package federation

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/federation/config"
	"gatehouse/federation/plan"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// A Waiting is a configuration file that is not in force, and why.
type Waiting struct {
	Path     string     `json:"path"`
	Digest   string     `json:"digest"` // of its bytes, "" when it could not be read
	Since    time.Time  `json:"since"`
	Problems []string   `json:"problems"` // why it cannot be put into force; empty: it can
	Plan     *plan.Plan `json:"plan"`     // what it would change; nil when it cannot be put into force
}

// Waiting returns the file that was looked at last and did not come into force;
// nil when the file is the one in force.
func (g *Gateway) Waiting() *Waiting { return g.waiting.Load() }

// ErrFileChanged says that a file is not the one whose plan was agreed to.
var ErrFileChanged = errors.New("the file changed after its plan was shown; look at the new plan")

// An InvalidFileError says that a file cannot be put into force. What was in
// force stays.
type InvalidFileError struct {
	Path     string
	Problems config.Problems
}

func (e *InvalidFileError) Error() string {
	errs := e.Problems.Errors()
	if len(errs) == 1 {
		return errs[0].String() + "; the configuration in force stays"
	}
	return fmt.Sprintf("%s: %d problems; the configuration in force stays", filepath.Base(e.Path), len(errs))
}

// Plan says what cfg would change. With replay it also judges that many of the
// last recorded calls under both configurations.
func (g *Gateway) Plan(ctx context.Context, cfg *config.Config, replay int) (*plan.Plan, error) {
	snapshot, set := g.standing()
	enforcement := gate.Enforce
	if cfg.Gate.Observe {
		enforcement = gate.Observe
	}
	from := plan.Side{Config: set.config, Catalogue: snapshot}
	to := plan.Side{Config: cfg, Catalogue: g.Catalog.Preview(catalogSettings(cfg), enforcement)}
	p := plan.Compare(from, to)
	if replay > 0 {
		calls, err := recordedCalls(ctx, set.config.LedgerDir(), replay)
		if err != nil {
			return nil, err
		}
		p.Replay = plan.Judge(from, to, calls)
	}
	return p, nil
}

// Reload puts a configuration into force and on record. Calls in flight finish
// under the snapshot they began with. An error changes nothing. What only a
// restart can change keeps its value and is named in the plan.
func (g *Gateway) Reload(ctx context.Context, cfg *config.Config) (*plan.Plan, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	return g.reload(ctx, cfg, Operator)
}

// ReloadFile is Reload for the file that the gateway was started with. With a
// want the file must have that digest, or the error is ErrFileChanged. By says
// on record who or what asked for it.
func (g *Gateway) ReloadFile(ctx context.Context, by string, want gate.Digest) (*plan.Plan, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	data, cfg, err := g.readFile()
	if err != nil {
		g.refuse(ctx, by, data, err)
		return nil, err
	}
	if !want.IsZero() && want != cfg.Digest {
		return nil, ErrFileChanged
	}
	return g.reload(ctx, cfg, by)
}

// readFile reads the gateway's own file. The error is an *InvalidFileError.
func (g *Gateway) readFile() ([]byte, *config.Config, error) {
	path := g.Config().Path
	data, problems := config.Read(path)
	if problems != nil {
		return nil, nil, &InvalidFileError{path, problems}
	}
	cfg, problems := config.Parse(path, data)
	if cfg == nil {
		return data, nil, &InvalidFileError{path, problems}
	}
	return data, cfg, nil
}

// reload is the one way a configuration comes into force once the gateway is
// open. g.reloading is held.
func (g *Gateway) reload(ctx context.Context, cfg *config.Config, by string) (*plan.Plan, error) {
	p, err := g.Plan(ctx, cfg, 0)
	if err != nil {
		return nil, err
	}
	entry := &gate.Entry{Kind: gate.KindReload, Via: Operator, AnsweredBy: gate.CallerName(by), Verdict: gate.OK,
		Definition: cfg.Digest, Detail: p.Summary(), Generation: g.Catalog.Snapshot().Generation()}
	if err := g.Ledger.Append(context.WithoutCancel(ctx), entry); err != nil {
		return nil, fmt.Errorf("reload: not on record, so not done: %w", err)
	}
	if err := g.apply(g.reloadable(cfg)); err != nil {
		failed := *entry
		failed.Number, failed.Time = 0, time.Time{}
		failed.Verdict, failed.Reason, failed.Detail = gate.Refused, "reload_failed", err.Error()
		return nil, errors.Join(fmt.Errorf("reload: %w; the configuration in force stays", err),
			g.Ledger.Append(context.WithoutCancel(ctx), &failed))
	}
	g.waiting.Store(nil)
	g.Logger.Info("reloaded", "file", cfg.Path, "digest", cfg.Digest.String(), "by", by, "plan", p.Summary())
	return p, nil
}

// reloadable is cfg with what only a restart can change as it is now, so that
// nobody reads a value that is not so.
func (g *Gateway) reloadable(cfg *config.Config) *config.Config {
	now, next := g.Config(), *cfg
	next.Listen.Address, next.Listen.CertFile, next.Listen.KeyFile = now.Listen.Address, now.Listen.CertFile, now.Listen.KeyFile
	next.Metrics = now.Metrics
	next.State, next.Vault = now.State, now.Vault
	next.Audit.Retention, next.Audit.SigningKey = now.Audit.Retention, now.Audit.SigningKey
	return &next
}

// refuse notes a file that cannot be put into force, wherever an operator would
// look: log, ledger, and what status tells. It does so once for the same bytes.
func (g *Gateway) refuse(ctx context.Context, by string, data []byte, err error) {
	w := &Waiting{Path: g.Config().Path, Since: g.now(), Problems: []string{}}
	var digest gate.Digest
	if data != nil {
		digest = gate.DigestOf(data)
		w.Digest = digest.String()
	}
	if invalid, ok := errors.AsType[*InvalidFileError](err); ok {
		for _, p := range invalid.Problems.Errors() {
			w.Problems = append(w.Problems, p.String())
		}
	}
	old := g.waiting.Swap(w)
	if old != nil && old.Digest == w.Digest && slices.Equal(old.Problems, w.Problems) {
		w.Since = old.Since
		return
	}
	g.Logger.Error("the configuration file cannot be put into force; the one before stays", "file", w.Path, "by", by, "problems", w.Problems)
	detail := fmt.Sprintf("%d problems", len(w.Problems))
	if len(w.Problems) > 0 {
		detail += ", first: " + w.Problems[0]
	}
	g.Ledger.Enqueue(&gate.Entry{Kind: gate.KindReload, Via: Operator, AnsweredBy: gate.CallerName(by), Verdict: gate.Refused,
		Reason: "invalid_configuration", Definition: digest, Detail: detail})
}

// Watch looks at the gateway's file from time to time until ctx ends. A change
// that opens nothing comes into force by itself; one that opens something waits
// for ReloadFile, and Waiting tells of it.
func (g *Gateway) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var w watched
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.look(ctx, &w)
		}
	}
}

// A watched remembers what a file was at the last two looks.
type watched struct {
	seen    gate.Digest // the file must be the same twice: nobody is writing it any more
	handled gate.Digest
}

// look takes one look at the file.
func (g *Gateway) look(ctx context.Context, w *watched) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	data, cfg, err := g.readFile()
	now := gate.DigestOf(data)
	settled := w.seen == now
	w.seen = now
	if now == g.Config().Digest {
		w.handled = now
		g.waiting.Store(nil)
		return
	}
	if !settled || w.handled == now {
		return
	}
	w.handled = now
	if err != nil {
		g.refuse(ctx, "watch", data, err)
		return
	}
	p, err := g.Plan(ctx, cfg, 0)
	if err != nil {
		g.Logger.Error("the changed configuration could not be compared", "file", cfg.Path, "error", err)
		return
	}
	if !p.Safe() {
		g.waiting.Store(&Waiting{Path: cfg.Path, Digest: cfg.Digest.String(), Since: g.now(), Problems: []string{}, Plan: p})
		g.Logger.Warn("the changed configuration opens something and waits; look and agree with: gatehouse reload",
			"file", cfg.Path, "plan", p.Summary())
		return
	}
	if _, err := g.reload(ctx, cfg, "watch"); err != nil {
		g.Logger.Error("the changed configuration did not come into force", "file", cfg.Path, "error", err)
	}
}

// recordedCalls returns the last n calls on record, oldest first.
func recordedCalls(ctx context.Context, dir string, n int) ([]plan.Call, error) {
	for span := 4 * n; ; span *= 4 {
		var calls []plan.Call
		looked := 0
		err := ledger.Tail(ctx, dir, span, false, func(_ []byte, e gate.Entry) error {
			looked++
			if (e.Kind == gate.KindIntent || e.Kind == gate.KindDenied) && e.Tool != "" && e.Caller != "" {
				calls = append(calls, plan.Call{Number: e.Number, Time: e.Time, Caller: e.Caller, Tool: e.Tool, Arguments: recordedArguments(&e)})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(calls) >= n {
			return calls[len(calls)-n:], nil
		}
		if looked < span {
			return calls, nil
		}
	}
}

// recordedArguments are the arguments of a recorded call when the record has
// them as they were: nil when it holds a digest only, or redacted text.
func recordedArguments(e *gate.Entry) []byte {
	for _, candidate := range []string{e.Arguments, "{}"} {
		if candidate == "" {
			continue
		}
		if digest, err := digestArguments([]byte(candidate)); err == nil && digest == e.ArgumentDigest {
			return []byte(candidate)
		}
	}
	return nil
}
