package federation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
)

// TestMethodsOfTheEndpoint is C12 and C08 (inbound): what a path answers besides POST.
func TestMethodsOfTheEndpoint(t *testing.T) {
	r := newRig(t, recent, "", "")
	c := r.connect("alice", "2025-11-25", `{}`)
	do := func(who, method string, header map[string]string) *http.Response {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		t.Cleanup(cancel)
		res, err := r.request(ctx, who, method, "", header)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodOptions, http.MethodDelete} {
		if res := do("alice", method, nil); res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") == "" {
			t.Errorf("%s without a session: %d", method, res.StatusCode)
		}
	}
	if res := do("alice", http.MethodGet, map[string]string{headerSession: "none"}); res.StatusCode != http.StatusNotFound {
		t.Errorf("GET of an unknown session: %d", res.StatusCode)
	}
	if res := do("eve", http.MethodGet, c.header()); res.StatusCode != http.StatusNotFound {
		t.Errorf("GET of a foreign session: %d", res.StatusCode)
	}
	res := do("alice", http.MethodGet, c.header())
	first := make([]byte, len(": listening\n\n"))
	if _, err := io.ReadFull(res.Body, first); err != nil || res.StatusCode != http.StatusOK || string(first) != ": listening\n\n" {
		t.Errorf("GET of a session: %d %q %v", res.StatusCode, first, err)
	}
	if res := do("eve", http.MethodDelete, c.header()); res.StatusCode != http.StatusNotFound {
		t.Errorf("DELETE of a foreign session: %d", res.StatusCode)
	}
	if res := do("alice", http.MethodDelete, c.header()); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	if x := c.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); x.status != http.StatusNotFound {
		t.Errorf("use after the end: %d", x.status)
	}
	x := r.post("alice", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	if x.status != http.StatusAccepted || x.raw != "" || x.header.Get("Content-Type") != "" {
		t.Errorf("a notification: %d %q %q", x.status, x.raw, x.header.Get("Content-Type"))
	}
}

// TestBodiesThatAreRefused is C38 (c), (e) and C52 (g).
func TestBodiesThatAreRefused(t *testing.T) {
	r := newRig(t, recent, "", "")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, test := range map[string]struct {
		header map[string]string
		body   string
		want   int
	}{
		"text/plain":       {map[string]string{"Content-Type": "text/plain"}, ping, http.StatusUnsupportedMediaType},
		"no type":          {map[string]string{"Content-Type": ""}, ping, http.StatusUnsupportedMediaType},
		"form":             {map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, ping, http.StatusUnsupportedMediaType},
		"with charset":     {map[string]string{"Content-Type": "application/json; charset=utf-8"}, ping, http.StatusOK},
		"gzip":             {map[string]string{"Content-Encoding": "gzip"}, ping, http.StatusUnsupportedMediaType},
		"one byte too big": {nil, ping + strings.Repeat(" ", maxBody-len(ping)+1), http.StatusRequestEntityTooLarge},
		"at the cap":       {nil, ping + strings.Repeat(" ", maxBody-len(ping)), http.StatusOK},
		"batch":            {nil, "[" + ping + "]", http.StatusBadRequest},
	} {
		if x := r.post("alice", test.body, test.header); x.status != test.want {
			t.Errorf("%s: %d %.100s", name, x.status, x.raw)
		}
	}
	req, err := http.NewRequest(http.MethodPost, r.front.URL+"/mcp", io.MultiReader(strings.NewReader(ping), strings.NewReader(strings.Repeat(" ", maxBody))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+r.tokens["alice"])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked and too big: %d", res.StatusCode)
	}
	denied := r.entries(gate.KindDenied, 1)
	if len(denied) != 1 || denied[0].Reason != "malformed_request" || denied[0].Caller != "alice" {
		t.Errorf("the batch on record: %+v", denied)
	}
}

