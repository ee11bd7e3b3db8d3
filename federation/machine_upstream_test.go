package federation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/upstream/upstreamtest/leak"
)

// A played upstream is a server of either era on a loopback address. It holds
// every request it gets to what the machine knows, and misbehaves when told to.
type played struct {
	m      *machine
	id     string
	site   *httptest.Server
	header string  // where its credential stands; "": it has none
	secret string  // what stands there
	issuer *issuer // its calls come with the caller's own token instead; nil: they do not

	closing sync.WaitGroup // connections that are closed behind an answer

	mu       sync.Mutex
	modern   bool
	stream   bool
	listed   map[string]int    // remote name -> version
	sessions map[string]string // id -> whose it is, "" until its first call
	issued   map[string]bool   // every session id of all time
	asked    int               // requests that want an answer
	twist    *twist
}

// A twist is how a server misbehaves at the next request of a leg.
type twist struct {
	leg string // a method; "": every request of every leg
	do  func(*visit)
	met int // how often the leg came while it was armed
}

// A visit is one request.
type visit struct {
	u         *played
	w         http.ResponseWriter
	r         *http.Request
	id        string // raw, "" for a notification
	method    string
	remote    string
	arguments []byte
	order     *order // of a tools/call that was allowed
}

func (u *played) start(m *machine, id string) {
	u.m, u.id = m, id
	u.listed, u.sessions, u.issued = map[string]int{}, map[string]string{}, map[string]bool{}
	for _, remote := range remotes[:3] {
		u.listed[remote] = 1
	}
	u.site = m.serve(u)
}

// arm makes the next request of a leg meet the twist, which disarm takes back.
func (u *played) arm(leg string, do func(*visit)) *twist {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.twist = &twist{leg: leg, do: do}
	return u.twist
}

// disarm reports how often the leg of the twist came.
func (u *played) disarm() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.twist
	u.twist = nil
	if t == nil {
		return 0
	}
	return t.met
}

func (u *played) requests() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked
}

// legs are those of a call, the work last.
func (u *played) legs() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.modern {
		return []string{"tools/call"}
	}
	return []string{"initialize", "notifications/initialized", "tools/call"}
}

func (u *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was cut short
	}
	v := &visit{u: u, w: w, r: r, method: r.Method}
	if r.Method == http.MethodPost {
		var message struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		if err := json.Unmarshal(body, &message); err != nil {
			u.m.broke(10, "server %q got %q: %v", u.id, body, err)
		}
		v.id, v.method, v.remote, v.arguments = string(message.ID), message.Method, message.Params.Name, message.Params.Arguments
	}
	who := u.vet(r, body, v.method)
	if v.method == "tools/call" {
		v.order = u.m.arrived(v, who)
	}
	u.mu.Lock()
	if v.id != "" {
		u.asked++
	}
	do := (*visit).behave
	if t := u.twist; t != nil && (t.leg == v.method || t.leg == "" && v.method != http.MethodDelete) {
		if t.met++; t.met == 1 || t.leg == "" {
			do = t.do
		}
	}
	u.mu.Unlock()
	do(v)
}

// ours are the headers that the gateway sends of its own accord.
var ours = []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version", "Mcp-Session-Id", "User-Agent"}

