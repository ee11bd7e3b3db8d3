package control

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/catalog"
	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// operator is who decides through this package. Whoever is here can edit the
// configuration, so there is nothing that narrower rights could keep away.
var operator = &gate.Caller{
	Name:            federation.Operator,
	Admin:           true,
	Zone:            gate.Local,
	Groups:          gate.EveryGroup(),
	AuthenticatedBy: federation.Operator,
}

// importsAtOnce bounds how many servers are listed at the same time.
const importsAtOnce = 8

// A Local is the API of a Gateway in this process.
type Local struct {
	g       *federation.Gateway
	by      *gate.Caller // who acts and decides
	daemon  bool
	started time.Time
}

var _ API = (*Local)(nil)

// NewLocal returns the API of g. Daemon says that g serves callers, rather than
// being open for one command.
func NewLocal(g *federation.Gateway, daemon bool) *Local {
	return &Local{g: g, by: operator, daemon: daemon, started: time.Now()}
}

// As is l in the name of who, an administrator: what is done is on record as
// theirs, and they decide with the rights that they have.
func (l *Local) As(who *gate.Caller) *Local {
	as := *l
	as.by = who
	return &as
}

func (l *Local) actor() federation.Actor {
	return federation.Actor{Name: l.by.Name, Via: l.by.AuthenticatedBy}
}

// Status implements API.
func (l *Local) Status(context.Context) (Status, error) {
	cfg := l.g.Config()
	s := Status{
		Version: l.g.Version, PID: os.Getpid(), Daemon: l.daemon, Started: l.started,
		Config: cfg.Path, URL: l.g.PublicURL() + "/mcp",
		Generation: l.g.Catalog.Snapshot().Generation(),
		Servers:    len(cfg.Servers),
		Approvals:  len(l.g.Gate.Questions()),
		NotReady:   l.g.Ready(),
		Waiting:    l.g.Waiting(),
	}
	s.Tools, s.Enabled = l.g.Catalog.Snapshot().Size()
	return s, nil
}

// Servers implements API.
func (l *Local) Servers(ctx context.Context) ([]Server, error) {
	cfg := l.g.Config()
	stored := map[gate.ServerID]catalog.StoredServer{}
	for _, s := range l.g.Catalog.Servers() {
		stored[s.ID] = s
	}
	tools := map[gate.ServerID][]catalog.Entry{}
	for _, e := range l.g.Catalog.Tools("") {
		tools[e.Server] = append(tools[e.Server], e)
	}
	out := make([]Server, 0, len(cfg.Servers))
	for i := range cfg.Servers {
		id := cfg.Servers[i].ID
		s := l.server(&cfg.Servers[i], stored[id], tools[id])
		s.CredentialState = l.g.CredentialState(ctx, &cfg.Servers[i])
		s.CredentialEnds = moment(l.g.CredentialEnds(ctx, &cfg.Servers[i]))
		out = append(out, s)
	}
	return out, nil
}

func (l *Local) server(c *config.Server, kept catalog.StoredServer, tools []catalog.Entry) Server {
	s := Server{
		ID: string(c.ID), Name: c.Name, URL: plainURL(c.URL), Enabled: c.Enabled,
		Class: c.Class.String(), RequiresApproval: !c.ApprovalWaived, Auth: string(c.Auth.Mode),
		LastImport: moment(kept.LastImport), ImportError: kept.Refusal, Tools: len(tools),
	}
	s.Era, _ = l.g.State.Upstream().Era(c.ID)
	if contact, ok := l.g.State.Upstream().LastContact(c.ID); ok {
		latency := milliseconds(contact.Latency)
		s.LastContact, s.LastLatencyMS = moment(contact.At), &latency
	}
	for _, t := range tools {
		switch t.Availability {
		case gate.Enabled:
			s.ToolsEnabled++
		case gate.Changed:
			s.ToolsWaiting++
		}
	}
	return s
}

// TestServer implements API.
func (l *Local) TestServer(ctx context.Context, id string) (TestReport, error) {
	if l.g.Config().Server(gate.ServerID(id)) == nil {
		return TestReport{}, noServer(id)
	}
	r, err := l.g.Test(ctx, gate.ServerID(id))
	if err != nil {
		return TestReport{}, err
	}
	return TestReport{Server: id, Era: r.Era, Version: r.Version, ServerName: r.ServerName, ServerVersion: r.ServerVersion,
		LatencyMS: milliseconds(r.Latency), Legs: r.Legs}, nil
}

