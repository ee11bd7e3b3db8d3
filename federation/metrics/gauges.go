package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A State is what a gateway is like at the moment of a scrape.
type State struct {
	Ready     bool // calls can be taken
	Ledger    bool // it can be written
	Current   bool // the configuration file is the one in force
	Sessions  int  // callers' sessions that are open
	Listeners int  // streams on which callers wait for notices
	Questions int  // calls that wait for a person
	Servers   []Server
}

// A Server is one configured server.
type Server struct {
	ID          string
	Credential  string         // its state, in one word
	Tools       map[string]int // how many are in which state
	LastContact time.Time      // zero: never
	LastImport  time.Time
}

// Watch makes every scrape ask for the state of the moment. It is called once.
func (m *Metrics) Watch(state func() State) { m.registry.MustRegister(gauges{state}) }

// gauges turns a State into samples. Servers that are no longer configured
// leave no series behind.
type gauges struct{ state func() State }

var (
	readyDesc      = desc("gatehouse_ready", "Whether calls can be taken.")
	ledgerDesc     = desc("gatehouse_ledger_writable", "Whether the ledger can be written; when not, no call is let through.")
	currentDesc    = desc("gatehouse_configuration_current", "Whether the configuration file is the one in force.")
	sessionsDesc   = desc("gatehouse_sessions", "Sessions of callers that are open.")
	listenersDesc  = desc("gatehouse_listeners", "Streams on which callers wait for notices.")
	questionsDesc  = desc("gatehouse_approvals_open", "Calls that wait for a person.")
	credentialDesc = desc("gatehouse_credential_state", "Always 1; the label says how the credential of a server is.", "server", "state")
	toolsDesc      = desc("gatehouse_tools", "Tools in the catalogue.", "server", "state")
	contactDesc    = desc("gatehouse_last_contact_timestamp_seconds", "When an operation with a server last succeeded.", "server")
	importDesc     = desc("gatehouse_last_import_timestamp_seconds", "When an import of a server last succeeded.", "server")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{readyDesc, ledgerDesc, currentDesc, sessionsDesc, listenersDesc, questionsDesc,
		credentialDesc, toolsDesc, contactDesc, importDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	s := g.state()
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	send(readyDesc, truth(s.Ready))
	send(ledgerDesc, truth(s.Ledger))
	send(currentDesc, truth(s.Current))
	send(sessionsDesc, float64(s.Sessions))
	send(listenersDesc, float64(s.Listeners))
	send(questionsDesc, float64(s.Questions))
	for _, server := range s.Servers {
		send(credentialDesc, 1, server.ID, server.Credential)
		for state, n := range server.Tools {
			send(toolsDesc, float64(n), server.ID, state)
		}
		if !server.LastContact.IsZero() {
			send(contactDesc, float64(server.LastContact.UnixMilli())/1000, server.ID)
		}
		if !server.LastImport.IsZero() {
			send(importDesc, float64(server.LastImport.UnixMilli())/1000, server.ID)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
