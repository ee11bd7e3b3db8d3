package federation

import (
	"net/http"
	"sync"
	"time"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// Bounds on streams that wait for notices.
const (
	maxListeners       = 10_000
	maxCallerListeners = 1_000
	// noticeEvery is the shortest time between two notices on one stream: an
	// operator who enables thirty tools one by one is one change to a client.
	noticeEvery = time.Second
)

// listeners are the open streams that want to hear of changes, of both eras.
type listeners struct {
	mu     sync.Mutex
	closed bool
	open   map[*notices]struct{}
	per    map[gate.CallerName]int
}

// notices is one such stream. changed holds at most one pending notice, so a slow
// reader costs one slot and not a queue.
type notices struct {
	caller  *gate.Caller // as they were when the stream began
	changed chan struct{}
	done    chan struct{} // closed when the stream has to end
	ended   bool          // done is closed; guarded by the listeners' lock
}

// end makes the stream end. The listeners' lock is held.
func (n *notices) end() {
	if !n.ended {
		n.ended = true
		close(n.done)
	}
}

func newListeners() *listeners {
	return &listeners{open: map[*notices]struct{}{}, per: map[gate.CallerName]int{}}
}

// add opens a stream for caller, nil when there are too many.
func (l *listeners) add(caller *gate.Caller) *notices {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.open) >= maxListeners || l.per[caller.Name] >= maxCallerListeners {
		return nil
	}
	n := &notices{caller: caller, changed: make(chan struct{}, 1), done: make(chan struct{})}
	l.open[n] = struct{}{}
	l.per[caller.Name]++
	return n
}

func (l *listeners) remove(n *notices) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, n)
	name := n.caller.Name
	if l.per[name]--; l.per[name] == 0 {
		delete(l.per, name)
	}
}

// closeAll ends every stream, each with the closing words of its era.
func (l *listeners) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	for n := range l.open {
		n.end()
	}
}

// tell marks a change on the streams of those whom it concerns, and ends the
// streams of those who may no longer listen.
func (l *listeners) tell(concerns func(*gate.Caller) (yes, gone bool)) {
	type verdict struct{ yes, gone bool }
	l.mu.Lock()
	defer l.mu.Unlock()
	verdicts := map[*gate.Caller]verdict{}
	for n := range l.open {
		v, known := verdicts[n.caller]
		if !known {
			v.yes, v.gone = concerns(n.caller)
			verdicts[n.caller] = v
		}
		switch {
		case v.gone:
			n.end()
		case v.yes:
			select {
			case n.changed <- struct{}{}:
			default: // one is pending already
			}
		}
	}
}

// catalogChanged is told of every new snapshot. Whoever a new configuration no
// longer knows hears nothing more; a caller with a token of an issuer is known by
// that token, and their view is the one it gave them.
func (g *Gateway) catalogChanged(before, after *catalog.Snapshot) {
	g.news.beat()
	then, now := settingsOf(before).callers, settingsOf(after).callers
	g.listeners.tell(func(who *gate.Caller) (yes, gone bool) {
		if who.AuthenticatedBy == "oidc" {
			return !after.SameViewAs(who, before, who), false
		}
		was, is := then.Named(who.Name), now.Named(who.Name)
		if is == nil {
			return false, true
		}
		return was == nil || !after.SameViewAs(is, before, was), false
	})
}

const (
	listChangedMethod = `"method":"notifications/tools/list_changed"`
	legacyChanged     = `{"jsonrpc":"2.0",` + listChangedMethod + `}`
)

// serveNotices is the GET stream of a legacy session. The newest stream of a
// session is the one that speaks.
func (g *Gateway) serveNotices(w http.ResponseWriter, r *http.Request, who *gate.Caller) {
	ids := r.Header[headerSession]
	if len(ids) == 0 || !accepts(r) {
		methodNotAllowed(w) // there is nothing to listen to without a session
		return
	}
	s := g.sessions.find(ids[0], who.Name)
	if s == nil || len(ids) > 1 {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	n := g.listeners.add(who)
	if n == nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many open streams", http.StatusServiceUnavailable)
		return
	}
	defer g.listeners.remove(n)
	defer s.attach(n)()
	streamHeaders(w)
	w.WriteHeader(http.StatusOK)
	if writeBounded(w, []byte(": listening\n\n"), true) != nil {
		return
	}
	g.follow(w, r, n, s.ctx.Done(), []byte(legacyChanged), func() bool { return s.speaks(n) })
}

// attach makes n the session's stream until the returned function is called.
func (n *session) attach(stream *notices) (detach func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stream = stream
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.stream == stream {
			n.stream = nil
		}
	}
}

func (n *session) speaks(stream *notices) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stream == stream
}

// follow writes notices and comments until the stream has to end. It reports
// whether the end was ours, so that closing words can still be written.
func (g *Gateway) follow(w http.ResponseWriter, r *http.Request, n *notices, over <-chan struct{}, notice []byte, speaks func() bool) bool {
	keepAlive := time.NewTicker(keepAliveEvery)
	defer keepAlive.Stop()
	event := append(append([]byte("event: message\ndata: "), notice...), "\n\n"...)
	for {
		select {
		case <-r.Context().Done():
			return false
		case <-over:
			return true
		case <-n.done:
			return true
		case <-keepAlive.C:
			if writeBounded(w, []byte(": waiting\n\n"), true) != nil {
				return false
			}
		case <-n.changed:
			if speaks() && writeBounded(w, event, true) != nil {
				return false
			}
			if !pause(r, n, over) {
				return r.Context().Err() == nil
			}
		}
	}
}

// pause keeps notices apart. It reports false when the stream has to end.
func pause(r *http.Request, n *notices, over <-chan struct{}) bool {
	timer := time.NewTimer(noticeEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-over:
	case <-n.done:
	}
	return false
}

// subscribe is subscriptions/listen (MCP 2026-07-28, basic/patterns/subscriptions):
// an acknowledgement with what is honoured, then notices, each with the
// subscription's id, then a closing result if it is we who end it.
func (g *Gateway) subscribe(w http.ResponseWriter, r *http.Request, who *gate.Caller, m *message) {
	wanted := m.param("notifications")
	if !rawjson.IsObject(wanted) {
		writeEraError(w, modern, m.id, &rpcError{code: codeInvalidParams, message: "params.notifications is not an object"})
		return
	}
	members, _ := rawjson.Object(wanted) // checked with the whole body
	value, _ := rawjson.Get(members, "toolsListChanged")
	tools := string(value) == "true"
	n := g.listeners.add(who)
	if n == nil {
		w.Header().Set("Retry-After", "10")
		writeError(w, http.StatusServiceUnavailable, m.id, &rpcError{code: codeInternal, message: "too many open streams"})
		return
	}
	defer g.listeners.remove(n)
	honoured := "{}"
	if tools {
		honoured = `{"toolsListChanged":true}`
	}
	meta := `"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(m.id) + `}`
	stream := &answer{w: w, streams: true}
	ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":` + honoured + `,` + meta + `}}`
	if stream.event([]byte(ack)) != nil {
		return
	}
	notice := []byte(`{"jsonrpc":"2.0",` + listChangedMethod + `,"params":{` + meta + `}}`)
	if g.follow(w, r, n, nil, notice, func() bool { return tools }) {
		closing := append(resultHead(nil, m.id), `{"resultType":"complete",`+meta+`}}`...)
		stream.finish(http.StatusOK, closing)
	}
}