// Import implements API.
func (l *Local) Import(ctx context.Context, ids []string, all, dryRun bool) ([]ImportReport, error) {
	cfg := l.g.Config()
	if all {
		ids = nil
		for i := range cfg.Servers {
			if cfg.Servers[i].Enabled {
				ids = append(ids, string(cfg.Servers[i].ID))
			}
		}
	}
	for _, id := range ids {
		if cfg.Server(gate.ServerID(id)) == nil {
			return nil, noServer(id)
		}
	}
	reports := make([]ImportReport, len(ids))
	errs := make([]error, len(ids))
	slots := make(chan struct{}, importsAtOnce)
	var running sync.WaitGroup
	for i, id := range ids {
		running.Go(func() { // each is bounded by its server's budget
			slots <- struct{}{}
			defer func() { <-slots }()
			if all && l.g.Shunned(ctx, cfg.Server(gate.ServerID(id))) {
				reports[i] = ImportReport{Server: gate.ServerID(id), DryRun: dryRun,
					Refusal: "it refuses our credential and is left alone; change the credential, or name the server to try again"}
				return
			}
			reports[i], errs[i] = l.importOne(ctx, gate.ServerID(id), dryRun)
		})
	}
	running.Wait()
	return reports, errors.Join(errs...)
}

// importOne turns a refusal into a report: it is what the operator asked to see.
func (l *Local) importOne(ctx context.Context, id gate.ServerID, dryRun bool) (ImportReport, error) {
	report, err := l.g.ImportAs(ctx, l.actor(), id, dryRun)
	if refused, ok := errors.AsType[*catalog.RefusedError](err); ok {
		report.Server, report.Refusal, report.DryRun = id, refused.Reason, dryRun
		return report, nil
	}
	return report, err
}

// Secrets implements API.
func (l *Local) Secrets(context.Context) ([]Secret, error) {
	if l.g.Vault == nil {
		return nil, errNoVault
	}
	infos, err := l.g.Vault.List()
	if err != nil {
		return nil, err
	}
	out := make([]Secret, len(infos))
	for i, info := range infos {
		out[i] = Secret{Name: info.Name, By: info.By, At: info.At}
	}
	return out, nil
}

// SetSecret implements API. It takes over value.
func (l *Local) SetSecret(ctx context.Context, name string, value []byte) error {
	if l.g.Vault == nil {
		return errNoVault
	}
	if !credential.ValidVaultName(name) {
		return fmt.Errorf("secret %q: a name has letters, digits, \"-\", \"_\" and \".\", and starts with a letter or digit", name)
	}
	secret := credential.NewSecret(value)
	defer secret.Wipe()
	if err := l.record(ctx, &gate.Entry{Kind: gate.KindSecret, Detail: "set " + name}); err != nil {
		return err
	}
	return l.g.Vault.Set(ctx, name, secret, string(l.by.Name))
}

// RemoveSecret implements API.
func (l *Local) RemoveSecret(ctx context.Context, name string) error {
	if l.g.Vault == nil {
		return errNoVault
	}
	if err := l.record(ctx, &gate.Entry{Kind: gate.KindSecret, Detail: fmt.Sprintf("remove %q", name)}); err != nil {
		return err
	}
	found, err := l.g.Vault.Remove(name)
	if err == nil && !found {
		return fmt.Errorf("secret %q: %w; gatehouse secret list shows what there is", name, ErrNotFound)
	}
	return err
}

// record makes an operator's act durable before it is done.
func (l *Local) record(ctx context.Context, e *gate.Entry) error {
	e.Caller, e.Via = l.by.Name, l.by.AuthenticatedBy
	return l.g.Ledger.Append(ctx, e)
}

var errNoVault = errors.New("there is no vault: set [vault] identity to a reference to an age identity")

func noServer(id string) error {
	return fmt.Errorf("server %q: %w in the configuration in force; gatehouse servers list shows what there is, gatehouse reload takes in a changed file", id, ErrNotFound)
}

func noCaller(name string) error {
	return fmt.Errorf("caller %q: %w; it wants a [[caller]] of that name", name, ErrNotFound)
}

// plainURL leaves out what may hold a secret: user, query and fragment.
func plainURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}
