package federation

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
)

// scraped is the text of /metrics as who reads it.
func (r *rig) scraped(who string) (status int, text string) {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.front.URL+"/metrics", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if who != "" {
		req.Header.Set("Authorization", "Bearer "+r.tokens[who])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// wantSamples waits until the metrics have the lines: what is counted from the
// ledger is counted after whoever waited for it was answered.
func (r *rig) wantSamples(lines ...string) {
	r.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		_, text := r.scraped("alice")
		missing := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(text, "\n"+l+"\n") })
		if len(missing) == 0 {
			return
		}
		if time.Since(began) > 5*time.Second {
			r.t.Fatalf("no line %q in:\n%s", missing, own(text))
		}
	}
}

// own are the samples that are ours, without buckets.
func own(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if (strings.HasPrefix(line, "gatehouse_") || strings.HasPrefix(line, "mcp_")) && !strings.Contains(line, "_bucket") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestMetricsCount(t *testing.T) {
	r := newRig(t, recent, "", "")
	r.answered("alice", `{"name":"mcp_up_echo","arguments":{}}`, "accept", "approve")
	r.answered("alice", `{"name":"mcp_up_echo","arguments":{}}`, "accept", "deny")
	r.modern("alice", "tools/list", `{}`, `{}`)
	r.modern("alice", "tools/call", `{"name":"gatehouse_status","arguments":{}}`, `{}`)
	r.modern("bob", "tools/call", `{"name":"mcp_up_echo","arguments":{}}`, `{}`)
	r.modern("alice", "no/such", `{}`, `{}`)
	r.post("", `{}`, map[string]string{"Authorization": "Bearer wrong"})
	c := r.connect("alice", "2025-11-25", `{}`)
	r.wantSamples(
		`mcp_server_operation_duration_seconds_count{group="mcp_up",mcp_method_name="tools/call",verdict="ok"} 1`,
		`mcp_server_operation_duration_seconds_count{group="mcp_up",mcp_method_name="tools/call",verdict="asked"} 2`,
		`mcp_server_operation_duration_seconds_count{group="mcp_up",mcp_method_name="tools/call",verdict="declined"} 1`,
		`mcp_server_operation_duration_seconds_count{group="mcp_up",mcp_method_name="tools/call",verdict="refused"} 1`,
		`mcp_server_operation_duration_seconds_count{group="gatehouse",mcp_method_name="tools/call",verdict="ok"} 1`,
		`mcp_server_operation_duration_seconds_count{group="",mcp_method_name="tools/list",verdict=""} 1`,
		`mcp_server_operation_duration_seconds_count{group="",mcp_method_name="other",verdict=""} 1`,
		`mcp_server_operation_duration_seconds_count{group="",mcp_method_name="initialize",verdict=""} 1`,
		`mcp_client_operation_duration_seconds_count{mcp_method_name="tools/call",server="up",verdict="ok"} 1`,
		`mcp_client_operation_duration_seconds_count{mcp_method_name="tools/list",server="up",verdict="ok"} 1`,
		`gatehouse_leg_duration_seconds_count{leg="tools/call",server="up"} 1`,
		`gatehouse_leg_duration_seconds_count{leg="page",server="up"} 1`,
		`gatehouse_refusals_total{reason="requires_admin"} 1`,
		`gatehouse_auth_failures_total 1`,
		`gatehouse_approvals_asked_total 2`,
		`gatehouse_approvals_answered_total{answer="approved"} 1`,
		`gatehouse_approvals_answered_total{answer="denied"} 1`,
		`gatehouse_approval_wait_seconds_count 2`,
		`gatehouse_imports_total{result="ok",server="up"} 1`,
		`gatehouse_ledger_entries_total{kind="intent"} 2`,
		`gatehouse_ledger_writable 1`,
		`gatehouse_ready 1`,
		`gatehouse_configuration_current 1`,
		`gatehouse_sessions 1`,
		`gatehouse_approvals_open 0`,
		`gatehouse_credential_state{server="up",state="ok"} 1`,
		fmt.Sprintf(`gatehouse_tools{server="up",state="enabled"} %d`, len(upstreamtest.Tools())),
	)
	res, err := r.request(context.Background(), "alice", http.MethodDelete, "", c.header())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	r.wantSamples(`gatehouse_sessions 0`, `mcp_server_session_duration_seconds_count 1`)
	if _, text := r.scraped("alice"); !strings.Contains(text, `gatehouse_build_info{goversion="go`) || !strings.Contains(text, `version="test"} 1`) {
		t.Error("no build info")
	}
}

// TestUnknownNamesAddNoSeries: what a caller makes up is no label.
func TestUnknownNamesAddNoSeries(t *testing.T) {
	r := newRig(t, recent, "", "")
	call := func(i int) {
		r.modern("alice", "tools/call", fmt.Sprintf(`{"name":"mcp_made_up_%d","arguments":{}}`, i), `{}`)
		r.modern("alice", fmt.Sprintf("made/up/%d", i), `{}`, `{}`)
	}
	call(0)
	r.wantSamples(`gatehouse_refusals_total{reason="not_registered"} 1`)
	_, before := r.scraped("alice")
	handler := r.g.Handler()
	const more = 10_000
	for i := range more {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_made_up_%d","arguments":{}}}`, i+1)
		req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8620/mcp", strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+r.tokens["alice"])
		handler.ServeHTTP(httptest.NewRecorder(), req)
	}
	r.wantSamples(fmt.Sprintf(`mcp_server_operation_duration_seconds_count{group="",mcp_method_name="tools/call",verdict="refused"} %d`, more+1))
	_, after := r.scraped("alice")
	if b, a := strings.Count(own(before), "\n"), strings.Count(own(after), "\n"); a != b {
		t.Errorf("%d series became %d:\n%s", b, a, own(after))
	}
	if strings.Contains(after, "made_up") || strings.Contains(after, "made/up") {
		t.Error("a made-up name is in the metrics")
	}
}

func TestWhoMayReadMetrics(t *testing.T) {
	r := newRig(t, recent, "", "")
	for who, want := range map[string]int{"alice": http.StatusOK, "bob": http.StatusForbidden, "": http.StatusUnauthorized} {
		if got, text := r.scraped(who); got != want || want != http.StatusOK && strings.Contains(text, "mcp_") {
			t.Errorf("%q: status %d, want %d", who, got, want)
		}
	}
	req := httptest.NewRequest(http.MethodGet, "http://rebound.example/metrics", nil)
	req.Header.Set("Authorization", "Bearer "+r.tokens["alice"])
	w := httptest.NewRecorder()
	if r.g.Handler().ServeHTTP(w, req); w.Code != http.StatusForbidden {
		t.Errorf("a foreign host: status %d", w.Code)
	}
}

func TestMetricsOnTheirOwn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	r := newRig(t, recent, "", "[metrics]\naddress = \""+address+"\"")
	end, err := r.g.listenMetrics()
	if err != nil {
		t.Fatal(err)
	}
	get := func(host, path string) int {
		req, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		return res.StatusCode
	}
	for host, want := range map[string]int{address: http.StatusOK, "localhost": http.StatusOK, "rebound.example": http.StatusForbidden} {
		if got := get(host, "/metrics"); got != want {
			t.Errorf("host %q: status %d, want %d", host, got, want)
		}
	}
	if got := get(address, "/mcp"); got != http.StatusNotFound {
		t.Errorf("/mcp is there as well: status %d", got)
	}
	end()
	if got := get(address, "/metrics"); got != 0 {
		t.Errorf("after its end: status %d", got)
	}
}

// BenchmarkMeasure is what counting adds to a call before it is answered.
func BenchmarkMeasure(b *testing.B) {
	r := newRig(b, recent, "", "")
	b.ReportAllocs()
	for b.Loop() {
		r.g.metrics.Operation("tools/call", r.g.groupOf("mcp_up_echo"), gate.OK, time.Millisecond)
	}
}

// A failed import has sent something too, and taken its time.
func TestFailedImportsAreMeasured(t *testing.T) {
	r := newRig(t, recent, "", "")
	r.upstream.On("tools/list", func(x *upstreamtest.Exchange) { x.Error(http.StatusInternalServerError, -32603, "broken") })
	if _, err := r.g.Import(context.Background(), "up", false); err == nil {
		t.Fatal("imported")
	}
	r.wantSamples(
		`mcp_client_operation_duration_seconds_count{mcp_method_name="tools/list",server="up",verdict="refused"} 1`,
		`gatehouse_leg_duration_seconds_count{leg="page",server="up"} 2`,
		`gatehouse_imports_total{result="refused",server="up"} 1`,
	)
}
