package federation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/federation/caller"
	"gatehouse/federation/config"
	"gatehouse/federation/plan"
	"gatehouse/gate"
	"gatehouse/upstream/upstreamtest"
)

// A reloadRig is a rig whose configuration is a file, with a second upstream to
// move to.
type reloadRig struct {
	*rig
	text  string
	other *upstreamtest.Server
	here  string // url of rig.upstream
	there string // url of other
}

func newReloadRig(t *testing.T) *reloadRig {
	t.Helper()
	r := &reloadRig{rig: &rig{t: t, upstream: upstreamtest.New(recent), tokens: map[string]string{}, dir: t.TempDir()}, other: upstreamtest.New(recent)}
	r.here, r.there = r.play(r.upstream), r.play(r.other)
	token, digest := caller.NewToken()
	r.tokens["alice"] = token
	r.text = fmt.Sprintf(`[listen]
address = "127.0.0.1:8620"
[network]
private_hosts = ["127.0.0.1"]
[[caller]]
name = "alice"
token = "sha256:%s"
max_calls_per_minute = 0
admin = true
trust_zone = "local"
[[server]]
id = "up"
url = %q
data_class = "source_code"
requires_approval = false
`, digest, r.here)
	r.write(r.text)
	r.open(r.text)
	if _, err := r.g.Import(context.Background(), "up", false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.g.Enable(context.Background(), "test", "mcp_up"); err != nil {
		t.Fatal(err)
	}
	r.upstream.Forget()
	return r
}

func (r *reloadRig) play(s *upstreamtest.Server) string {
	site := httptest.NewServer(s)
	r.t.Cleanup(site.Close)
	return site.URL + "/mcp"
}

func (r *reloadRig) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "gatehouse.toml"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// with is the file with some of its text replaced.
func (r *reloadRig) with(pairs ...string) string {
	text := strings.NewReplacer(pairs...).Replace(r.text)
	if text == r.text {
		r.t.Fatalf("%q changes nothing", pairs)
	}
	return text
}

func (r *reloadRig) parse(text string) *config.Config {
	r.t.Helper()
	cfg, problems := config.Parse(filepath.Join(r.dir, "gatehouse.toml"), []byte(text))
	if cfg == nil {
		r.t.Fatal(problems)
	}
	return cfg
}

func (r *reloadRig) reload(text string) *plan.Plan {
	r.t.Helper()
	p, err := r.g.Reload(context.Background(), r.parse(text))
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *reloadRig) submit(name gate.LocalName) (*settings, *invocation, *gate.Permit) {
	r.t.Helper()
	inv := &invocation{caller: r.g.Caller("alice"), name: name, arguments: []byte(`{}`), era: modern}
	snapshot, set := r.g.standing()
	ruling := r.g.Gate.Submit(context.Background(), snapshot, inv.caller, inv.call())
	if ruling.Permit == nil {
		r.t.Fatalf("no permit: %+v", ruling.Refusal)
	}
	return set, inv, ruling.Permit
}

// TestCallGoesWhereItWasJudgedFor: whatever the reload between judgement and
// sending moves, the call goes to the server of the file that permitted it.
func TestCallGoesWhereItWasJudgedFor(t *testing.T) {
	for name, next := range map[string]func(r *reloadRig) string{
		"moved":           func(r *reloadRig) string { return r.with(r.here, r.there) },
		"switched off":    func(r *reloadRig) string { return r.with("id = \"up\"", "id = \"up\"\nenabled = false") },
		"taken out":       func(r *reloadRig) string { return r.text[:strings.Index(r.text, "[[server]]")] },
		"host gate shut":  func(r *reloadRig) string { return r.with(`private_hosts = ["127.0.0.1"]`, `private_hosts = []`) },
		"kept as it was":  func(r *reloadRig) string { return r.text + "# a word\n" },
		"another timeout": func(r *reloadRig) string { return r.text + "timeout = \"3s\"\n" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReloadRig(t)
			set, inv, permit := r.submit("mcp_up_echo")
			r.reload(next(r))
			if reply := r.g.perform(context.Background(), inv, set, permit); reply.verdict != gate.OK {
				t.Errorf("verdict %s: %+v", reply.verdict, reply.failure)
			}
			if here, there := r.upstream.Count("tools/call"), r.other.Count("tools/call"); here != 1 || there != 0 {
				t.Errorf("%d calls here and %d there, want 1 and 0", here, there)
			}
		})
	}
}