// TestNobodyIsAnonymous: no token, a wrong one, one in the query (C50 c).
func TestNobodyIsAnonymous(t *testing.T) {
	r := newRig(t, recent, "", "")
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, header := range map[string]map[string]string{
		"none":         nil,
		"wrong":        {"Authorization": "Bearer " + strings.Repeat("x", 43)},
		"basic":        {"Authorization": "Basic YWxpY2U6eA=="},
		"empty bearer": {"Authorization": "Bearer "},
	} {
		x := r.post("", ping, header)
		if x.status != http.StatusUnauthorized || !strings.Contains(x.header.Get("WWW-Authenticate"), `resource_metadata="http://127.0.0.1:8620/.well-known/oauth-protected-resource/mcp"`) {
			t.Errorf("%s: %d %q", name, x.status, x.header.Get("WWW-Authenticate"))
		}
	}
	res, err := http.Post(r.front.URL+"/mcp?token="+r.tokens["alice"]+"&access_token="+r.tokens["alice"], "application/json", strings.NewReader(ping))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("token in the query: %d", res.StatusCode)
	}
	for range 3 * failureBurst {
		r.post("", ping, map[string]string{"Authorization": "Bearer guess"})
	}
	if x := r.post("", ping, map[string]string{"Authorization": "Bearer guess"}); x.status != http.StatusTooManyRequests {
		t.Errorf("a flood of guesses: %d", x.status)
	}
	if x := r.post("alice", ping, nil); x.status != http.StatusOK {
		t.Errorf("the flood shuts out a good caller: %d", x.status)
	}
	if entries := r.entries(gate.KindAuthFailure, 3); len(entries) > failureBurst {
		t.Errorf("%d entries for one flood", len(entries))
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		res, err := http.Get(r.front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Resource string }
		err = json.NewDecoder(res.Body).Decode(&document)
		res.Body.Close()
		if err != nil || document.Resource != "http://127.0.0.1:8620/mcp" {
			t.Errorf("%s: %+v %v", path, document, err)
		}
	}
}

