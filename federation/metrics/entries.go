package metrics

import (
	"slices"
	"strings"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// Commit counts what the ledger has written. It is for ledger.Options.Observe.
func (m *Metrics) Commit(c ledger.Commit) {
	if c.Synced {
		m.commit.Observe(c.Took.Seconds())
		m.batch.Observe(float64(len(c.Entries)))
	}
	for _, e := range c.Entries {
		m.entry(e)
	}
}

func (m *Metrics) entry(e *gate.Entry) {
	m.entries.WithLabelValues(known(kinds, string(e.Kind))).Inc()
	switch e.Kind {
	case gate.KindOutcome:
		m.operation("tools/call", e)
	case gate.KindDenied:
		m.refusals.WithLabelValues(known(reasons, e.Reason)).Add(times(e))
	case gate.KindAuthFailure:
		m.denied.Add(times(e))
	case gate.KindQuestion:
		m.asked.Inc()
		m.openAnswer.ask(e)
	case gate.KindAnswer:
		m.answered.WithLabelValues(known(answers, e.Reason)).Inc()
		if took, ok := m.openAnswer.answer(e); ok {
			m.waited.Observe(took.Seconds())
		}
	case gate.KindImport:
		m.imports.WithLabelValues(string(e.Server), string(e.Verdict)).Inc()
		m.operation("tools/list", e)
	case gate.KindReload:
		m.reloads.WithLabelValues(string(e.Verdict)).Inc()
	}
}

// times is how many events an entry stands for.
func times(e *gate.Entry) float64 { return float64(max(e.Count, 1)) }

// operation counts what was sent to a server; our own tools send nothing.
func (m *Metrics) operation(method string, e *gate.Entry) {
	if e.Server == "" || len(e.Legs) == 0 {
		return
	}
	var all time.Duration
	for _, leg := range e.Legs {
		all += leg.Took
		name, _, _ := strings.Cut(leg.Name, " ") // "page 2"
		m.legs.WithLabelValues(string(e.Server), known(legs, name)).Observe(leg.Took.Seconds())
	}
	m.client.WithLabelValues(method, string(e.Server), string(e.Verdict)).Observe(all.Seconds())
}

// known keeps a label to the values that are known beforehand.
func known(values []string, value string) string {
	if slices.Contains(values, value) {
		return value
	}
	return Other
}

var (
	kinds = texts(gate.KindIntent, gate.KindOutcome, gate.KindDenied, gate.KindQuestion, gate.KindAnswer, gate.KindImport, gate.KindEnable,
		gate.KindDisable, gate.KindAcceptChange, gate.KindReload, gate.KindLogin, gate.KindAuthFailure, gate.KindSecret, gate.KindStart,
		gate.KindStop, gate.KindCheckpoint, gate.KindTest, gate.KindVerify, gate.KindExport)
	reasons = append(texts(gate.NotRegistered, gate.ToolDisabled, gate.RequiresAdmin, gate.ConfigurationGroup, gate.TrustZone,
		gate.NotPortable, gate.InvalidArguments, gate.BudgetSpent, gate.ApprovalRequired, gate.ReasonDeclined, gate.ApprovalExpired,
		gate.ApproverUnavailable, gate.ApprovalInvalid, gate.LedgerUnavailable, gate.CallerGone), "malformed_request")
	legs    = []string{"tools/call", "initialize", "initialized", "server/discover", "page", "token"}
	answers = []string{"approved", "denied", "declined", "cancelled", "approval_expired", "lost", "client_error", "approver_unavailable"}
)

func texts[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// mostWaiting bounds the questions whose time is remembered. Of one beyond it
// only the time to its answer is not counted.
const mostWaiting = 4096

// waiting remembers when questions were asked. Only the ledger's goroutine uses it.
type waiting struct{ since map[uint64]time.Time }

func (w *waiting) ask(e *gate.Entry) {
	if w.since == nil {
		w.since = make(map[uint64]time.Time)
	}
	if len(w.since) < mostWaiting {
		w.since[e.Number] = e.Time
	}
}

func (w *waiting) answer(e *gate.Entry) (time.Duration, bool) {
	asked, ok := w.since[e.Approval]
	delete(w.since, e.Approval)
	return e.Time.Sub(asked), ok
}
