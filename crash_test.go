package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/upstreamtest"
	"gatehouse/upstream/upstreamtest/leak"
)

var crashes = flag.Int("crashes", 200, "how often TestKilledUnderLoad kills the daemon")

// A plant is the built binary as a process that can be killed, before an
// upstream that remembers which calls reached it.
type plant struct {
	t        *testing.T
	binary   string
	dir      string
	address  string
	token    string
	client   *http.Client
	daemon   *exec.Cmd
	log      bytes.Buffer // the daemon's, while it runs only the daemon's own
	upstream *upstreamtest.Server

	mu       sync.Mutex
	seen     map[string]int    // calls that reached the upstream, by their argument "id"
	answered map[uint64]string // calls that callers were told went well, by record
}

// newPlant builds the binary and opens two servers, "free" and "asked", of which
// the second needs approval. more is added to the configuration.
func newPlant(t *testing.T, dir, more string) *plant {
	t.Helper()
	p := &plant{t: t, dir: dir, binary: filepath.Join(t.TempDir(), "gatehouse"), seen: map[string]int{}, answered: map[uint64]string{}}
	if out, err := exec.Command("go", "build", "-o", p.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.upstream = upstreamtest.New(upstreamtest.Profile{Name: "recorded", Modern: true})
	p.upstream.On("tools/call", func(x *upstreamtest.Exchange) {
		id := idOf(x.Param("arguments"))
		p.mu.Lock()
		p.seen[id]++
		p.mu.Unlock()
		x.Result(`{"resultType":"complete","content":[]}`)
	})
	site := httptest.NewServer(p.upstream)
	t.Cleanup(site.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = l.Addr().String()
	l.Close()
	p.token = leak.Token()
	leak.Keep(t, dir)
	p.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	t.Cleanup(p.client.CloseIdleConnections)
	config := fmt.Sprintf(`[listen]
address = %q
[network]
private_hosts = ["127.0.0.1"]
[audit]
arguments = "full"
[[caller]]
name = "alice"
token = "sha256:%s"
admin = true
trust_zone = "local"
max_calls_per_minute = 0
max_concurrent_calls = 0
[[server]]
id = "free"
url = "%[3]s/mcp"
data_class = "public_content"
requires_approval = false
[[server]]
id = "asked"
url = "%[3]s/mcp"
data_class = "public_content"
%s`, p.address, gate.DigestOf([]byte(p.token)), site.URL, more)
	if err := os.WriteFile(filepath.Join(dir, "gatehouse.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p.run("import", "--all")
	p.run("tools", "enable", "mcp_free_echo", "mcp_asked_echo")
	t.Cleanup(func() {
		if p.daemon != nil {
			p.kill()
		}
		if t.Failed() {
			t.Logf("the daemon said:\n%s", p.log.Bytes()[max(0, p.log.Len()-4000):])
		}
	})
	return p
}

func idOf(arguments []byte) string {
	members, _ := rawjson.Object(arguments)
	value, _ := rawjson.Get(members, "id")
	id, _ := rawjson.String(value)
	return id
}

// run runs a command that must succeed.
func (p *plant) run(args ...string) string {
	p.t.Helper()
	c := exec.Command(p.binary, args...)
	c.Dir = p.dir
	out, err := c.CombinedOutput()
	if err != nil {
		p.t.Fatalf("gatehouse %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (p *plant) start() {
	p.t.Helper()
	p.log.Reset()
	p.daemon = exec.Command(p.binary, "serve", "--debug")
	p.daemon.Dir, p.daemon.Stdout, p.daemon.Stderr = p.dir, &p.log, &p.log
	if err := p.daemon.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *plant) kill() {
	_ = p.daemon.Process.Kill()
	_ = p.daemon.Wait() // it was killed, and says so
	leak.Write(p.t, "serve.out", p.log.String())
	p.daemon = nil
}

// ready waits for /readyz to have a status, and returns what it says.
func (p *plant) ready(status int) string {
	p.t.Helper()
	var said string
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		res, err := p.client.Get("http://" + p.address + "/readyz")
		if err != nil {
			said = err.Error()
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if said = string(body); res.StatusCode == status {
			return said
		}
	}
	p.t.Fatalf("the daemon is not at %d: %s", status, said)
	return ""
}

// A result is what these tests read of one.
type result struct {
	State string `json:"requestState"`
	Meta  struct {
		Outcome string `json:"gatehouse/outcome"`
		Record  uint64 `json:"gatehouse/record"`
	} `json:"_meta"`
	Content []struct{ Text string }
}

// call sends one tools/call. An error says that no whole reply came.
func (p *plant) call(ctx context.Context, tool, id, more string) (result, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{"id":%q},%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}}}`, tool, id, more)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address+"/mcp", strings.NewReader(body))
	if err != nil {
		return result{}, err
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + p.token, "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		req.Header.Set(name, value)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return result{}, err
	}
	defer res.Body.Close()
	var reply struct{ Result result }
	return reply.Result, json.NewDecoder(res.Body).Decode(&reply)
}

func (p *plant) note(id string, r result) {
	if r.Meta.Outcome == "ok" {
		p.mu.Lock()
		p.answered[r.Meta.Record] = id
		p.mu.Unlock()
	}
}

// sent is how often a call reached the upstream.
func (p *plant) sent(id string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[id]
}

// callFree makes one call and never sends it again.
func (p *plant) callFree(ctx context.Context, id string) error {
	r, err := p.call(ctx, "mcp_free_echo", id, "")
	if err == nil {
		p.note(id, r)
	}
	return err
}

// callAsked makes one call that a person approves, and sends the approval again
// until there is a reply, as an impatient client does.
func (p *plant) callAsked(ctx context.Context, id string) error {
	question, err := p.call(ctx, "mcp_asked_echo", id, "")
	if err != nil || question.State == "" {
		return err
	}
	answer := fmt.Sprintf(`"requestState":%q,"inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}},`, question.State)
	for range 100 {
		r, err := p.call(ctx, "mcp_asked_echo", id, answer)
		if err == nil {
			p.note(id, r)
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return err
		}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// load calls from so many callers until the returned function is called, which
// waits for them.
func (p *plant) load(callers int) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for n := range callers {
		working.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				call := p.callFree
				if i%2 == 1 {
					call = p.callAsked
				}
				if call(ctx, fmt.Sprintf("%d-%d", n, i)) != nil {
					pause(ctx, 5*time.Millisecond)
				}
			}
		})
	}
	return func() { cancel(); working.Wait() }
}

// audit holds the record to what callers and the upstream know.
func (p *plant) audit() {
	p.t.Helper()
	if out := p.run("audit", "verify"); strings.Contains(out, "has no outcome") {
		p.t.Errorf("audit verify:\n%s", out)
	}
	intents, verdicts := map[string]uint64{}, map[uint64][]gate.Verdict{}
	err := ledger.Read(filepath.Join(p.dir, "gatehouse.ledger"), 1, func(_ []byte, e gate.Entry) error {
		switch e.Kind {
		case gate.KindIntent:
			id := idOf([]byte(e.Arguments))
			if before, twice := intents[id]; twice {
				return fmt.Errorf("call %s has the intents %d and %d", id, before, e.Number)
			}
			intents[id] = e.Number
		case gate.KindOutcome:
			verdicts[e.Intent] = append(verdicts[e.Intent], e.Verdict)
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, times := range p.seen {
		if times != 1 {
			p.t.Errorf("call %s was sent %d times", id, times)
		}
		if intents[id] == 0 {
			p.t.Errorf("call %s was sent and is not on record", id)
		}
	}
	for record, id := range p.answered {
		if intents[id] != record || p.seen[id] != 1 {
			p.t.Errorf("call %s was acknowledged as record %d; on record it is %d, and it was sent %d times", id, record, intents[id], p.seen[id])
		}
	}
	for id, record := range intents {
		if v := verdicts[record]; len(v) != 1 || v[0] == gate.NotSent && p.seen[id] != 0 {
			p.t.Errorf("call %s, record %d, has the outcomes %q and was sent %d times", id, record, v, p.seen[id])
		}
	}
	p.t.Logf("%d intents, %d calls sent, %d acknowledged", len(intents), len(p.seen), len(p.answered))
}

// TestKilledUnderLoad kills the daemon at random moments, from its first
// instruction on, while 16 callers call. Whatever the moment: what reached the
// upstream is on record and reached it once, and what a caller was told is true.
func TestKilledUnderLoad(t *testing.T) {
	rounds := *crashes
	if testing.Short() {
		rounds = min(rounds, 20)
	}
	p := newPlant(t, t.TempDir(), "")
	end := p.load(16)
	for round := range rounds {
		p.start()
		if round%8 != 0 { // the others die while they start
			p.ready(http.StatusOK)
		}
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		p.kill()
		p.upstream.Forget()
		if round%50 == 49 {
			p.run("audit", "verify")
		}
	}
	p.start()
	p.ready(http.StatusOK)
	end()
	if err := p.callFree(t.Context(), "last"); err != nil || p.sent("last") != 1 {
		t.Errorf("a call after it all: %v", err)
	}
	p.stop()
	p.audit()
	if len(p.answered) < 5*rounds {
		t.Errorf("%d calls in %d rounds are no load", len(p.answered), rounds)
	}
}

// stop ends the daemon as an operator does.
func (p *plant) stop() {
	p.t.Helper()
	if err := p.daemon.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Fatal(err)
	}
	if err := p.daemon.Wait(); err != nil {
		p.t.Errorf("the daemon ended with %v", err)
	}
	p.daemon = nil
}