// TestNoCallIsSentElsewhere reloads between two urls while calls run. The tools
// were enabled at the first url only, so the second must not get a single call.
func TestNoCallIsSentElsewhere(t *testing.T) {
	r := newReloadRig(t)
	here, there := r.parse(r.text), r.parse(r.with(r.here, r.there))
	ctx, stop := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				r.g.Call(context.Background(), r.g.Caller("alice"), "mcp_up_echo", []byte(`{}`), nil, nil)
			}
		})
	}
	for range 40 {
		for _, cfg := range []*config.Config{there, here} {
			if _, err := r.g.Reload(context.Background(), cfg); err != nil {
				t.Error(err)
			}
		}
	}
	stop()
	callers.Wait()
	if n := r.other.Count("tools/call"); n != 0 {
		t.Errorf("%d calls reached the server that nobody enabled anything at", n)
	}
	if r.upstream.Count("tools/call") == 0 {
		t.Error("no call was sent at all")
	}
}

// TestCallInFlightFinishes: a reload that takes the server away does not touch
// what is under way there.
func TestCallInFlightFinishes(t *testing.T) {
	r := newReloadRig(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	r.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
		close(begun)
		<-finish
		x.Result(upstreamtest.Text("done"))
	})
	end := make(chan told)
	go func() { end <- r.modern("alice", "tools/call", echo, form) }() // received below
	<-begun
	r.reload(r.text[:strings.Index(r.text, "[[server]]")])
	if x := r.modern("alice", "tools/call", echo, form); x.code() == 0 {
		t.Errorf("a call after the reload: %s", x.raw)
	}
	close(finish)
	if x := <-end; x.verdict() != "ok" {
		t.Errorf("the call in flight: %s", x.raw)
	}
}

