package federation

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/federation/caller"
	"gatehouse/federation/catalog"
	"gatehouse/federation/config"
	"gatehouse/federation/metrics"
	"gatehouse/federation/state"
	"gatehouse/federation/trace"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/vault"
)

// Options is what a Gateway works with beside its configuration.
type Options struct {
	Version string           // ours, as serverInfo and clientInfo say it
	Logger  *slog.Logger     // nil: silent
	Now     func() time.Time // nil: time.Now
	Tracer  *trace.Tracer    // nil: calls are not traced; whoever made it closes it after the gateway

	sync func(*os.File) error // of the ledger; nil but in tests
}

// A Gateway is the whole line, assembled: state, ledger, catalogue, gate,
// strict client, and the face that callers meet. It is safe for concurrent use.
type Gateway struct {
	State    *state.DB
	Ledger   *ledger.Ledger
	Catalog  *catalog.Catalog
	Upstream *upstream.Client
	Gate     *gate.Gate
	Vault    *vault.Vault // nil when the configuration names no identity
	Resolver *credential.Resolver
	Logger   *slog.Logger
	Version  string

	outbound    outbound   // the way to everything that is no upstream
	reloading   sync.Mutex // one configuration comes into force at a time
	waiting     atomic.Pointer[Waiting]
	sessions    *sessions
	listeners   *listeners
	failures    *authFailures
	held        sync.Map // question number -> *hold, the one call that waits with it
	credentials *credential.Broker
	logins      logins
	metrics     *metrics.Metrics
	news        pulse
	tracer      *trace.Tracer           // nil: calls are not traced
	mounted     map[string]http.Handler // by pattern, beside our own paths
	serverInfo  []byte                  // {"name":"gatehouse","version":…}, encoded once
	now         func() time.Time

	ctx      context.Context // the process's; ends what serves callers
	stop     context.CancelFunc
	leaving  context.Context // ends when the process begins to stop: nobody is waited for any more
	leave    context.CancelFunc
	work     sync.WaitGroup // goroutines that Close waits for
	draining atomic.Bool
	started  atomic.Bool // the ledger says so; its stop is still to come
	closing  sync.Once
	closed   error
}

// settings is everything that one configuration file decides beside the
// catalogue. Each snapshot of the catalogue carries the settings of the file it
// was made for, so that one pointer read gives rules, callers and endpoints that
// belong together.
type settings struct {
	config      *config.Config
	callers     *caller.Directory
	hosts       hostCheck
	public      string         // the url that callers know us by
	fleet       upstream.Fleet // where calls that are judged by these settings go
	enforcement gate.Enforcement
}

// standing is what a call is judged by at this moment, and where it goes.
func (g *Gateway) standing() (*catalog.Snapshot, *settings) {
	snapshot := g.Catalog.Snapshot()
	return snapshot, settingsOf(snapshot)
}

func settingsOf(s *catalog.Snapshot) *settings {
	set, _ := s.Companion().(*settings) // nil only while the gateway is being assembled
	return set
}

// inForce is what the configuration in force decides beside the catalogue.
func (g *Gateway) inForce() *settings { return settingsOf(g.Catalog.Snapshot()) }

// Open assembles a Gateway: state, ledger, catalogue, client and gate, in that
// order. It reaches no upstream. When another process holds the state file the
// error is a *state.InUseError.
func Open(ctx context.Context, cfg *config.Config, o Options) (*Gateway, error) {
	g := &Gateway{Logger: o.Logger, Version: o.Version, now: o.Now, metrics: metrics.New(o.Version), tracer: o.Tracer}
	if g.Logger == nil {
		g.Logger = slog.New(slog.DiscardHandler)
	}
	if g.now == nil {
		g.now = time.Now
	}
	g.serverInfo = append(rawjson.AppendString([]byte(`{"name":"gatehouse","version":`), o.Version), '}')
	// The process's own context: a caller's, or a command's, must not cut short
	// what has to be finished and recorded.
	g.ctx, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.leaving, g.leave = context.WithCancel(g.ctx)
	if err := g.assemble(cfg, o); err != nil {
		return nil, errors.Join(err, g.Close(ctx))
	}
	return g, nil
}