// vet is invariant 9 for one request. It returns whose token came with it, where
// callers have their own.
func (u *played) vet(r *http.Request, body []byte, method string) (who string) {
	for name, values := range r.Header {
		text := strings.Join(values, " and ")
		switch {
		case name == u.header && text == u.secret && (u.issuer == nil || method != "tools/call"):
		case name == u.header && u.issuer != nil && u.issuer.holder(text) != "":
			who = u.issuer.holder(text)
		case name == u.header || !slices.Contains(ours, name):
			u.m.broke(9, "server %q got the header %s, which is not its own, with %s", u.id, name, method)
		case strings.Contains(text, leak.Mark):
			u.m.broke(9, "server %q got a secret in the header %s, with %s", u.id, name, method)
		}
	}
	if u.header != "" && r.Header.Get(u.header) == "" {
		u.m.broke(9, "server %q got no credential with %s", u.id, method)
	}
	if bytes.Contains(body, []byte(leak.Mark)) || strings.Contains(r.URL.String(), leak.Mark) {
		u.m.broke(9, "server %q got a secret in its %s", u.id, method)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if id := r.Header.Get("Mcp-Session-Id"); id != "" && !u.issued[id] {
		u.m.broke(9, "server %q got a session id that it never issued", u.id)
	}
	return who
}

// owns is invariant 9 for sessions: what one holder has called in is no other's.
func (u *played) owns(session, holder string) (known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	owner, known := u.sessions[session]
	if known && owner != "" && owner != holder {
		u.m.broke(9, "a session of server %q was used by %s, and now by %s", u.id, owner, holder)
	}
	if known {
		u.sessions[session] = holder
	}
	return known
}

// behave answers as a server of the present era should.
func (v *visit) behave() {
	v.u.mu.Lock()
	modern := v.u.modern
	v.u.mu.Unlock()
	if modern {
		v.behaveModern()
	} else {
		v.behaveLegacy()
	}
}

func (v *visit) behaveModern() {
	switch {
	case v.method == http.MethodDelete:
		v.w.WriteHeader(http.StatusMethodNotAllowed)
	case v.id == "":
		v.w.WriteHeader(http.StatusAccepted)
	case v.method == "initialize" || v.r.Header.Get("Mcp-Method") != v.method:
		v.came("refused")
		v.raw(http.StatusBadRequest, `{"jsonrpc":"2.0","id":`+v.id+`,"error":{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"]}}}`)
	default:
		v.work()
	}
}

func (v *visit) behaveLegacy() {
	session := v.r.Header.Get("Mcp-Session-Id")
	v.u.mu.Lock()
	_, open := v.u.sessions[session]
	v.u.mu.Unlock()
	switch {
	case v.method == "initialize":
		v.w.Header().Set("Mcp-Session-Id", v.u.open())
		v.work()
	case v.method == "server/discover":
		v.work()
	case !open:
		v.came("refused")
		v.raw(http.StatusNotFound, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"session not found"}}`)
	case v.method == http.MethodDelete:
		v.u.mu.Lock()
		delete(v.u.sessions, session)
		v.u.mu.Unlock()
		v.w.WriteHeader(http.StatusNoContent)
	case v.id == "":
		v.w.WriteHeader(http.StatusAccepted)
	default:
		if v.order != nil {
			v.u.owns(session, v.order.holder())
		}
		v.work()
	}
}

func (u *played) open() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	id := fmt.Sprintf("%s-session-%d", u.id, len(u.issued))
	u.sessions[id], u.issued[id] = "", true
	return id
}

// work answers what is the same in both eras.
func (v *visit) work() {
	if v.method == "tools/call" {
		v.came("proper")
	}
	v.say(strings.NewReplacer("ID", v.id, "RESULT", v.result()).Replace(`{"jsonrpc":"2.0","id":ID,"result":RESULT}`))
}

// came notes what a call came to, before anybody can be told.
func (v *visit) came(answer string) {
	if v.order != nil {
		v.u.m.mu.Lock()
		v.order.answer = answer
		v.u.m.mu.Unlock()
	}
}

// vendor is a number that no double holds.
const vendor = `9007199254740993.10`

func (v *visit) result() string {
	switch v.method {
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"played","version":"1"}}`
	case "server/discover":
		v.u.mu.Lock()
		defer v.u.mu.Unlock()
		if v.u.modern {
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		}
		return `{"supportedVersions":["2025-11-25"],"capabilities":{"tools":{}}}`
	case "tools/list":
		v.u.mu.Lock()
		defer v.u.mu.Unlock()
		var out []string
		for _, remote := range remotes {
			if version := v.u.listed[remote]; version > 0 {
				out = append(out, definition(remote, version, v.u.m.elsewhere.site.URL))
			}
		}
		return `{"tools":[` + strings.Join(out, ", ") + `]}`
	}
	return `{"content":[{"type":"text","text":"done"}], "structuredContent":` + string(v.arguments) + `,"vendor":` + vendor + `}`
}

// say answers with one message or more, in the server's framing.
func (v *visit) say(messages ...string) {
	v.u.mu.Lock()
	stream := v.u.stream
	v.u.mu.Unlock()
	if !stream && len(messages) == 1 {
		v.raw(http.StatusOK, messages[0])
		return
	}
	var events []byte // in one piece: what comes late may come too late to be seen
	for _, message := range messages {
		events = fmt.Appendf(events, ": a comment\ndata: %s\n\n", message)
	}
	v.w.Header().Set("Content-Type", "text/event-stream")
	v.w.Header().Set("Content-Length", fmt.Sprint(len(events)))
	_, _ = v.w.Write(events) // whoever asked may be gone
}

func (v *visit) raw(status int, body string) {
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	_, _ = io.WriteString(v.w, body) // whoever asked may be gone
}

