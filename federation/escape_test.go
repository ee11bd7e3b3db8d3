package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
)

// newSickRig is a rig whose ledger's disk can be made to refuse.
func newSickRig(t *testing.T, serverKeys string) (*rig, *atomic.Bool) {
	full := new(atomic.Bool)
	r := newRig(t, recent, serverKeys, "", func(r *rig) {
		r.disk = func() error {
			if full.Load() {
				return syscall.ENOSPC
			}
			return nil
		}
	})
	return r, full
}

func (r *rig) readyz() (status int, reasons string) {
	r.t.Helper()
	res, err := http.Get(r.front.URL + "/readyz")
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var said struct{ Reasons []string }
	if err := json.NewDecoder(res.Body).Decode(&said); err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, strings.Join(said.Reasons, "; ")
}

// A full disk stops calls, whatever their phase, with an error that says so; it
// stops importing and deciding too. When there is space again, so is service.
func TestFullDisk(t *testing.T) {
	r, full := newSickRig(t, "")
	question := r.modern("alice", "tools/call", echo, form)
	if _, end := r.answered("alice", echo, "accept", "approve"); end.verdict() != "ok" {
		t.Fatalf("before: %s", end.raw)
	}
	r.upstream.Forget()
	full.Store(true)
	for name, x := range map[string]told{
		"first call": r.modern("alice", "tools/call", echo, form),
		"approval":   r.modern("alice", "tools/call", withAnswer(echo, question.state(), "accept", "approve"), form),
		"own tool":   r.modern("alice", "tools/call", `{"name":"gatehouse_status","arguments":{}}`, form),
	} {
		if x.verdict() != "refused" || string(x.result()["isError"]) != "true" || !strings.Contains(x.raw, "could not be put on record") {
			t.Errorf("%s: %s", name, x.raw)
		}
	}
	if status, reasons := r.readyz(); status != http.StatusServiceUnavailable || !strings.Contains(reasons, "no space left on device") {
		t.Errorf("/readyz: %d %s", status, reasons)
	}
	if _, err := r.g.Import(context.Background(), "up", false); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("import: %v", err)
	}
	if n := len(r.upstream.Requests()); n != 0 {
		t.Errorf("the upstream saw %d requests", n)
	}
	full.Store(false)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if status, _ := r.readyz(); status == http.StatusOK {
			break
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("service does not resume by itself")
		}
	}
	if x := r.modern("alice", "tools/call", withAnswer(echo, question.state(), "accept", "approve"), form); x.verdict() != "ok" {
		t.Errorf("the approval from before: %s", x.raw)
	}
	if n := r.upstream.Count("tools/call"); n != 1 {
		t.Errorf("%d calls were sent, want 1", n)
	}
	if e := r.entries(gate.KindCheckpoint, 1)[0]; !strings.Contains(e.Detail, "could not be written since") {
		t.Errorf("the record does not say that there was a gap: %+v", e)
	}
}

// A panic after the permit, here in the client when the upstream has answered,
// is an outcome: that of a call of which nobody knows how it ended. It costs its
// own request and nothing else.
func TestPanicAfterThePermitIsOnRecord(t *testing.T) {
	var answered atomic.Bool
	r := newRig(t, recent, "requires_approval = false", "", func(r *rig) {
		r.now = func() time.Time {
			if answered.Load() && strings.Contains(string(debug.Stack()), "upstream.(*operation).leg") {
				panic("a defect with a secret in it")
			}
			return time.Now()
		}
	})
	c := r.connect("alice", "2025-11-25", `{}`)
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
		answered.Store(true)
		x.Result(`{"resultType":"complete","content":[]}`)
	})
	for _, x := range []struct {
		meta   string
		header map[string]string
	}{
		{`"progressToken":"p"`, c.header()},
		{`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`,
			map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: "mcp_up_count"}},
	} {
		res, err := r.request(context.Background(), "alice", http.MethodPost,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_up_count","arguments":{},"_meta":{`+x.meta+`}}}`, x.header)
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if err == nil {
			t.Error("the caller was told that all is well")
		}
		answered.Store(false)
	}
	for _, o := range r.entries(gate.KindOutcome, 2) {
		if o.Verdict != gate.OutcomeUnknown || o.Reason != "panic" || strings.Contains(o.Detail, "secret") {
			t.Errorf("on record: %+v", o)
		}
	}
	if n := r.upstream.Count("tools/call"); n != 2 {
		t.Errorf("%d calls were sent, want 2", n)
	}
	r.upstream.On("tools/call", nil)
	http.DefaultClient.CloseIdleConnections() // the server may be closing one that this client still thinks idle
	if x := r.modern("alice", "tools/call", echo, `{}`); x.verdict() != "ok" {
		t.Errorf("the next request: %s", x.raw)
	}
}

