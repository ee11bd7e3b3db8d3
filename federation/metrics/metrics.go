package metrics

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"gatehouse/gate"
)

// Other stands for every label value that is not known beforehand.
const Other = "other"

// operationBuckets are those of the OpenTelemetry conventions for MCP.
var operationBuckets = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// Metrics are the counters of one gateway. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	server     *prometheus.HistogramVec
	session    prometheus.Histogram
	client     *prometheus.HistogramVec
	legs       *prometheus.HistogramVec
	refusals   *prometheus.CounterVec
	denied     prometheus.Counter
	asked      prometheus.Counter
	answered   *prometheus.CounterVec
	waited     prometheus.Histogram
	imports    *prometheus.CounterVec
	reloads    *prometheus.CounterVec
	entries    *prometheus.CounterVec
	commit     prometheus.Histogram
	batch      prometheus.Histogram
	openAnswer waiting

	mu    sync.Mutex                                        // one addition to known at a time
	known atomic.Pointer[map[operation]prometheus.Observer] // the series of server; replaced, never edited
}

// New makes the metrics of a gateway of that version.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		server: histograms("mcp_server_operation_duration_seconds",
			"How long a caller's request took, from its arrival to its answer; a person's time to approve included.",
			operationBuckets, "mcp_method_name", "group", "verdict"),
		session: histogram("mcp_server_session_duration_seconds", "How long a caller's session lasted.",
			[]float64{1, 10, 60, 300, 1800, 7200, 28800, 86400}),
		client: histograms("mcp_client_operation_duration_seconds",
			"How long an operation with a server took, all its requests together.", operationBuckets, "mcp_method_name", "server", "verdict"),
		legs: histograms("gatehouse_leg_duration_seconds", "How long one request to a server took, by its part in the operation.",
			operationBuckets, "server", "leg"),
		refusals: counters("gatehouse_refusals_total", "Calls that were refused, by reason.", "reason"),
		denied:   counter("gatehouse_auth_failures_total", "Requests whose token nobody has."),
		asked:    counter("gatehouse_approvals_asked_total", "Calls for which a person was asked."),
		answered: counters("gatehouse_approvals_answered_total", "How the questions ended.", "answer"),
		waited: histogram("gatehouse_approval_wait_seconds", "How long it took until a question had its answer.",
			[]float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}),
		imports: counters("gatehouse_imports_total", "Imports of a server's tools.", "server", "result"),
		reloads: counters("gatehouse_reloads_total", "Configurations that were to come into force while running.", "result"),
		entries: counters("gatehouse_ledger_entries_total", "Entries written to the ledger.", "kind"),
		commit: histogram("gatehouse_ledger_commit_duration_seconds", "How long it took to make a batch of entries durable.",
			[]float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5}),
		batch: histogram("gatehouse_ledger_batch_entries", "How many entries were made durable together.",
			[]float64{1, 2, 4, 8, 16, 32, 64, 128, 256}),
	}
	m.known.Store(&map[operation]prometheus.Observer{})
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()}})
	build.Set(1)
	m.registry.MustRegister(m.server, m.session, m.client, m.legs, m.refusals, m.denied, m.asked, m.answered, m.waited, m.imports,
		m.reloads, m.entries, m.commit, m.batch, build, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// methods are those that a caller can be answered.
var methods = []string{"tools/call", "tools/list", "initialize", "server/discover", "ping",
	"notifications/initialized", "notifications/cancelled"}

// Operation counts one request of a caller. Group is the tool group of a call,
// "" when there is no such tool; verdict is "" for what is no call.
func (m *Metrics) Operation(method, group string, verdict gate.Verdict, took time.Duration) {
	k := operation{method, group, verdict}
	series, ok := (*m.known.Load())[k]
	if !ok {
		if !slices.Contains(methods, method) {
			k.method = Other
		}
		series = m.series(k)
	}
	series.Observe(took.Seconds())
}

// An operation is the labels of one series.
type operation struct {
	method, group string
	verdict       gate.Verdict
}

// series finds a series, and remembers it: every call needs one, and the map of
// the library takes a lock and most of a microsecond to find it.
func (m *Metrics) series(k operation) prometheus.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	series := m.server.WithLabelValues(k.method, k.group, string(k.verdict))
	next := maps.Clone(*m.known.Load())
	next[k] = series
	m.known.Store(&next)
	return series
}

// SessionEnded counts a caller's session.
func (m *Metrics) SessionEnded(lasted time.Duration) { m.session.Observe(lasted.Seconds()) }
