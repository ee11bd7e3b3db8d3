package gate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/gate/ledger"
)

var steps = flag.Int("steps", 12_000, "how many random steps TestMachine makes, 100000 at least when CI is set")

// life is how many steps one machine makes. Its ledger stays small enough to be
// read whole after every crash.
const life = 2500

// A machine does to a gate and a real ledger what callers, people, operators and
// crashes do, in any order, and holds it to what must always be true. It knows
// the truth from its own books, not from the gate.
type machine struct {
	t       *testing.T
	rng     *rand.Rand
	dir     string
	clock   *gatetest.Clock
	keys    *gatetest.Keys
	channel gate.Channel

	gate   *gate.Gate
	ledger *ledger.Ledger
	known  map[uint64]gate.Entry // everything that was acknowledged by Append
	agreed map[uint64]bool       // questions with a yes on record

	tools   gatetest.Snapshot
	callers []*gate.Caller
	open    []*asking
	permits []holding

	sent      map[uint64]bool // records
	approvals map[uint64]bool // that let a call go
	seen      map[string]int
}

// An asking is a question as its caller knows it, with what the machine knows of
// the tool at that time.
type asking struct {
	caller *gate.Caller
	call   gate.Call
	q      *gate.Question
	tool   gate.Tool
	said   string // "", "yes", "no": what was answered first
}

type holding struct {
	permit *gate.Permit
	caller *gate.Caller
	call   gate.Call
	tool   *gate.Tool
	from   *asking
	issued time.Time
}

// book notes what is acknowledged on its way through.
type book struct{ m *machine }

func (b book) Append(ctx context.Context, entries ...*gate.Entry) error {
	err := b.m.ledger.Append(ctx, entries...)
	if err == nil {
		for _, e := range entries {
			b.m.known[e.Number] = *e
			if e.Kind == gate.KindAnswer && e.Reason == "approved" {
				b.m.agreed[e.Approval] = true
			}
		}
	}
	return err
}

func (b book) Enqueue(e *gate.Entry) { b.m.ledger.Enqueue(e) }

func TestMachine(t *testing.T) {
	total := *steps
	switch {
	case testing.Short():
		total = life
	case os.Getenv("CI") != "":
		total = max(total, 100_000)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	t.Run("machines", func(t *testing.T) {
		for i := range (total + life - 1) / life {
			seed := uint64(i)
			if i%2 == 1 {
				seed = rand.Uint64() // the others are the same in every run
			}
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, seed)
				for range life {
					m.step()
				}
				m.crash()
				m.stop()
				mu.Lock()
				defer mu.Unlock()
				for what, n := range m.seen {
					seen[what] += n
				}
			})
		}
	})
	t.Log(seen)
	for _, what := range []string{"asked", "permitted", "sent", "refused", "replayed", "forged", "changed", "crashed", "decided", "stale permit", "listed", "reloaded"} {
		if seen[what] == 0 && total > life { // one life may do without
			t.Errorf("nothing was ever %s", what)
		}
	}
}

func newMachine(t *testing.T, seed uint64) *machine {
	m := &machine{t: t, rng: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), clock: gatetest.NewClock(), keys: gatetest.NewKeys(1),
		tools: gatetest.NewSnapshot(), known: map[uint64]gate.Entry{}, agreed: map[uint64]bool{}, sent: map[uint64]bool{}, approvals: map[uint64]bool{}, seen: map[string]int{}}
	for i := range 3 {
		name := gate.LocalName(fmt.Sprintf("mcp_demo_t%d", i))
		m.tools[name] = gatetest.Tool(name)
		m.tools[name].ApprovalWaived = i == 0
	}
	for _, name := range []gate.CallerName{"alice", "bob", "carol"} {
		m.callers = append(m.callers, gatetest.Admin(name))
	}
	m.callers[2].Zone = gate.ExternalGlobal
	m.start()
	return m
}