// looseReplies are replies that are none, by the table of WIRE.
var looseReplies = []string{
	`{"jsonrpc":"2.0","id":"someone-else","result":RESULT}`,
	`{"jsonrpc":"2.0","id":ID,"result":RESULT,"error":{"code":1,"message":"both"}}`,
	`{"jsonrpc":"2.0","id":ID,"result":RESULT,"error":null}`,
	`{"jsonrpc":"2.0","id":ID}`,
	`{"id":ID,"result":RESULT}`,
	`{"jsonrpc":"2.0","id":null,"result":RESULT}`,
	`{"jsonrpc":"2.0","result":RESULT}`,
	`{"jsonrpc":"2.0","id":ID,"result":[RESULT]}`,
	`[{"jsonrpc":"2.0","id":ID,"result":RESULT}]`,
	`{"jsonrpc":"2.0","id":ID,"result":RESULT,"result":RESULT}`,
	`{"jsonrpc":"2.0","id":ID,"result":RESULT}` + "\x00SECOND",
	`{"jsonrpc":"2.0","id":ID,"result":RESULT}` + "\x00LARGE",
	`<html>It works!</html>`,
}

// loose answers with one of them.
func loose(reply string) func(*visit) {
	return func(v *visit) {
		v.came("lost")
		if v.id == "" {
			v.behave() // nothing that answers a notification is read
			return
		}
		text, more, _ := strings.Cut(reply, "\x00")
		text = strings.NewReplacer("ID", v.id, "RESULT", v.result()).Replace(text)
		if v.method == "initialize" {
			v.w.Header().Set("Mcp-Session-Id", v.u.open())
		}
		switch more {
		case "SECOND":
			v.say(text, text)
		case "LARGE":
			v.raw(http.StatusOK, text+strings.Repeat(" ", 2<<20+1-len(text)))
		default:
			v.say(text)
		}
	}
}

// hangUp reads the request and closes the connection.
func hangUp(v *visit) { v.came("lost"); panic(http.ErrAbortHandler) }

// status says no in HTTP's words, and names an address to go to instead.
func status(code int, to string) func(*visit) {
	return func(v *visit) {
		v.came("lost")
		if code/100 == 4 {
			v.came("refused")
		}
		v.w.Header().Set("Location", to)
		v.w.Header().Set("Www-Authenticate", fmt.Sprintf("Bearer resource_metadata=%q", to))
		v.w.WriteHeader(code)
	}
}

// goodbye answers as it should, and closes the connection without having said so.
func goodbye(v *visit) {
	v.u.closing.Add(1)
	defer v.u.closing.Done()
	recorder := httptest.NewRecorder()
	instead := *v
	instead.w = recorder
	instead.behave()
	conn, _, err := http.NewResponseController(v.w).Hijack()
	if err != nil {
		return
	}
	response := recorder.Result()
	response.ContentLength = int64(recorder.Body.Len())
	_ = response.Write(conn) // whoever asked may be gone
	conn.Close()
}

// hang never answers.
func hang(v *visit) { v.came("lost"); <-v.r.Context().Done() }

// slow takes its time, and then answers as it should.
func slow(d time.Duration) func(*visit) {
	return func(v *visit) {
		v.came("lost")
		select {
		case <-time.After(d):
			v.behave()
		case <-v.r.Context().Done():
		}
	}
}

// A parking holds requests until it is told how to go on.
type parking struct {
	here chan struct{}
	exit chan func(*visit)
}

func newParking() *parking {
	return &parking{here: make(chan struct{}, 8), exit: make(chan func(*visit), 8)}
}

func (p *parking) hold(v *visit) {
	v.came("lost")
	p.here <- struct{}{}
	select {
	case do := <-p.exit:
		do(v)
	case <-v.r.Context().Done():
	}
}

// elsewhere is where nobody should ever go.
type elsewhere struct{ site *httptest.Server }

func newElsewhere(m *machine) *elsewhere {
	return &elsewhere{m.serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m.broke(9, "%s %s: a request went where an upstream pointed", r.Method, r.URL.Path)
	}))}
}

// An issuer exchanges the subject tokens of callers (RFC 8693).
type issuer struct {
	url      string
	subjects map[string]string // subject token -> caller; set before it serves

	mu      sync.Mutex
	holders map[string]string // exchanged token -> caller
}

func newIssuer(m *machine) *issuer {
	i := &issuer{subjects: map[string]string{}, holders: map[string]string{}}
	i.url = m.serve(i).URL
	return i
}

func (i *issuer) holder(authorization string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.holders[strings.TrimPrefix(authorization, "Bearer ")]
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := i.subjects[r.PostFormValue("subject_token")]
	if who == "" || r.PostFormValue("audience") != "mine" {
		http.Error(w, "no grant", http.StatusBadRequest)
		return
	}
	token := leak.Secret("exchanged")
	i.mu.Lock()
	i.holders[token] = who
	i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":%q,"issued_token_type":"urn:ietf:params:oauth:token-type:access_token","token_type":"Bearer","expires_in":300}`, token)
}