func (g *Gateway) assemble(cfg *config.Config, o Options) (err error) {
	if g.State, err = state.Open(cfg.StatePath(), state.Options{Now: g.now}); err != nil {
		return err
	}
	g.Resolver = &credential.Resolver{}
	signer, err := g.signer(cfg)
	if err != nil {
		return err
	}
	if g.Ledger, err = ledger.Open(ledger.Options{Dir: cfg.LedgerDir(), Now: g.now, Retention: cfg.Audit.Retention,
		Logger: g.Logger, Signer: signer, Sync: o.sync, Observe: g.committed}); err != nil {
		return err
	}
	if g.Catalog, err = catalog.Open(catalog.Options{Store: g.State.Catalog(), Logger: g.Logger, Now: g.now, Version: g.Version}); err != nil {
		return err
	}
	if err := g.openUpstream(cfg); err != nil {
		return err
	}
	if g.Gate, err = gate.New(gateOptions(g, cfg)); err != nil {
		return err
	}
	g.sessions = newSessions(g.ctx, g.sessionEnded)
	g.listeners = newListeners()
	g.failures = newAuthFailures(g.now, g.recordAuthFailure)
	if err := g.apply(cfg); err != nil {
		return err
	}
	g.metrics.Watch(g.scrape)
	g.Catalog.Subscribe(g.catalogChanged)
	g.work.Go(g.housekeeping) // ended by stop, waited for by Close
	return nil
}

// signer is the key that signs the ledger's checkpoints, nil when none is
// configured. A key that cannot be used stops the start: an operator who asked
// for signatures must not find out later that there are none.
func (g *Gateway) signer(cfg *config.Config) (ed25519.PrivateKey, error) {
	if cfg.Audit.SigningKey.IsZero() {
		return nil, nil
	}
	secret, err := g.Resolver.ResolveText(g.ctx, cfg.Audit.SigningKey)
	if err != nil {
		return nil, fmt.Errorf("[audit] signing_key: %w", err)
	}
	text := secret.Bytes()
	defer clear(text)
	key, err := ledger.ParseSigner(text)
	if err != nil {
		return nil, fmt.Errorf("[audit] signing_key: %s: %w", cfg.Audit.SigningKey, err)
	}
	return key, nil
}

func (g *Gateway) openUpstream(cfg *config.Config) error {
	way, err := g.outbound.to(cfg.Network)
	if err != nil {
		return err
	}
	g.outbound.use(way)
	if !cfg.Vault.Identity.IsZero() {
		g.Vault = vault.New(vault.Options{Store: g.State.Vault(), Identity: cfg.Vault.Identity, Secrets: g.Resolver, Now: g.now})
		g.Resolver.Vault = g.Vault
	}
	options := credential.Options{Secrets: g.Resolver, Client: g.outbound.client(), CheckURL: g.outbound.CheckURL, Private: g.outbound.Private, Logger: g.Logger, Now: g.now}
	if g.Vault != nil { // a nil vault in the interface would look like one that is there
		options.Keep = g.Vault
	}
	broker := credential.NewBroker(options)
	g.credentials = broker
	g.Upstream, err = upstream.New(upstream.Options{Network: way.network, Version: g.Version, Credentials: broker,
		Store: g.State.Upstream(), Logger: g.Logger, Now: g.now})
	return err
}

func gateOptions(g *Gateway, cfg *config.Config) gate.Options {
	o := gate.Options{Ledger: g.tracer.Ledger(g.Ledger), Keys: g.State.Keys(), Now: g.now, Digest: digestArguments,
		ApprovalTimeout: cfg.Approval.Timeout, SecondPerson: cfg.Approval.SecondPerson}
	if cfg.Gate.Observe {
		o.Enforcement = gate.Observe
	}
	switch cfg.Approval.Channel {
	case config.ChannelConsole:
		o.Channel = gate.ConsoleChannel
	case config.ChannelClientThenConsole:
		o.Channel = gate.ClientThenConsole
	}
	switch cfg.Audit.Arguments {
	case config.ArgumentsRedacted:
		o.Arguments = gate.KeepRedacted
	case config.ArgumentsFull:
		o.Arguments = gate.KeepAll
	}
	return o
}

// digestArguments is the ledger's digest of a call's arguments: SHA-256 over
// the RFC 8785 form.
func digestArguments(raw []byte) (gate.Digest, error) {
	room := scratch.Get().(*[]byte)
	defer scratch.Put(room)
	form, err := rawjson.Canonical((*room)[:0], raw)
	if err != nil {
		return gate.Digest{}, err
	}
	if cap(form) <= maxScratch {
		*room = form
	}
	return gate.DigestOf(form), nil
}

// scratch holds buffers that nobody but digestArguments sees; those of more than
// maxScratch bytes are left to the collector.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 256 << 10