// A caller can hang up at any moment of a call, and each leaves a record that
// says how it ended. What is sent is sent once.
func TestHangingUpInEveryPhase(t *testing.T) {
	const modernBody = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp_up_echo","arguments":{},%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
	const legacyBody = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp_up_echo","arguments":{}}}`
	modernHeader := map[string]string{headerVersion: modernVersion, headerMethod: "tools/call", headerName: "mcp_up_echo"}
	// leave sends a request and hangs up once await returns.
	leave := func(r *rig, body string, header map[string]string, await func()) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			res, err := r.request(ctx, "alice", http.MethodPost, body, header)
			if err == nil {
				_, _ = io.ReadAll(res.Body)
				res.Body.Close()
			}
		}()
		await()
		cancel()
		<-done
	}

	t.Run("before the record is written", func(t *testing.T) {
		writing, release := make(chan struct{}, 8), make(chan struct{})
		var slow atomic.Bool
		r := newRig(t, recent, "requires_approval = false", "", func(r *rig) {
			r.disk = func() error {
				if slow.Load() {
					writing <- struct{}{}
					<-release
				}
				return nil
			}
		})
		c := r.connect("alice", "2025-11-25", form)
		slow.Store(true)
		leave(r, legacyBody, c.header(), func() { <-writing })
		leave(r, fmt.Sprintf(modernBody, ""), modernHeader, func() { time.Sleep(20 * time.Millisecond) })
		slow.Store(false)
		close(release)
		verdicts := map[gate.Verdict]int{}
		for _, o := range r.entries(gate.KindOutcome, 2) {
			verdicts[o.Verdict]++
		}
		// The caller of 2025 cancels nothing by leaving. The other's call is not
		// sent, or cut off: both are true, by which of the two was faster.
		if verdicts[gate.OK] != 1 {
			t.Errorf("outcomes: %v", verdicts)
		}
	})

	t.Run("while a person is asked", func(t *testing.T) {
		r := newRig(t, recent, "", "")
		c := r.connect("alice", "2025-11-25", form)
		asked := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		go func() { <-asked; cancel() }()
		_, _ = c.asked(ctx, 1, "mcp_up_echo", `{}`, func(map[string]json.RawMessage) { close(asked) })
		if e := r.entries(gate.KindAnswer, 1)[0]; e.Reason != "lost" || e.Verdict != gate.Declined {
			t.Errorf("2025: %+v", e)
		}
		// In 2026 the question is the reply, and leaving says nothing: it stays open.
		question := r.modern("alice", "tools/call", echo, form)
		if end := r.modern("alice", "tools/call", withAnswer(echo, question.state(), "accept", "approve"), form); end.verdict() != "ok" {
			t.Errorf("2026: %s", end.raw)
		}
	})

	t.Run("while the upstream works", func(t *testing.T) {
		r := newRig(t, recent, "requires_approval = false", "")
		working, release := make(chan struct{}, 4), make(chan struct{})
		r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
			working <- struct{}{}
			select {
			case <-release:
			case <-x.Gone():
			}
			x.Result(`{"resultType":"complete","content":[]}`)
		})
		c := r.connect("alice", "2025-11-25", form)
		leave(r, fmt.Sprintf(modernBody, ""), modernHeader, func() { <-working })
		if e := r.entries(gate.KindOutcome, 1)[0]; e.Verdict != gate.OutcomeUnknown {
			t.Errorf("2026: %+v", e)
		}
		leave(r, legacyBody, c.header(), func() { <-working })
		close(release)
		if e := r.entries(gate.KindOutcome, 2)[1]; e.Verdict != gate.OK {
			t.Errorf("2025: %+v", e)
		}
		if n := r.upstream.Count("tools/call"); n != 2 {
			t.Errorf("%d calls were sent, want 2", n)
		}
	})
}
