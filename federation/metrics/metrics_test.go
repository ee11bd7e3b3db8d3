package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// filled has a sample of everything there is.
func filled() *Metrics {
	m := New("test")
	m.Watch(func() State {
		return State{Ready: true, Servers: []Server{{ID: "up", Credential: "ok", Tools: map[string]int{"enabled": 1},
			LastContact: time.Unix(1, 0), LastImport: time.Unix(1, 0)}}}
	})
	m.Operation("tools/call", "mcp_up", gate.OK, time.Second)
	m.SessionEnded(time.Minute)
	asked := time.Unix(100, 0)
	m.Commit(ledger.Commit{Took: time.Millisecond, Synced: true, Entries: []*gate.Entry{
		{Kind: gate.KindIntent},
		{Kind: gate.KindOutcome, Server: "up", Verdict: gate.OK, Legs: []gate.Leg{{Name: "page 2", Took: time.Second}, {Name: "invented", Took: time.Second}}},
		{Kind: gate.KindDenied, Reason: "trust_zone", Count: 7},
		{Kind: gate.KindDenied, Reason: "made up"},
		{Kind: gate.KindAuthFailure, Count: 3},
		{Kind: gate.KindQuestion, Number: 5, Time: asked},
		{Kind: gate.KindAnswer, Approval: 5, Time: asked.Add(90 * time.Second), Reason: "approved"},
		{Kind: gate.KindAnswer, Approval: 6, Time: asked, Reason: "approved"},
		{Kind: gate.KindImport, Server: "up", Verdict: gate.OK},
		{Kind: gate.KindReload, Verdict: gate.Refused},
		{Kind: gate.KindExport},
		{Kind: "of a later version"},
	}})
	return m
}

// TestNamesAreWhatPrometheusExpects runs the checks of promtool check metrics.
func TestNamesAreWhatPrometheusExpects(t *testing.T) {
	families, err := filled().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestEntriesAreCounted(t *testing.T) {
	families, err := filled().registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			name := f.GetName()
			for _, l := range s.GetLabel() {
				name += " " + l.GetValue()
			}
			switch {
			case s.GetHistogram() != nil:
				got[name], got[name+" sum"] = float64(s.GetHistogram().GetSampleCount()), s.GetHistogram().GetSampleSum()
			case s.GetCounter() != nil:
				got[name] = s.GetCounter().GetValue()
			default:
				got[name] = s.GetGauge().GetValue()
			}
		}
	}
	for name, want := range map[string]float64{
		"gatehouse_refusals_total trust_zone":                        7,
		"gatehouse_refusals_total other":                             1,
		"gatehouse_auth_failures_total":                              3,
		"gatehouse_leg_duration_seconds page up":                     1,
		"gatehouse_leg_duration_seconds other up":                    1,
		"mcp_client_operation_duration_seconds tools/call up ok sum": 2,
		"gatehouse_approvals_answered_total approved":                2,
		"gatehouse_approval_wait_seconds":                            1,
		"gatehouse_approval_wait_seconds sum":                        90,
		"gatehouse_ledger_batch_entries sum":                         12,
		"gatehouse_ledger_entries_total export":                      1,
		"gatehouse_ledger_entries_total other":                       1,
		"gatehouse_reloads_total refused":                            1,
		"gatehouse_last_contact_timestamp_seconds up":                1,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
}

// TestWaitingIsBounded: questions that never get an answer are forgotten.
func TestWaitingIsBounded(t *testing.T) {
	var w waiting
	for i := range uint64(3 * mostWaiting) {
		w.ask(&gate.Entry{Number: i})
	}
	if len(w.since) > mostWaiting {
		t.Errorf("%d are remembered", len(w.since))
	}
	if _, ok := w.answer(&gate.Entry{Approval: 1}); !ok || len(w.since) != mostWaiting-1 {
		t.Errorf("an answer leaves %d", len(w.since))
	}
}
