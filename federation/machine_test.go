package federation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/federation"
	"gatehouse/federation/config"
	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
	"gatehouse/upstream/upstreamtest/leak"
)

var (
	steps = flag.Int("steps", 4_000, "how many random steps TestMachine makes, in lives of 500")
	seed  = flag.Uint64("seed", 0, "the one life that TestMachine lives again; 0: as many as there are steps for")
)

// life is how many steps one machine makes.
const life = 500

// A machine does to a whole gateway what callers of both eras, people, operators,
// upstreams and crashes do, in any order, and holds it to the invariants:
//
//	1  a call reaches an upstream only after allow: of this tool, these bytes, once
//	2  so does none where a class, an enablement or a clear yes is missing
//	3  its intent is durable by then (arrived), and has one outcome in the end (audit)
//	4  no upstream ever sees a nonce twice (arrived), and what is not known is said to be unknown (came)
//	5  the budget ends what hangs, and nothing sooner (exhaust)
//	6  what is listed, what can be called and what is explained is what reason says
//	7  the catalogue is what was imported, and tools/list asks nobody (look, list)
//	8  a loose reply changes nothing and is not believed (misbehave, badImport)
//	9  an upstream sees its own credential, its own sessions, and nothing of a caller's (vet, owns)
//	10 arguments and results are the same bytes at both ends (arrived, finished)
//
// It knows the truth from its own books. What it does follows from its seed.
type machine struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand

	people     []*person
	places     []*place
	channel    string
	delegation string // tables of the file
	secrets    string // folder
	elsewhere  *elsewhere
	open       []*asking
	nonces     int
	moved      atomic.Int64 // what the clock is ahead by

	dir     string // of the file and the state
	disk    *disk
	g       *federation.Gateway
	api     *control.Local
	front   *httptest.Server
	client  *http.Client
	flights sync.WaitGroup

	mu     sync.Mutex // guards what follows, and every order
	orders map[string]*order
	seen   map[string]int // nonce -> how often an upstream saw it
	step   int
	trail  []string
	did    map[string]int
}

// An order is a call that was allowed, and what came of it.
type order struct {
	*attempt
	answer string // how the upstream answered: proper, refused, lost; "" before it arrived
	told   string // the verdict that the caller was given
}

func TestMachine(t *testing.T) {
	seeds := []uint64{*seed}
	if *seed == 0 {
		seeds = nil
		for i := range (*steps + life - 1) / life {
			next := uint64(i + 1)
			if i%2 == 1 {
				next = rand.Uint64() // the others are the same in every run
			}
			seeds = append(seeds, next)
		}
	}
	if testing.Short() {
		seeds = seeds[:1]
	}
	var mu sync.Mutex
	did := map[string]int{}
	t.Run("lives", func(t *testing.T) {
		for _, s := range seeds {
			t.Run(fmt.Sprint("seed ", s), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, s)
				m.live()
				mu.Lock()
				defer mu.Unlock()
				for what, n := range m.did {
					did[what] += n
				}
			})
		}
	})
	t.Log(did)
	if len(seeds) > 7 { // fewer may do without
		for _, move := range moves {
			if did[move.name] == 0 {
				t.Errorf("the machine never did %q", move.name)
			}
		}
		for _, what := range []string{"arrived", "approved", "declined", "refused", "lost"} {
			if did[what] == 0 {
				t.Errorf("no call was ever %s", what)
			}
		}
	}
}