// TestDescribe covers the checks on what a modern request says about itself.
func TestDescribe(t *testing.T) {
	r := newRig(t, recent, "", "")
	meta := func(version, capabilities string) string {
		var parts []string
		if version != "" {
			parts = append(parts, `"io.modelcontextprotocol/protocolVersion":`+version)
		}
		if capabilities != "" {
			parts = append(parts, `"io.modelcontextprotocol/clientCapabilities":`+capabilities)
		}
		return `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{` + strings.Join(parts, ",") + `}}}`
	}
	good := meta(`"2026-07-28"`, `{}`)
	headers := func(pairs ...string) map[string]string {
		h := map[string]string{headerVersion: modernVersion, headerMethod: "server/discover"}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	for name, test := range map[string]struct {
		body   string
		header map[string]string
		status int
		code   int
	}{
		"good":                  {good, headers(), 200, 0},
		"no version":            {meta("", `{}`), headers(), 400, codeInvalidParams},
		"version no string":     {meta("1", `{}`), headers(), 400, codeInvalidParams},
		"no capabilities":       {meta(`"2026-07-28"`, ""), headers(), 400, codeInvalidParams},
		"no params":             {`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, headers(), 400, codeInvalidParams},
		"no version header":     {good, headers(headerVersion, ""), 400, codeHeaderMismatch},
		"other version header":  {good, headers(headerVersion, "2025-11-25"), 400, codeHeaderMismatch},
		"unknown version":       {meta(`"v9"`, `{}`), headers(headerVersion, "v9"), 400, codeUnsupportedVersion},
		"no method header":      {good, headers(headerMethod, ""), 400, codeHeaderMismatch},
		"other method header":   {good, headers(headerMethod, "tools/list"), 400, codeHeaderMismatch},
		"method in other case":  {good, headers(headerMethod, "SERVER/DISCOVER"), 400, codeHeaderMismatch},
		"session id is ignored": {good, headers(headerSession, "none"), 200, 0},
	} {
		x := r.post("alice", test.body, test.header)
		if x.status != test.status || x.code() != test.code {
			t.Errorf("%s: %d %s", name, x.status, x.raw)
		}
		if test.code == codeUnsupportedVersion && !strings.Contains(x.raw, `"supported":["2026-07-28"`) {
			t.Errorf("%s: %s", name, x.raw)
		}
	}
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", "no/such"} {
		if x := r.modern("alice", method, `{}`, `{}`); x.status != 404 || x.code() != codeMethodNotFound {
			t.Errorf("%s: %d %s", method, x.status, x.raw)
		}
	}
	x := r.post("alice", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, nil)
	if x.status != http.StatusBadRequest {
		t.Errorf("cancelling by id: %d", x.status)
	}
}

// TestVersionsOfTheLegacyEra: what initialize and the version header agree on.
func TestVersionsOfTheLegacyEra(t *testing.T) {
	r := newRig(t, recent, "", "")
	for asked, want := range map[string]string{
		"2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2025-03-26": "2025-03-26",
		"2024-11-05": "2025-11-25", "1999-01-01": "2025-11-25", "": "2025-11-25",
	} {
		x := r.post("alice", fmt.Sprintf(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, asked), nil)
		if got := string(x.result()["protocolVersion"]); got != `"`+want+`"` {
			t.Errorf("asked for %q, got %s", asked, x.raw)
		}
	}
	c := r.connect("alice", "2025-06-18", `{}`)
	header := c.header()
	header[headerVersion] = "2024-11-05"
	if x := r.post("alice", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header); x.status != http.StatusBadRequest {
		t.Errorf("unsupported version header: %d", x.status)
	}
	if x := c.send(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`); x.status != http.StatusOK || x.code() != codeMethodNotFound {
		t.Errorf("unknown method: %d %s", x.status, x.raw)
	}
}

// TestListing: the same tools in both eras, each in its own form, and a cursor
// that is nobody's is refused.
func TestListing(t *testing.T) {
	r := newRig(t, recent, "", "")
	c := r.connect("alice", "2025-11-25", `{}`)
	older := c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	newer := r.modern("alice", "tools/list", `{}`, `{}`)
	for name, x := range map[string]told{"2025": older, "2026": newer} {
		if !strings.Contains(x.raw, `"mcp_up_echo"`) || !strings.Contains(x.raw, `"gatehouse_status"`) {
			t.Errorf("%s: %s", name, x.raw)
		}
		if x.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached: %q", name, x.header.Get("Cache-Control"))
		}
	}
	if newer.result()["ttlMs"] == nil || string(newer.result()["cacheScope"]) != `"private"` || string(newer.result()["resultType"]) != `"complete"` {
		t.Errorf("2026: %s", newer.raw)
	}
	if older.result()["ttlMs"] != nil || older.result()["resultType"] != nil {
		t.Errorf("2025: %s", older.raw)
	}
	for _, cursor := range []string{`"x"`, `""`, `5`} {
		if x := r.modern("alice", "tools/list", `{"cursor":`+cursor+`}`, `{}`); x.code() != codeInvalidParams || x.status != http.StatusBadRequest {
			t.Errorf("cursor %s: %d %s", cursor, x.status, x.raw)
		}
	}
	if x := r.modern("bob", "tools/list", `{}`, `{}`); strings.Contains(x.raw, "mcp_up_") || !strings.Contains(x.raw, "gatehouse_status") {
		t.Errorf("bob sees %s", x.raw)
	}
}

// TestNoticesReachThoseConcerned: one change, one notice, to callers whose view
// changed, on the session's stream and on subscriptions/listen.
func TestNoticesReachThoseConcerned(t *testing.T) {
	r := newRig(t, recent, "", "")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	notices := func(res *http.Response, err error) <-chan string {
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("stream: %v %v", res, err)
		}
		lines := make(chan string, 100)
		go func() { // ends with the response, which cancel ends
			defer close(lines)
			defer res.Body.Close()
			buf := make([]byte, 4096)
			for {
				n, err := res.Body.Read(buf)
				for line := range strings.Lines(string(buf[:n])) {
					if data, ok := strings.CutPrefix(line, "data: "); ok {
						lines <- data
					}
				}
				if err != nil {
					return
				}
			}
		}()
		return lines
	}
	get := func(who string) <-chan string {
		c := r.connect(who, "2025-11-25", `{}`)
		return notices(r.request(ctx, who, http.MethodGet, "", c.header()))
	}
	alice, bob := get("alice"), get("bob")
	listen := notices(r.request(ctx, "alice", http.MethodPost,
		`{"jsonrpc":"2.0","id":"sub","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		map[string]string{headerVersion: modernVersion, headerMethod: "subscriptions/listen"}))
	if ack := <-listen; !strings.Contains(ack, "notifications/subscriptions/acknowledged") || !strings.Contains(ack, `"notifications":{"toolsListChanged":true}`) || !strings.Contains(ack, `subscriptionId":"sub"`) {
		t.Errorf("first message: %s", ack)
	}
	for i := range 5 {
		if _, err := r.g.Disable(context.Background(), "test", "mcp_up_echo"); err != nil {
			t.Fatal(i, err)
		}
		if _, err := r.g.Enable(context.Background(), "test", "mcp_up_echo"); err != nil {
			t.Fatal(i, err)
		}
	}
	for name, stream := range map[string]<-chan string{"session": alice, "subscription": listen} {
		select {
		case line := <-stream:
			if !strings.Contains(line, "notifications/tools/list_changed") || name == "subscription" && !strings.Contains(line, `subscriptionId":"sub"`) {
				t.Errorf("%s: %s", name, line)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: no notice", name)
		}
	}
	time.Sleep(noticeEvery + 200*time.Millisecond) // what was coalesced arrives now, and nothing after it
	if n := len(alice); n > 1 {
		t.Errorf("%d more notices for one burst", n)
	}
	if n := len(bob); n != 0 {
		t.Errorf("bob, whose view did not change, was told %d times", n)
	}
	r.g.listeners.closeAll()
	var last string
	for line := range listen {
		last = line
	}
	if !strings.Contains(last, `"resultType":"complete"`) {
		t.Errorf("closing words: %s", last)
	}
}

func TestHealth(t *testing.T) {
	r := newRig(t, recent, "", "")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/nothing": 404} {
		res, err := http.Get(r.front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	r.g.draining.Store(true)
	res, err := http.Get(r.front.URL + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("draining: %d", res.StatusCode)
	}
	if x := r.post("alice", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil); x.status != http.StatusServiceUnavailable || x.header.Get("Retry-After") == "" {
		t.Errorf("a call while draining: %d", x.status)
	}
}

// TestOwnTools: status explains an empty list, find searches the caller's view,
// call takes the same way as any other.
func TestOwnTools(t *testing.T) {
	r := newRig(t, recent, "requires_approval = false", "")
	if x := r.modern("alice", "tools/call", `{"name":"gatehouse_status","arguments":{}}`, `{}`); x.verdict() != "ok" || !strings.Contains(x.raw, "6 tools imported, 6 enabled") {
		t.Errorf("status: %s", x.raw)
	}
	if _, err := r.g.Disable(context.Background(), "test", "mcp_up"); err != nil {
		t.Fatal(err)
	}
	x := r.modern("alice", "tools/call", `{"name":"gatehouse_status","arguments":{}}`, `{}`)
	if !strings.Contains(x.raw, "6 tools imported, 0 enabled; enable with: gatehouse tools enable mcp_up_") {
		t.Errorf("status with nothing enabled: %s", x.raw)
	}
	if x := r.modern("bob", "tools/call", `{"name":"gatehouse_status","arguments":{}}`, `{}`); x.verdict() != "ok" || strings.Contains(x.raw, "mcp_up") {
		t.Errorf("bob's status: %s", x.raw)
	}
	if _, err := r.g.Enable(context.Background(), "test", "mcp_up"); err != nil {
		t.Fatal(err)
	}
	if x := r.modern("alice", "tools/call", `{"name":"gatehouse_find","arguments":{"words":"progress counting"}}`, `{}`); !strings.Contains(x.raw, "mcp_up_count") {
		t.Errorf("find: %s", x.raw)
	}
	if x := r.modern("alice", "tools/call", `{"name":"gatehouse_find","arguments":{"words":1}}`, `{}`); string(x.result()["isError"]) != "true" {
		t.Errorf("find with bad arguments: %s", x.raw)
	}
	if x := r.modern("bob", "tools/call", `{"name":"gatehouse_find","arguments":{"words":"echo"}}`, `{}`); strings.Contains(x.raw, "mcp_up_echo") {
		t.Errorf("bob finds %s", x.raw)
	}
}

// TestFloodOfRefusedTokensIsRecorded: what was only counted is on record once the
// flood is over, without another refusal.
func TestFloodOfRefusedTokensIsRecorded(t *testing.T) {
	r := newRig(t, recent, "", "")
	for range 3 * failureBurst {
		r.post("", `{}`, map[string]string{"Authorization": "Bearer guess"})
	}
	r.g.failures.flush()
	total := 0
	for _, e := range r.entries(gate.KindAuthFailure, failureBurst+1) {
		total += max(e.Count, 1)
	}
	if total != 3*failureBurst {
		t.Errorf("%d refusals on record, want %d", total, 3*failureBurst)
	}
}

// TestRemovedCallerHearsNothing: a stream that began under a caller who is no
// longer in the file ends, and says nothing of later changes.
func TestRemovedCallerHearsNothing(t *testing.T) {
	l := newListeners()
	kept, gone := l.add(&gate.Caller{Name: "kept"}), l.add(&gate.Caller{Name: "gone"})
	l.tell(func(who *gate.Caller) (yes, removed bool) { return true, who.Name == "gone" })
	select {
	case <-gone.done:
	default:
		t.Error("the stream of a removed caller goes on")
	}
	if len(gone.changed) != 0 || len(kept.changed) != 1 {
		t.Errorf("told: removed %d, kept %d", len(gone.changed), len(kept.changed))
	}
	l.tell(func(*gate.Caller) (yes, removed bool) { return false, true }) // twice ends once
	l.closeAll()
}

// TestSlowCallerDoesNotHoldUpProgress: offers return at once, whether anybody
// reads or not, and what was taken is written before the end.
func TestSlowCallerDoesNotHoldUpProgress(t *testing.T) {
	block := make(chan struct{})
	w := &slowWriter{block: block, header: http.Header{}}
	m, _ := parseMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}}`))
	offer, stop := relay(&answer{w: w, streams: true}, m)
	for range 3 * progressQueue {
		offer([]byte(`{"progress":1}`))
	}
	close(block)
	stop()
	if n := strings.Count(w.String(), `"progressToken":"t"`); n < progressQueue || n > progressQueue+1 {
		t.Errorf("%d notices written, want the queue's %d", n, progressQueue)
	}
}

// A slowWriter writes nothing until block is closed.
type slowWriter struct {
	strings.Builder
	block  chan struct{}
	header http.Header
}

func (s *slowWriter) Header() http.Header { return s.header }
func (s *slowWriter) WriteHeader(int)     {}
func (s *slowWriter) Flush()              {}
func (s *slowWriter) Write(b []byte) (int, error) {
	<-s.block
	return s.Builder.Write(b)
}