// apply puts a configuration into force. An error changes nothing.
//
// The swap that counts is the last line: from then on calls are judged by the
// new rules as the new callers and go to the new servers. Whoever read the
// snapshot before has the servers of before with it, so no call is judged by
// one file and sent by another. What comes first (questions, the host gate,
// delegation) may meet a call that is still judged by the old file; there it can
// only be asked or refused once more, since every answer is judged again.
func (g *Gateway) apply(cfg *config.Config) error {
	way, err := g.outbound.to(cfg.Network)
	if err != nil {
		return err
	}
	next := &settings{config: cfg, hosts: newHostCheck(cfg.Listen), public: publicURL(cfg.Listen)}
	next.callers, err = caller.New(cfg.Callers, g.Resolver, caller.Options{OIDC: cfg.OIDC,
		Audience: caller.Resource(next.public), Client: g.outbound.client(), Now: g.now})
	if err != nil {
		return err
	}
	if cfg.Gate.Observe {
		next.enforcement = gate.Observe
	}
	if err := g.Gate.Configure(gateOptions(g, cfg)); err != nil {
		return err
	}
	servers := cfg.UpstreamServers()
	for i := range servers {
		servers[i].Network = way.network
	}
	if err := g.Upstream.Configure(servers); err != nil {
		if old := g.inForce(); old != nil {
			err = errors.Join(err, g.Gate.Configure(gateOptions(g, old.config)))
		}
		return err
	}
	g.outbound.use(way)
	g.credentials.Configure(cfg.Delegation)
	next.fleet = g.Upstream.Fleet()
	callers := make([]*gate.Caller, len(cfg.Callers))
	for i := range cfg.Callers {
		callers[i] = &cfg.Callers[i].Caller
	}
	g.Catalog.ConfigureWith(catalogSettings(cfg), callers, next.enforcement, next)
	return nil
}

func catalogSettings(cfg *config.Config) []catalog.ServerSettings {
	out := make([]catalog.ServerSettings, len(cfg.Servers))
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		out[i] = catalog.ServerSettings{ID: s.ID, Name: s.Name, URL: s.URL, AuthIdentity: s.Auth.Identity(), Enabled: s.Enabled,
			Class: s.Class, ApprovalWaived: s.ApprovalWaived, ApprovalMemory: s.ApprovalMemory, CallsPerMinute: s.CallsPerMinute, Alias: s.Alias}
	}
	return out
}

// Config is the configuration in force.
func (g *Gateway) Config() *config.Config { return g.inForce().config }

// Caller returns the configured caller of that name, or nil.
func (g *Gateway) Caller(name gate.CallerName) *gate.Caller {
	return g.inForce().callers.Named(name)
}

// housekeeping ends idle sessions until the gateway stops.
func (g *Gateway) housekeeping() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
			g.sessions.reap()
			g.failures.flush()
		}
	}
}

func (g *Gateway) sessionEnded(s *session) {
	g.metrics.SessionEnded(s.age())
	if g.Upstream != nil {
		g.Upstream.EndHolder(s.id)
	}
}

// Close stops the gateway: streams end, calls in flight finish within their
// budgets or within ctx, the ledger is settled, the state is given up.
func (g *Gateway) Close(ctx context.Context) error {
	g.closing.Do(func() { g.closed = g.close(ctx) })
	return g.closed
}

func (g *Gateway) close(ctx context.Context) error {
	g.draining.Store(true)
	g.stop()
	g.work.Wait()
	var errs []error
	if g.Upstream != nil {
		errs = append(errs, g.Upstream.Close(ctx))
	}
	if g.Ledger != nil {
		if g.Gate != nil {
			g.Gate.Close()
		}
		if g.failures != nil {
			g.failures.flush()
		}
		if g.started.Load() {
			errs = append(errs, g.Ledger.Append(ctx, &gate.Entry{Kind: gate.KindStop, Via: Operator}))
		}
		errs = append(errs, g.Ledger.Close(ctx))
	}
	if g.State != nil {
		errs = append(errs, g.State.Close())
	}
	return errors.Join(errs...)
}

// Serve answers on l until ctx ends, then drains: no new requests, streams are
// closed politely, calls in flight finish within their budgets. It closes l.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           g.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.Logger.Handler(), slog.LevelDebug),
	}
	serve := server.Serve
	if listen := g.Config().Listen; listen.TLS() {
		certificate := &certificate{certFile: listen.CertFile, keyFile: listen.KeyFile}
		if _, err := certificate.get(nil); err != nil {
			return errors.Join(fmt.Errorf("[listen] tls: %w", err), l.Close())
		}
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	endMetrics, err := g.listenMetrics()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	defer endMetrics()
	// A stop that comes this early is a stop like any other, and no failure.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.DrainTime())
	err = g.Ledger.Append(starting, &gate.Entry{Kind: gate.KindStart, Via: Operator, Detail: "gatehouse " + g.Version})
	cancel()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	g.started.Store(true)
	failed := make(chan error, 1)
	g.work.Go(func() { failed <- serve(l) }) // ended by Shutdown below, waited for by Close
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	g.draining.Store(true)
	g.leave()
	g.listeners.closeAll()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.DrainTime())
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		g.stop()
		return errors.Join(fmt.Errorf("draining: %w", err), server.Close())
	}
	return nil
}

// DrainTime is how long calls in flight may take to finish: the longest budget
// of any server and a little more.
func (g *Gateway) DrainTime() time.Duration {
	cfg := g.Config()
	longest := cfg.Operation.Timeout
	for i := range cfg.Servers {
		longest = max(longest, cfg.Servers[i].Timeout)
	}
	return longest + time.Second
}