func (m *machine) step() {
	actions := []func(){m.submit, m.submit, m.answer, m.answer, m.answer, m.forge, m.replay, m.decide, m.decide,
		m.spend, m.spend, m.spend, m.settle, m.settle, m.change, m.wait, m.list, m.reload}
	if m.rng.IntN(life/6) == 0 {
		m.crash()
		return
	}
	actions[m.rng.IntN(len(actions))]()
}

func (m *machine) start() {
	var err error
	m.ledger, err = ledger.Open(ledger.Options{Dir: m.dir, Now: m.clock.Now, SegmentBytes: 200 << 10, Sync: func(*os.File) error { return nil }})
	if err != nil {
		m.t.Fatal(err)
	}
	m.channel = gate.Channel(m.rng.IntN(3))
	m.gate, err = gate.New(gate.Options{Ledger: book{m}, Keys: m.keys, Digest: gatetest.Digest, Now: m.clock.Now, Channel: m.channel})
	if err != nil {
		m.t.Fatal(err)
	}
	m.gate.StopAlarm() // the machine rings it itself, by its own clock
}

func (m *machine) stop() {
	m.gate.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := m.ledger.Close(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// crash ends the process with permits out and half a line written, and begins anew.
func (m *machine) crash() {
	m.seen["crashed"]++
	m.stop()
	files, _ := filepath.Glob(filepath.Join(m.dir, "*.jsonl"))
	f, err := os.OpenFile(files[len(files)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	fmt.Fprintf(f, `{"caller":"al`)
	f.Close()
	m.permits = nil
	if m.rng.IntN(3) == 0 {
		m.keys.Rotate()
	}
	m.start()
	m.audit()
}

// audit holds the files to what was acknowledged.
func (m *machine) audit() {
	r, err := ledger.Verify(m.dir)
	if err != nil || r.Bad != nil || len(r.Unsettled) != 0 {
		m.t.Fatalf("after a crash: %v, %+v, %v", err, r, r.Bad)
	}
	found, outcomes := 0, map[uint64]int{}
	err = ledger.Read(m.dir, 1, func(_ []byte, e gate.Entry) error {
		if e.Kind == gate.KindOutcome {
			outcomes[e.Intent]++
			if e.Verdict == gate.NotSent && m.sent[e.Intent] {
				return fmt.Errorf("record %d was sent and is on record as not sent", e.Intent)
			}
		}
		if known, ok := m.known[e.Number]; ok {
			found++
			if diff := gatetest.Differ(known, e); diff != "" {
				return fmt.Errorf("record %d differs from what was acknowledged: %s", e.Number, diff)
			}
		}
		return nil
	})
	if err != nil || found != len(m.known) {
		m.t.Fatalf("%v; %d of %d acknowledged entries are there", err, found, len(m.known))
	}
	for _, e := range m.known {
		if e.Kind == gate.KindIntent && outcomes[e.Number] != 1 {
			m.t.Fatalf("intent %d has %d outcomes", e.Number, outcomes[e.Number])
		}
	}
}

func (m *machine) pick() *asking {
	if len(m.open) == 0 {
		return nil
	}
	// Mostly a recent one, sometimes any of the past.
	if n := len(m.open); n > 8 && m.rng.IntN(4) > 0 {
		return m.open[n-1-m.rng.IntN(8)]
	}
	return m.open[m.rng.IntN(len(m.open))]
}

func (m *machine) submit() {
	c := m.callers[m.rng.IntN(len(m.callers))]
	m.handle(c, gate.Call{
		Tool:      gate.LocalName(fmt.Sprintf("mcp_demo_t%d", m.rng.IntN(4))),
		Arguments: fmt.Appendf(nil, `{"n":%d}`, m.rng.IntN(1000)), CanAsk: m.rng.IntN(4) > 0,
		SessionKey: []string{"", "", string(c.Name) + "1", string(c.Name) + "2"}[m.rng.IntN(4)], // none in the 2026 era
	}, nil)
}

// list holds what a caller is shown to what a call would be told.
func (m *machine) list() {
	m.seen["listed"]++
	for _, c := range m.callers {
		for name, tool := range m.tools {
			offered, _ := gate.Offered(tool, c, gate.Enforce)
			judged := gate.Judge(m.tools, c, gate.Call{Tool: name, Arguments: []byte(`{}`)}, gate.Enforce)
			if offered != judged.Reason {
				m.t.Fatalf("%s: listed by %q and judged by %q", name, offered, judged.Reason)
			}
		}
	}
}

// reload puts other settings into force while questions are open.
func (m *machine) reload() {
	m.seen["reloaded"]++
	m.channel = gate.Channel(m.rng.IntN(3))
	if err := m.gate.Configure(gate.Options{Channel: m.channel, ApprovalTimeout: time.Duration(1+m.rng.IntN(5)) * time.Minute}); err != nil {
		m.t.Fatal(err)
	}
}

var answers = []*gate.Answer{
	accepted(approve), accepted(approve), accepted(approve), accepted(denyForm), {Action: "decline"}, {Action: "cancel"},
	{Failure: gate.FailureTimeout}, accepted(`{"decision":"approve","decision":"deny"}`), nil,
}

func (m *machine) answer() {
	if a := m.pick(); a != nil {
		m.handle(a.caller, answered(a.call, a.q, answers[m.rng.IntN(len(answers))]), a)
	}
}

// replay answers yes to what was answered before.
func (m *machine) replay() {
	if a := m.pick(); a != nil && a.said != "" {
		m.seen["replayed"]++
		m.handle(a.caller, answered(a.call, a.q, accepted(approve)), a)
	}
}

// forge brings a good state for a call it was not made for.
func (m *machine) forge() {
	a := m.pick()
	if a == nil {
		return
	}
	m.seen["forged"]++
	c, call := a.caller, answered(a.call, a.q, accepted(approve))
	switch m.rng.IntN(4) {
	case 0:
		call.Arguments = append(slices.Clone(call.Arguments), ' ')
	case 1:
		call.SessionKey += "x"
	case 2:
		c = m.callers[(slices.Index(m.callers, c)+1)%len(m.callers)]
	case 3:
		b := []byte(call.State)
		b[m.rng.IntN(len(b))] ^= 1
		call.State = string(b)
	}
	if r := m.gate.Submit(context.Background(), m.tools, c, call); r.Refusal == nil && !m.tools[call.Tool].ApprovalWaived {
		m.t.Fatalf("a forged approval was answered with %+v", r)
	}
}

// handle submits a call and checks the ruling against the books.
func (m *machine) handle(c *gate.Caller, call gate.Call, from *asking) {
	r := m.gate.Submit(context.Background(), m.tools, c, call)
	tool := m.tools[call.Tool]
	offered, _ := gate.Offered(tool, c, gate.Enforce)
	switch {
	case r.Refusal != nil:
		m.seen["refused"]++
		if r.Refusal.Record == 0 {
			m.t.Fatalf("a refusal is not on record: %+v", r.Refusal)
		}
	case offered != "":
		m.t.Fatalf("%s is not offered (%s) and was answered with %+v", call.Tool, offered, r)
	case r.Question != nil && from == nil:
		m.seen["asked"]++
		m.open = append(m.open, &asking{caller: c, call: call, q: r.Question, tool: *tool})
	case r.Permit != nil:
		m.seen["permitted"]++
		m.permits = append(m.permits, holding{r.Permit, c, call, tool, from, m.clock.Now()})
		m.checkPermit(r.Permit, call, tool, from)
	}
	if from != nil && from.q.Channel == gate.ClientChannel && call.Answer != nil && from.said == "" && r.Refusal == nil {
		from.said = "yes"
	} else if from != nil && from.said == "" && r.Refusal != nil && r.Refusal.Verdict == gate.Declined {
		from.said = "no"
	}
}

func (m *machine) checkPermit(p *gate.Permit, call gate.Call, tool *gate.Tool, from *asking) {
	intent, ok := m.known[p.Record()]
	if !ok || intent.Kind != gate.KindIntent {
		m.t.Fatalf("permit %d has no durable intent", p.Record())
	}
	if want, _ := gatetest.Digest(call.Arguments); intent.ArgumentDigest != want || intent.Tool != call.Tool {
		m.t.Fatalf("intent %+v is not that of %s", intent, call.Arguments)
	}
	if tool.ApprovalWaived {
		return
	}
	switch {
	case from == nil:
		m.t.Fatalf("%s ran without anybody being asked", call.Tool)
	case m.approvals[from.q.Number] || intent.Approval != from.q.Number:
		m.t.Fatalf("approval %d let a second call go", from.q.Number)
	case from.tool.Definition != tool.Definition:
		m.t.Fatalf("approval %d was given for another definition", from.q.Number)
	case !m.clock.Now().Before(from.q.Until):
		m.t.Fatalf("approval %d had expired", from.q.Number)
	case from.said == "no":
		m.t.Fatalf("approval %d was denied before", from.q.Number)
	}
	m.approvals[from.q.Number] = true
	if !m.agreed[from.q.Number] {
		m.t.Fatalf("nobody said yes to question %d", from.q.Number)
	}
}

func (m *machine) decide() {
	a := m.pick()
	if a == nil {
		return
	}
	approver, yes := m.callers[m.rng.IntN(len(m.callers))], m.rng.IntN(3) > 0
	err := m.gate.Decide(context.Background(), m.tools, a.q.Number, approver, yes)
	if err != nil {
		if _, forbidden := errors.AsType[*gate.ForbiddenError](err); !forbidden && !errors.Is(err, gate.ErrNoQuestion) {
			m.t.Fatal(err)
		}
		return
	}
	m.seen["decided"]++
	offered, _ := gate.Offered(m.tools[a.call.Tool], approver, gate.Enforce)
	if a.said != "" || a.q.Channel != gate.ConsoleChannel || approver.Name == a.caller.Name || offered != "" {
		m.t.Fatalf("%s decided question %d, which was %q before", approver.Name, a.q.Number, a.said)
	}
	a.said = map[bool]string{true: "yes", false: "no"}[yes]
}

func (m *machine) spend() {
	if len(m.permits) == 0 {
		return
	}
	h := m.permits[m.rng.IntN(len(m.permits))]
	order, err := h.permit.Spend()
	switch {
	case err != nil:
		m.seen["stale permit"]++
		if !m.sent[h.permit.Record()] && m.clock.Now().Sub(h.issued) < time.Minute {
			m.t.Fatalf("a good permit: %v", err)
		}
	case m.sent[order.Record]:
		m.t.Fatalf("record %d was sent twice", order.Record)
	case string(order.Arguments) != string(h.call.Arguments) || order.Tool != h.tool || order.Caller != h.caller:
		m.t.Fatalf("%s was permitted and %s is sent", h.call.Arguments, order.Arguments)
	default:
		m.seen["sent"]++
		m.sent[order.Record] = true
	}
}

func (m *machine) settle() {
	if n := len(m.permits); n > 0 {
		i := m.rng.IntN(n)
		m.gate.Settle(m.permits[i].permit, gate.Outcome{})
		m.permits = slices.Delete(m.permits, i, i+1)
	}
}

// change is an import, an operator, or a reload.
func (m *machine) change() {
	m.seen["changed"]++
	name := gate.LocalName(fmt.Sprintf("mcp_demo_t%d", m.rng.IntN(3)))
	changed := *m.tools[name]
	switch m.rng.IntN(8) {
	case 0:
		changed.Definition = gate.DigestOf(fmt.Append(nil, m.rng.Uint64()))
	case 1:
		changed.Availability = gate.Changed
	case 2:
		changed.Class = gate.Class(m.rng.IntN(7))
	default:
		changed.Availability, changed.Class = gate.Enabled, gate.PublicContent
	}
	next := gatetest.NewSnapshot()
	for k, v := range m.tools {
		next[k] = v
	}
	next[name] = &changed
	m.tools = next
}

func (m *machine) wait() {
	m.clock.Advance(time.Duration(m.rng.IntN(40)) * time.Second)
	m.gate.Sweep()
}