// TestAnswerIsJudgedByTheFileInForce: rights that were taken away while a
// person thought about it are gone, whatever the answer.
func TestAnswerIsJudgedByTheFileInForce(t *testing.T) {
	for name, change := range map[string][]string{
		"no administrator": {"admin = true", "admin = false"},
		"lower zone":       {`trust_zone = "local"`, `trust_zone = "external_global"`},
		"other groups":     {"admin = true", "admin = true\ngroups = []"},
		"removed":          {`name = "alice"`, `name = "carol"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReloadRig(t)
			r.text = r.with("requires_approval = false\n", "")
			r.reload(r.text)
			reply := r.g.Call(context.Background(), r.g.Caller("alice"), "mcp_up_echo", []byte(`{}`),
				func(context.Context, *gate.Question) *gate.Answer {
					r.reload(r.with(change...))
					return &gate.Answer{Action: "accept", Content: []byte(`{"decision":"approve"}`)}
				}, nil)
			if reply.Verdict == gate.OK {
				t.Errorf("got %s", reply.Result)
			}
			if n := r.upstream.Count("tools/call"); n != 0 {
				t.Errorf("%d calls were sent", n)
			}
		})
	}
}

// TestInvalidFileChangesNothing and says so wherever somebody would look.
func TestInvalidFileChangesNothing(t *testing.T) {
	r := newReloadRig(t)
	before := r.g.Config()
	r.write(r.with(`data_class = "source_code"`, `data_class = "sauce_code"`))
	for range 2 { // the second time is no news
		_, err := r.g.ReloadFile(context.Background(), "test", gate.Digest{})
		if _, invalid := errors.AsType[*InvalidFileError](err); !invalid {
			t.Fatalf("got %v", err)
		}
		if want := `gatehouse.toml:14: server "up": unknown data class "sauce_code"`; !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "; the configuration in force stays") {
			t.Errorf("got %q", err)
		}
	}
	if r.g.Config() != before {
		t.Error("the configuration is another one")
	}
	if w := r.g.Waiting(); w == nil || len(w.Problems) != 1 || w.Plan != nil {
		t.Errorf("waiting: %+v", w)
	}
	if entries := r.entries(gate.KindReload, 1); len(entries) != 1 || entries[0].Verdict != gate.Refused || entries[0].Reason != "invalid_configuration" || entries[0].Definition.IsZero() {
		t.Errorf("on record: %+v", entries)
	}
	res, err := http.Get(r.front.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var ready struct{ Reasons, Notices []string }
	if err := json.NewDecoder(res.Body).Decode(&ready); err != nil || res.StatusCode != http.StatusOK || len(ready.Notices) != 1 || len(ready.Reasons) != 0 {
		t.Errorf("readyz: %d %+v %v", res.StatusCode, ready, err)
	}
	if x := r.modern("alice", "tools/call", `{"name":"gatehouse_status","arguments":{}}`, form); !strings.Contains(x.raw, "is not valid") {
		t.Errorf("gatehouse_status: %s", x.raw)
	}
	if x := r.modern("alice", "tools/call", echo, form); x.verdict() != "ok" {
		t.Errorf("a call: %s", x.raw)
	}
	r.write(r.text)
	if _, err := r.g.ReloadFile(context.Background(), "test", gate.Digest{}); err != nil || r.g.Waiting() != nil {
		t.Errorf("after it was mended: %v, %+v", err, r.g.Waiting())
	}
}

// TestReloadIsOnRecord with the file's digest and what the plan comes to, and
// leaves alone what only a restart can change.
func TestReloadIsOnRecord(t *testing.T) {
	r := newReloadRig(t)
	text := r.with("127.0.0.1:8620", "127.0.0.1:9999", `trust_zone = "local"`, `trust_zone = "external_global"`)
	p := r.reload(text)
	e := r.entries(gate.KindReload, 1)[0]
	if e.Definition != gate.DigestOf([]byte(text)) || e.Detail != p.Summary() || e.AnsweredBy != Operator || e.Verdict != gate.OK {
		t.Errorf("on record: %+v", e)
	}
	if want := "narrows: 6 access lost, 1 setting changed; needs a restart: listen.address"; p.Summary() != want {
		t.Errorf("got %q, want %q", p.Summary(), want)
	}
	if cfg := r.g.Config(); cfg.Listen.Address != "127.0.0.1:8620" || cfg.Digest != gate.DigestOf([]byte(text)) {
		t.Errorf("in force: %s, %s", cfg.Listen.Address, cfg.Digest)
	}
}

// TestWatch: what opens nothing comes into force by itself, what opens something
// waits, and a file that somebody is still writing is left alone.
func TestWatch(t *testing.T) {
	r := newReloadRig(t)
	var w watched
	look := func() { r.g.look(context.Background(), &w) }
	digest := func() gate.Digest { return r.g.Config().Digest }
	start := digest()

	narrow := r.with(`trust_zone = "local"`, `trust_zone = "private_hosted"`)
	r.write(r.text[:strings.Index(r.text, "[[server]]")]) // half of a file is a file as well
	look()
	r.write(narrow)
	look()
	if digest() != start {
		t.Fatal("a file that had just changed was taken")
	}
	look()
	if digest() != gate.DigestOf([]byte(narrow)) {
		t.Fatal("a file that only narrows was not taken")
	}

	wide := r.text
	r.write(wide)
	look()
	look()
	waiting := r.g.Waiting()
	if digest() == gate.DigestOf([]byte(wide)) || waiting == nil || waiting.Plan == nil || waiting.Plan.Effect != plan.Widens {
		t.Fatalf("a file that widens: %+v", waiting)
	}
	r.write(wide + "# more\n")
	if _, err := r.g.ReloadFile(context.Background(), "test", gate.DigestOf([]byte(wide))); !errors.Is(err, ErrFileChanged) {
		t.Errorf("another file than was agreed to: %v", err)
	}
	r.write(wide)
	if _, err := r.g.ReloadFile(context.Background(), "test", gate.DigestOf([]byte(wide))); err != nil || r.g.Waiting() != nil {
		t.Errorf("the file that was agreed to: %v, %+v", err, r.g.Waiting())
	}

	for range 4 { // told once
		r.write("[[")
		look()
	}
	if w := r.g.Waiting(); w == nil || len(w.Problems) == 0 {
		t.Errorf("a broken file: %+v", w)
	}
	r.write(wide)
	look()
	if r.g.Waiting() != nil {
		t.Error("the file is the one in force again, and still something waits")
	}
	if entries := r.entries(gate.KindReload, 3); len(entries) != 3 {
		t.Errorf("%d entries, want 3: %+v", len(entries), entries)
	}
}

// TestWatchEnds: who watches can wait for the end of it.
func TestWatchEnds(t *testing.T) {
	r := newReloadRig(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); r.g.Watch(ctx, time.Millisecond) }() // ended by stop, waited for below
	narrow := r.with("admin = true\n", "")
	r.write(narrow)
	r.entries(gate.KindReload, 1)
	stop()
	<-done
	if r.g.Config().Digest != gate.DigestOf([]byte(narrow)) {
		t.Error("the file was not taken")
	}
}

// TestReplay judges what is on record under both files.
func TestReplay(t *testing.T) {
	r := newReloadRig(t)
	for _, params := range []string{echo, `{"name":"mcp_up_count","arguments":{}}`, `{"name":"mcp_up_nothing","arguments":{}}`} {
		r.modern("alice", "tools/call", params, form)
	}
	p, err := r.g.Plan(context.Background(), r.parse(r.with("requires_approval = false", "requires_approval = true")), 10)
	if err != nil {
		t.Fatal(err)
	}
	if p.Replay.Calls != 3 || len(p.Replay.Differ) != 2 || p.Replay.Partly != 1 {
		t.Errorf("got %+v", p.Replay)
	}
	for _, d := range p.Replay.Differ {
		if d.Before.Outcome != "permitted" || d.After.Outcome != "asked" {
			t.Errorf("got %+v", d)
		}
	}
	if p, err = r.g.Plan(context.Background(), r.parse(r.text), 2); err != nil || p.Replay.Calls != 2 || len(p.Replay.Differ) != 0 || !p.Empty() {
		t.Errorf("the same file: %+v, %v", p.Replay, err)
	}
}

// TestReloadTellsWhomItConcerns: the list changed for a caller whose rights
// changed, though no tool did, and for nobody after a change of words.
func TestReloadTellsWhomItConcerns(t *testing.T) {
	r := newReloadRig(t)
	n := r.g.listeners.add(r.g.Caller("alice"))
	defer r.g.listeners.remove(n)
	told := func() bool {
		select {
		case <-n.changed:
			return true
		default:
			return false
		}
	}
	told() // whatever came before
	for _, test := range []struct {
		name, text string
		want       bool
	}{
		{"a word", r.text + "# a word\n", false},
		{"the zone", r.with(`trust_zone = "local"`, `trust_zone = "external_global"`), true},
		{"back", r.text, true},
		{"the dialect", r.with("admin = true", "admin = true\nschema_dialect = \"portable\""), true},
		{"the budget", r.with("admin = true", "admin = true\nschema_dialect = \"portable\"\nmax_concurrent_calls = 3"), false},
	} {
		r.reload(test.text)
		if got := told(); got != test.want {
			t.Errorf("%s: told %v, want %v", test.name, got, test.want)
		}
	}
}

// TestHostGateIsReloaded: what [network] no longer allows is not reached, not
// even through a connection that was open before.
func TestHostGateIsReloaded(t *testing.T) {
	r := newReloadRig(t)
	if x := r.modern("alice", "tools/call", echo, form); x.verdict() != "ok" {
		t.Fatalf("before: %s", x.raw)
	}
	r.reload(r.with(`private_hosts = ["127.0.0.1"]`, `private_hosts = []`))
	if x := r.modern("alice", "tools/call", echo, form); x.verdict() != "not_sent" {
		t.Errorf("after: %s", x.raw)
	}
	if _, err := r.g.outbound.CheckURL(r.here, false); err == nil {
		t.Error("the way out for token requests is still the one before")
	}
	r.reload(r.text)
	if x := r.modern("alice", "tools/call", echo, form); x.verdict() != "ok" {
		t.Errorf("back again: %s", x.raw)
	}
	if n := r.upstream.Count("tools/call"); n != 2 {
		t.Errorf("%d calls were sent, want 2", n)
	}
}