func newMachine(t *testing.T, s uint64) *machine {
	m := &machine{t: t, seed: s, rng: rand.New(rand.NewPCG(s, 11)), secrets: t.TempDir(), dir: t.TempDir(),
		orders: map[string]*order{}, seen: map[string]int{}, did: map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	t.Cleanup(m.client.CloseIdleConnections)
	m.newWorld()
	m.write()
	m.start()
	t.Cleanup(func() { m.stop() })
	for _, at := range m.places {
		if at.class != "" {
			m.importFrom(at)
		}
		for _, remote := range remotes[:2] {
			if at.known[remote] != nil {
				m.enable(at, remote)
			}
		}
	}
	return m
}

func (m *machine) live() {
	for m.step = 1; m.step <= life && !m.t.Failed(); m.step++ {
		move := m.choose()
		m.did[move.name]++
		m.note("%s", move.name)
		move.do(m)
	}
	if !m.t.Failed() {
		m.crash()
	}
}

// serve plays a site for as long as the machine lives.
func (m *machine) serve(h http.Handler) *httptest.Server {
	site := httptest.NewServer(h)
	m.t.Cleanup(site.Close)
	return site
}

func (m *machine) now() time.Time { return time.Now().Add(time.Duration(m.moved.Load())) }

// note adds to what is printed when an invariant breaks.
func (m *machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trail = append(m.trail, fmt.Sprintf("%d: ", m.step)+fmt.Sprintf(format, args...))
	m.trail = m.trail[max(0, len(m.trail)-25):]
}

func (m *machine) count(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did[what]++
}

// broke says which invariant broke. Any goroutine of the machine may call it.
func (m *machine) broke(invariant int, format string, args ...any) {
	m.t.Helper()
	m.mu.Lock()
	trail := strings.Join(m.trail, "\n\t")
	at := m.step
	m.mu.Unlock()
	m.t.Errorf("invariant %d, step %d of -seed %d: %s\n\t%s", invariant, at, m.seed, fmt.Sprintf(format, args...), trail)
}

// allow enters a call that may reach its upstream from now on, once.
func (m *machine) allow(a *attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders[a.nonce] = &order{attempt: a}
}

// arrived holds a call that an upstream got to the books: invariants 1 to 4, and 10.
func (m *machine) arrived(v *visit, whose string) *order {
	var arguments struct{ Nonce string }
	_ = json.Unmarshal(v.arguments, &arguments) // what has no nonce was never allowed
	m.count("arrived")
	m.mu.Lock()
	m.seen[arguments.Nonce]++
	times, o := m.seen[arguments.Nonce], m.orders[arguments.Nonce]
	m.mu.Unlock()
	switch intent, durable := m.disk.intent(arguments.Nonce); {
	case times > 1:
		m.broke(4, "server %q got the call %s for the %d. time", v.u.id, arguments.Nonce, times)
	case o == nil:
		m.broke(1, "server %q got a call of %q that nothing allows (2: and no is what silence means): %s", v.u.id, v.remote, v.arguments)
	case o.at.played != v.u || o.remote != v.remote:
		m.broke(1, "%s was allowed, and %q of server %q was called", o.tool(), v.remote, v.u.id)
	case o.arguments != string(v.arguments):
		m.broke(10, "%s was allowed, and %s was sent", o.arguments, v.arguments)
	case v.u.issuer != nil && whose != o.who.name:
		m.broke(9, "%s called with the token of %q", o.who.name, whose)
	case !durable:
		m.broke(3, "server %q got the call %s, and no intent is on the disk", v.u.id, arguments.Nonce)
	case intent.Caller != o.who.name || intent.Server != v.u.id || intent.Remote != v.remote:
		m.broke(3, "on record the call %s is %+v", arguments.Nonce, intent)
	}
	return o
}

// A disk is where the ledger is. It knows what of it is durable, and can be full.
type disk struct {
	mu      sync.Mutex
	full    bool
	end     int64 // of what is durable
	intents map[string]line
	settled map[uint64]bool // intents with an outcome
}

// A line is what the machine reads of an entry.
type line struct {
	Kind      string
	Number    uint64
	Intent    uint64
	Caller    string
	Server    string
	Remote    string `json:"remote_name"`
	Verdict   string
	Reason    string
	Approval  uint64
	Arguments string
}

func (d *disk) sync(f *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full {
		return syscall.ENOSPC
	}
	room := make([]byte, 16<<10)
	for {
		n, err := f.ReadAt(room, d.end)
		if err != nil && err != io.EOF {
			return err
		}
		lines := room[:n]
		for {
			one, rest, whole := bytes.Cut(lines, []byte("\n"))
			if !whole {
				break
			}
			d.end, lines = d.end+int64(len(one))+1, rest
			d.take(one)
		}
		if n < len(room) || len(lines) > 0 && lines[0] == ' ' {
			return nil // the rest is room for more
		}
		if len(lines) == n {
			room = make([]byte, 2*len(room))
		}
	}
}

func (d *disk) take(text []byte) {
	if !bytes.Contains(text, []byte(`"kind":"intent"`)) && !bytes.Contains(text, []byte(`"kind":"outcome"`)) {
		return
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return // audit verifies the whole
	}
	if l.Kind == "outcome" {
		d.settled[l.Intent] = true
		return
	}
	d.intents[l.nonce()] = l
}

func (l line) nonce() string {
	var arguments struct{ Nonce string }
	_ = json.Unmarshal([]byte(l.Arguments), &arguments) // the calls without one are none of the machine's
	return arguments.Nonce
}

func (d *disk) intent(nonce string) (line, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.intents[nonce]
	return l, ok
}

func (d *disk) isSettled(nonce string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	l, ok := d.intents[nonce]
	return ok && d.settled[l.Number]
}

func (d *disk) fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (m *machine) path() string { return filepath.Join(m.dir, "gatehouse.toml") }

func (m *machine) ledgerDir() string { return filepath.Join(m.dir, "gatehouse.ledger") }

// write saves the file that the operator has in mind.
func (m *machine) write() {
	if err := os.WriteFile(m.path(), []byte(m.file()), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// start opens the gateway on what is in dir.
func (m *machine) start() {
	leak.Keep(m.t, m.dir)
	cfg, problems := config.Load(m.path())
	if cfg == nil {
		m.t.Fatal(problems)
	}
	m.disk = &disk{intents: map[string]line{}, settled: map[uint64]bool{}}
	g, err := federation.Open(m.t.Context(), cfg, federation.WithSync(federation.Options{Version: "test", Now: m.now}, m.disk.sync))
	if err != nil {
		m.t.Fatal(err)
	}
	m.g, m.api, m.front = g, control.NewLocal(g, true), httptest.NewServer(g.Handler())
	m.disk.reopen(m)
}

// reopen notes what is there already, which is durable.
func (d *disk) reopen(m *machine) {
	segments, err := filepath.Glob(filepath.Join(m.ledgerDir(), "*.jsonl"))
	if err != nil || len(segments) != 1 {
		m.t.Fatalf("segments %q, %v", segments, err)
	}
	f, err := os.Open(segments[0])
	if err != nil {
		m.t.Fatal(err)
	}
	defer f.Close()
	if err := d.sync(f); err != nil {
		m.t.Fatal(err)
	}
}

// stop ends the gateway; callers who still wait hang up.
func (m *machine) stop() {
	if m.g == nil {
		return
	}
	for _, q := range m.open {
		if q.flight != nil {
			q.flight.hangUp()
		}
	}
	m.flights.Wait()
	m.front.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := m.g.Close(ctx); err != nil && !m.t.Failed() {
		m.t.Errorf("closing: %v", err)
	}
	m.g = nil
}

// crash leaves of the gateway what is in its files at this moment, with calls
// under way, and opens another one on it. What the old one does then, nobody
// will know of.
func (m *machine) crash() {
	var lost []*attempt
	var parked []*flight
	var places []*parking
	for range m.rng.IntN(3) {
		a := m.callable(func(a *attempt) bool {
			return a.at.waived && !slices.ContainsFunc(lost, func(b *attempt) bool { return a.at == b.at })
		})
		if a == nil {
			break
		}
		legs := a.at.played.legs()
		parking := newParking()
		a.at.played.arm(legs[m.rng.IntN(len(legs))], parking.hold)
		m.allow(a)
		f := m.dial(a, "")
		select {
		case <-parking.here:
		case one := <-f.messages: // a kept session has no handshake; that call is over
			m.finished(a, one, "")
			continue
		}
		lost, parked, places = append(lost, a), append(parked, f), append(places, parking)
	}
	next := m.t.TempDir()
	m.copyState(next)
	for i, f := range parked {
		f.hangUp()
		places[i].exit <- status(http.StatusNotFound, "")
	}
	m.stop()
	for _, at := range m.places {
		at.played.disarm()
	}
	m.dir = next
	m.start()
	m.open = slices.DeleteFunc(m.open, func(q *asking) bool { return q.console || q.session != nil })
	for _, p := range m.people {
		for _, s := range p.sessions {
			if f := m.over(m.legacy(p, s, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)); f.status != http.StatusNotFound {
				m.broke(9, "a session of before the crash is answered with %d", f.status)
			}
		}
		p.sessions = nil
	}
	m.audit(lost)
	m.look()
}

// copyState copies the files as a crash would leave them: of the ledger all that
// was written, or what is durable only, and perhaps the beginning of an entry.
func (m *machine) copyState(to string) {
	d := m.disk
	power := m.rng.IntN(2) == 0
	files := []string{"gatehouse.toml", "gatehouse.db", "gatehouse.ledger/head"}
	segments, err := filepath.Glob(filepath.Join(m.ledgerDir(), "*.jsonl"))
	if err != nil || len(segments) != 1 {
		m.t.Fatalf("segments %q, %v", segments, err)
	}
	files = append(files, filepath.Join("gatehouse.ledger", filepath.Base(segments[0])))
	if err := os.Mkdir(filepath.Join(to, "gatehouse.ledger"), 0o700); err != nil {
		m.t.Fatal(err)
	}
	d.mu.Lock() // nothing becomes durable meanwhile
	defer d.mu.Unlock()
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil {
			m.t.Fatal(err)
		}
		if strings.HasSuffix(name, ".jsonl") && power {
			content = append(content[:d.end], `{"caller":"al`...)
		}
		if err := os.WriteFile(filepath.Join(to, name), content, 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

// audit holds the record to the books. Calls in lost were under way when the
// gateway died.
func (m *machine) audit(lost []*attempt) {
	report, err := ledger.Verify(m.ledgerDir())
	if err != nil || report.Bad != nil || len(report.Unsettled) > 0 {
		m.broke(3, "the record does not verify: %v, %+v", err, report)
	}
	intents, verdicts, used := map[string]gate.Entry{}, map[uint64][]gate.Entry{}, map[uint64]uint64{}
	agreed := map[uint64]bool{}
	err = ledger.Read(m.ledgerDir(), 1, func(_ []byte, e gate.Entry) error {
		switch e.Kind {
		case gate.KindAnswer:
			agreed[e.Approval] = e.Reason == "approved" && e.Verdict == ""
		case gate.KindIntent:
			nonce := line{Arguments: e.Arguments}.nonce()
			if _, twice := intents[nonce]; twice {
				m.broke(4, "the call %s has two intents", nonce)
			}
			if e.Approval != 0 && (used[e.Approval] != 0 || !agreed[e.Approval]) {
				m.broke(2, "intent %d rests on approval %d, which was used by intent %d or never given", e.Number, e.Approval, used[e.Approval])
			}
			intents[nonce], used[e.Approval] = e, e.Number
		case gate.KindOutcome:
			verdicts[e.Intent] = append(verdicts[e.Intent], e)
		}
		return nil
	})
	if err != nil {
		m.broke(3, "the record cannot be read: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for nonce, o := range m.orders {
		intent := intents[nonce]
		outcomes := verdicts[intent.Number]
		var wrong string
		switch died := slices.Contains(lost, o.attempt); {
		case intent.Number == 0 && o.answer == "":
			continue // it was refused for a reason of its own
		case intent.Number == 0:
			wrong = "has no intent"
		case len(outcomes) != 1:
			wrong = fmt.Sprintf("has %d outcomes", len(outcomes))
		case outcomes[0].Reason == "restart" && outcomes[0].Verdict == gate.OutcomeUnknown:
			continue // its outcome was not durable when the gateway died
		case died:
			wrong = "was under way at the crash and is " + string(outcomes[0].Verdict)
		case o.told != "" && o.told != string(outcomes[0].Verdict):
			wrong = fmt.Sprintf("was told to be %s and is %s", o.told, outcomes[0].Verdict)
		case o.answer != "" && (outcomes[0].Verdict == gate.NotSent || outcomes[0].Verdict == gate.Cancelled):
			wrong = fmt.Sprintf("arrived and is %s", outcomes[0].Verdict)
		default:
			continue
		}
		m.t.Errorf("invariant 3, step %d of -seed %d: the call %s %s on record", m.step, m.seed, nonce, wrong)
	}
}
