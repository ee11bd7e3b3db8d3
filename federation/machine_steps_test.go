package federation_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/gate"
)

// A move is something that somebody may do.
type move struct {
	name   string
	weight int
	do     func(*machine)
}

var moves = []move{
	{"call", 160, (*machine).call},
	{"answer", 120, (*machine).answer},
	{"list", 90, (*machine).list},
	{"explain", 60, (*machine).explain},
	{"misbehave", 60, (*machine).misbehave},
	{"rush", 30, (*machine).rush},
	{"forge", 40, (*machine).forge},
	{"replay", 40, (*machine).replay},
	{"ambiguous", 30, (*machine).ambiguous},
	{"switch tools", 60, (*machine).switchTools},
	{"change upstream", 50, (*machine).changeUpstream},
	{"import", 40, (*machine).importAny},
	{"bad import", 20, (*machine).badImport},
	{"reload", 40, (*machine).reload},
	{"wait", 15, (*machine).wait},
	{"leave", 10, (*machine).leaveSession},
	{"hang up", 8, (*machine).abandon},
	{"full disk", 6, (*machine).fullDisk},
	{"crash", 5, (*machine).crash},
	{"exhaust", 4, (*machine).exhaust},
}

func (m *machine) choose() move {
	total := 0
	for _, one := range moves {
		total += one.weight
	}
	n := m.rng.IntN(total)
	for _, one := range moves {
		if n -= one.weight; n < 0 {
			return one
		}
	}
	panic("unreachable: n is below the sum")
}

func pick[T any](m *machine, from []T) T { return from[m.rng.IntN(len(from))] }

// call makes a call that may be anybody's of anything.
func (m *machine) call() {
	a := m.attempt(pick(m, m.people), pick(m, m.places), pick(m, remotes))
	if m.rng.IntN(3) > 0 {
		if likely := m.callable(func(*attempt) bool { return true }); likely != nil {
			a = likely
		}
	}
	m.begin(a)
}

// attempt makes up a call of a tool, in either era.
func (m *machine) attempt(p *person, at *place, remote string) *attempt {
	m.nonces++
	a := &attempt{who: p, at: at, remote: remote, nonce: fmt.Sprintf("n%d", m.nonces)}
	a.arguments = m.arguments(a.nonce)
	if m.rng.IntN(2) == 0 {
		a.elicits = m.rng.IntN(6) > 0
		return a
	}
	a.session = m.session(p)
	a.elicits = a.session.elicits
	return a
}

// session is one of p's, or a new one.
func (m *machine) session(p *person) *session {
	if len(p.sessions) < 2 || m.rng.IntN(20) == 0 {
		return m.connect(p, m.rng.IntN(4) > 0)
	}
	return pick(m, p.sessions[len(p.sessions)-2:])
}

// callable is an attempt that nothing but a person can stop, nil when there is none.
func (m *machine) callable(fits func(*attempt) bool) *attempt {
	var all []*attempt
	for _, p := range m.people {
		for _, at := range m.places {
			for _, remote := range remotes {
				a := &attempt{who: p, at: at, remote: remote}
				if reason(p, at, remote) == "" && (at.played.issuer == nil || p.granted) && fits(a) {
					all = append(all, a)
				}
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	a := pick(m, all)
	return m.attempt(a.who, a.at, a.remote)
}

// arguments are bytes that do not survive a decoder, with a nonce among them.
func (m *machine) arguments(nonce string) string {
	members := []string{`"nonce":"` + nonce + `"`}
	pool := []string{`"n":9007199254740993`, `"f" : 1.10`, `"e":1E400`, `"z":-0`, `"d":0.1000000000000000055`, `"s":"\u003c\/\u00E9 é <&>"`,
		`"k":{"b":[1, 2 ,{"a":null}],"a":true}`, `"":""`, `"long":123456789012345678901234567890`, "\"tab\":\t[ ]"}
	for _, i := range m.rng.Perm(len(pool))[:m.rng.IntN(4)] {
		members = append(members, pool[i])
	}
	m.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return pick(m, []string{"{", "{ ", "{\t"}) + strings.Join(members, pick(m, []string{",", ", ", " ,\t"})) + pick(m, []string{"}", " }"})
}

// begin makes a call and holds its end, or its question, to the books.
func (m *machine) begin(a *attempt) {
	why := reason(a.who, a.at, a.remote)
	m.note("%s calls %s as %s: %q", a.who.name, a.tool(), a.nonce, why)
	switch {
	case why != "":
		m.refused(a, m.next(m.dial(a, "")), why)
	case !a.at.waived:
		m.ask(a)
	default:
		m.allow(a)
		m.finished(a, m.next(m.dial(a, "")), m.outcome(a))
	}
}

// outcome is the verdict of an allowed call that nothing comes in the way of.
func (m *machine) outcome(a *attempt) string {
	if a.at.played.issuer != nil && !a.who.granted {
		return "not_sent"
	}
	return "ok"
}

// refused holds a refusal to its one reason. That nothing was sent, arrived sees.
func (m *machine) refused(a *attempt, one message, why string) {
	m.count("refused")
	if v := one.verdict(); v != "refused" {
		m.broke(2, "%s by %s is %q, and should be refused (%s): %s", a.tool(), a.who.name, v, why, one)
	}
	if told := one.text("error", "data", "gatehouse/reason"); a.who.admin && told != why || !a.who.admin && told != "" {
		m.broke(6, "%s was refused to %s because of %q, and the reason is %q: %s", a.tool(), a.who.name, told, why, one)
	}
}

// nothing holds the end of a call that nobody agreed to.
func (m *machine) nothing(a *attempt, one message) {
	m.count("declined")
	if v := one.verdict(); v != "refused" && v != "declined" {
		m.broke(2, "nobody agreed to %s of %s, and it is %q: %s", a.tool(), a.who.name, v, one)
	}
}

// finished holds the end of an allowed call to what the upstream did. want is its
// verdict where that is known beforehand; a server that left an era or a session
// behind may refuse a call once.
func (m *machine) finished(a *attempt, one message, want string) {
	m.mu.Lock()
	o := m.orders[a.nonce]
	o.told = one.verdict()
	answer, told := o.answer, o.told
	m.mu.Unlock()
	m.note("%s was answered %q and is %q", a.nonce, answer, told)
	switch {
	case answer == "proper" && told == "ok":
		if got := string(one.member("result", "structuredContent")); got != a.arguments {
			m.broke(10, "the upstream answered %s, and %s came back", a.arguments, got)
		}
		if got := string(one.member("result", "vendor")); got != vendor {
			m.broke(10, "the upstream answered %s, and %s came back", vendor, got)
		}
	case answer == "refused" && told == "upstream_error":
	case answer == "lost" && told == "outcome_unknown":
		m.count("lost")
	case answer == "" && (told == "not_sent" || told == "cancelled"):
	case answer == "" && told == "outcome_unknown" && a.cutOff: // what was written, nobody has read
	case answer == "lost" && told == "ok":
		m.broke(8, "a reply that was none is believed: %s", one)
	default:
		m.broke(4, "the upstream's answer was %q, and %s is %q: %s", answer, a.tool(), told, one)
	}
	if want != "" && told != want && !(want == "ok" && answer == "refused") {
		m.broke(6, "%s by %s is %q, want %q: %s", a.tool(), a.who.name, told, want, one)
	}
}

// ask makes a call that a person has to agree to.
func (m *machine) ask(a *attempt) *asking {
	q := &asking{attempt: a, version: a.at.known[a.remote].version, class: a.at.class, zone: a.who.inZone(), until: m.now().Add(5 * time.Minute)}
	channel := m.channelOf(a)
	q.console = channel == "console"
	q.flight = m.dial(a, "")
	if channel == "console" && a.session != nil {
		if q.number = m.waiting(a); q.number == 0 {
			m.broke(2, "%s waits for the console, and no question is there: %s", a.tool(), m.next(q.flight))
			return nil
		}
		m.open = append(m.open, q)
		return q
	}
	one := m.next(q.flight)
	q.state, q.id = one.text("result", "requestState"), one.text("id")
	switch {
	case channel == "":
		if one["error"] == nil && one.verdict() != "refused" || q.state != "" {
			m.broke(2, "nobody can be asked about %s, and the answer is %s", a.tool(), one)
		}
		return nil
	case a.session != nil && one.text("method") != "elicitation/create", a.session == nil && q.state == "",
		a.session == nil && !q.console && one.text("result", "inputRequests", "approval", "method") != "elicitation/create":
		m.broke(2, "%s asks nobody about %s: %s", a.who.name, a.tool(), one)
		return nil
	case a.session == nil:
		q.flight = nil
	}
	if q.console {
		if q.number = m.waiting(a); q.number == 0 {
			m.broke(2, "no question about %s is at the console", a.tool())
			return nil
		}
	}
	m.open = append(m.open, q)
	return q
}

// waiting is the number of the question about a at the console, once it is there.
func (m *machine) waiting(a *attempt) uint64 {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		questions, err := m.api.Approvals(m.t.Context())
		if err != nil {
			m.t.Fatal(err)
		}
		for _, q := range questions {
			if strings.Contains(q.Message, `"`+a.nonce+`"`) {
				return q.Number
			}
		}
	}
	return 0
}

// forget drops what is over, and the oldest of what is many.
func (m *machine) forget() {
	keep := m.open[:0]
	for i, q := range m.open {
		switch {
		case q.used && q.session != nil:
		case i < len(m.open)-20:
			if q.flight != nil {
				q.flight.hangUp()
			}
		default:
			keep = append(keep, q)
		}
	}
	m.open = keep
}

// edge is how near to its deadline no question is touched.
const edge = 30 * time.Second

// asked is one of the questions that fit, nil when there is none.
func (m *machine) asked(fits func(*asking) bool) *asking {
	m.forget()
	var some []*asking
	for _, q := range m.open {
		// The gateway's deadline is a moment after the one in the books.
		if left := q.until.Sub(m.now()); -edge < left && left < edge {
			m.moved.Add(int64(2 * edge))
		}
		if fits(q) {
			some = append(some, q)
		}
	}
	if len(some) == 0 {
		return nil
	}
	return pick(m, some)
}

// answer gives one open question an answer, of whatever kind.
func (m *machine) answer() {
	q := m.asked(func(q *asking) bool { return !q.used })
	if q == nil {
		if a := m.callable(func(a *attempt) bool { return !a.at.waived }); a != nil {
			m.begin(a)
		}
		return
	}
	switch {
	case q.console && q.said == "":
		m.decide(q)
	case q.console:
		m.comeBack(q)
	default:
		if q.session != nil {
			m.foreignAnswers(q)
		}
		answer := yes
		if m.rng.IntN(2) == 0 {
			answer = pick(m, answers)
		}
		m.reply(q, answer)
	}
}

// reply is what the caller's client says.
func (m *machine) reply(q *asking, answer string) {
	if q.session == nil && m.rng.IntN(8) == 0 { // it comes back and says nothing
		one := m.next(m.dial(q.attempt, back(q.state, "")))
		if m.stands(q) != (one.text("result", "requestState") != "") {
			m.broke(2, "%s came back without an answer about %s: %s", q.who.name, q.tool(), one)
		}
		return
	}
	good := answer == yes && m.stands(q)
	m.note("%s says %s about %s: %v", q.who.name, answer, q.nonce, good)
	if good {
		m.allow(q.attempt)
	}
	// Where the question is not the caller's or the table's of now, no answer counts.
	q.used = good || q.session != nil || q.at.class == q.class && q.who.inZone() == q.zone
	var one message
	if q.session != nil {
		if status := m.respond(q.who, q.session, q.id, answer); status != http.StatusAccepted {
			m.broke(2, "an answer was answered with %d", status)
		}
		one = m.next(q.flight)
	} else {
		one = m.next(m.dial(q.attempt, back(q.state, answer)))
	}
	if !good {
		m.nothing(q.attempt, one)
		return
	}
	m.count("approved")
	m.finished(q.attempt, one, m.outcome(q.attempt))
}

// foreignAnswers say yes to q where it was not asked, or by somebody else, or in
// two ways at once. None of it counts: arrived sees to that.
func (m *machine) foreignAnswers(q *asking) {
	switch m.rng.IntN(5) {
	case 0:
		m.respond(q.who, m.session(q.who), "q-"+q.id, yes)
	case 1:
		other := pick(m, m.people)
		if s := m.session(other); s != q.session {
			m.respond(other, s, q.id, yes)
		}
	case 2:
		if other := pick(m, m.people); other != q.who {
			if status := m.respond(other, q.session, q.id, yes); status != http.StatusNotFound {
				m.broke(9, "%s is answered with %d in a session of %s", other.name, status, q.who.name)
			}
		}
	case 3:
		if status := m.respond(q.who, q.session, q.id, `{"action":"accept","content":{"decision":"approve","decision":"deny"}}`); status != http.StatusBadRequest {
			m.broke(10, "a key that stands twice is answered with %d", status)
		}
	}
}

// decide has somebody at the console answer q.
func (m *machine) decide(q *asking) {
	var by *person
	api := m.api
	if m.rng.IntN(4) > 0 {
		by = pick(m, m.people)
		api = api.As(m.g.Caller(gate.CallerName(by.name)))
	}
	entitled := by != q.who && m.now().Before(q.until) && q.at.known[q.remote].version == q.version && q.at.class == q.class
	if by == nil {
		why := reason(operator, q.at, q.remote)
		entitled = entitled && why == ""
	} else {
		entitled = entitled && reason(by, q.at, q.remote) == ""
	}
	approve := m.rng.IntN(3) > 0
	good := entitled && approve && m.stands(q)
	if good {
		m.allow(q.attempt)
	}
	err := api.Decide(m.t.Context(), q.number, approve)
	m.note("the console says %v about %s: %v", approve, q.nonce, err)
	if (err == nil) != entitled {
		m.broke(2, "question %d about %s: entitled %v, and %v", q.number, q.tool(), entitled, err)
	}
	if err != nil {
		return
	}
	q.said = map[bool]string{true: "yes", false: "no"}[approve]
	if q.session != nil {
		m.released(q, good, m.next(q.flight))
	}
}

var operator = &person{name: "operator", admin: true, zone: "local"}

// comeBack has the caller return to what was decided.
func (m *machine) comeBack(q *asking) {
	good := q.said == "yes" && m.stands(q)
	if good {
		m.allow(q.attempt)
	}
	m.released(q, good, m.next(m.dial(q.attempt, back(q.state, ""))))
}

func (m *machine) released(q *asking, good bool, one message) {
	q.used = true
	if !good {
		m.nothing(q.attempt, one)
		return
	}
	m.count("approved")
	m.finished(q.attempt, one, m.outcome(q.attempt))
}

// replay says yes once more, or twice at the same time.
func (m *machine) replay() {
	if m.rng.IntN(3) == 0 {
		m.twice()
		return
	}
	if q := m.asked(func(q *asking) bool { return q.used && q.session == nil && !q.console }); q != nil {
		m.note("%s says yes again about %s", q.who.name, q.nonce)
		m.nothing(q.attempt, m.next(m.dial(q.attempt, back(q.state, yes))))
	}
}

// twice redeems one approval by two requests at once.
func (m *machine) twice() {
	q := m.asked(func(q *asking) bool { return !q.used && q.session == nil && !q.console && m.stands(q) })
	if q == nil || m.outcome(q.attempt) != "ok" {
		return
	}
	m.note("%s says yes twice at once about %s", q.who.name, q.nonce)
	m.allow(q.attempt)
	q.used = true
	first, second := m.dial(q.attempt, back(q.state, yes)), m.dial(q.attempt, back(q.state, yes))
	one, other := m.next(first), m.next(second)
	if v := one.verdict(); v == "refused" || v == "declined" {
		one, other = other, one
	}
	m.finished(q.attempt, one, "ok")
	m.nothing(q.attempt, other)
}

// forge brings a good state for a call that it was not made for.
func (m *machine) forge() {
	q := m.asked(func(q *asking) bool { return q.session == nil && !q.console })
	if q == nil {
		return
	}
	a, state := *q.attempt, q.state
	switch m.rng.IntN(4) {
	case 0:
		a.arguments = strings.Replace(a.arguments, "{", "{ ", 1)
	case 1:
		if a.who = pick(m, m.people); a.who == q.who {
			return
		}
	case 2:
		if a.remote = pick(m, remotes); a.remote == q.remote {
			return
		}
	default:
		b := []byte(state)
		b[m.rng.IntN(len(b)-1)] ^= 1 // of the last character some bits may say nothing
		state = string(b)
	}
	m.note("forged: %s for %s", q.nonce, a.tool())
	m.nothing(&a, m.next(m.dial(&a, back(state, yes))))
}

// ambiguous sends what two parsers would read differently, or what the schema
// does not allow, of a tool that could be called.
func (m *machine) ambiguous() {
	a := m.callable(func(a *attempt) bool { return a.at.waived })
	if a == nil {
		return
	}
	m.note("%s calls %s with what is not clear", a.who.name, a.tool())
	switch m.rng.IntN(4) {
	case 0:
		a.arguments = strings.Replace(a.arguments, "{", `{"x":{"path":"a","path":"b"},`, 1)
	case 1:
		a.arguments = `{"nonce":"` + a.nonce + `","nonce":"other"}`
	case 2:
		a.arguments = `{"nonce":5}`
		if one := m.next(m.dial(a, "")); one.verdict() != "refused" {
			m.broke(2, "arguments against the schema are answered with %s", one)
		}
		return
	case 3:
		stranger := &person{name: "nobody", token: "gh_wrong"}
		if f := m.over(m.post(stranger, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)); f.status != http.StatusUnauthorized && f.status != http.StatusTooManyRequests {
			m.broke(2, "a stranger is answered with %d", f.status)
		}
		return
	}
	f := m.dial(a, "")
	if one := m.next(f); one["error"] == nil || m.over(f).status != http.StatusBadRequest {
		m.broke(10, "a key that stands twice is answered with %s", one)
	}
}

// rush makes several calls at once.
func (m *machine) rush() {
	type running struct {
		*attempt
		why    string
		flight *flight
	}
	var all []running
	for range 2 + m.rng.IntN(5) {
		a := m.callable(func(a *attempt) bool { return a.at.waived })
		if a == nil || m.rng.IntN(4) == 0 {
			a = m.attempt(pick(m, m.people), pick(m, m.places), pick(m, remotes))
		}
		why := reason(a.who, a.at, a.remote)
		if why == "" && !a.at.waived {
			continue
		}
		if why == "" {
			m.allow(a)
		}
		all = append(all, running{a, why, m.dial(a, "")})
	}
	for _, one := range all {
		if end := m.next(one.flight); one.why != "" {
			m.refused(one.attempt, end, one.why)
		} else {
			m.finished(one.attempt, end, m.outcome(one.attempt))
		}
	}
}

// list holds what a person is shown to the books, in one era or the other.
func (m *machine) list() {
	p := pick(m, m.people)
	var s *session
	if m.rng.IntN(2) == 0 {
		s = m.session(p)
	}
	before := m.requests()
	listed := m.listed(p, s)
	if after := m.requests(); after != before {
		m.broke(7, "tools/list asked upstream %d times", after-before)
	}
	for _, at := range m.places {
		for _, remote := range remotes {
			title, shown := listed[toolName(at, remote)]
			why := reason(p, at, remote)
			if shown != (why == "") {
				m.broke(6, "%s is listed for %s: %v; against it speaks %q", toolName(at, remote), p.name, shown, why)
			}
			if shown && why == "" && title != fmt.Sprintf("version %d", at.known[remote].version) {
				m.broke(7, "%s is listed as %q, and was imported in version %d", toolName(at, remote), title, at.known[remote].version)
			}
			delete(listed, toolName(at, remote))
		}
	}
	for name := range listed {
		m.broke(6, "%s is listed, and there is no such tool", name)
	}
	m.look()
}

func (m *machine) requests() (n int) {
	for _, at := range m.places {
		n += at.played.requests()
	}
	return n
}

// explain asks for the reasons of a person and every tool.
func (m *machine) explain() {
	p := pick(m, m.people)
	for _, at := range m.places {
		for _, remote := range remotes {
			said, err := m.api.Explain(m.t.Context(), toolName(at, remote), p.name)
			if err != nil {
				m.t.Fatal(err)
			}
			if why := reason(p, at, remote); string(said.Reason) != why || said.Offered != (why == "") {
				m.broke(6, "%s for %s is explained by %q, and the reason is %q", toolName(at, remote), p.name, said.Reason, why)
			}
		}
	}
}

// switchTools enables or disables a tool.
func (m *machine) switchTools() {
	at, remote := pick(m, m.places), pick(m, remotes)
	if m.rng.IntN(4) == 0 {
		m.disable(at, remote)
	} else {
		m.enable(at, remote)
	}
}

func (m *machine) enable(at *place, remote string) {
	k := at.known[remote]
	_, err := m.api.Enable(m.t.Context(), []string{toolName(at, remote)})
	m.note("enable %s: %v", toolName(at, remote), err)
	// One that is switched off with its server can be enabled all the same.
	able := k != nil && (at.state(k) == "server_disabled" || at.state(k) == "disabled" || at.state(k) == "changed" || at.state(k) == "enabled")
	if (err == nil) != able {
		m.broke(7, "enable %s: able %v, and %v", toolName(at, remote), able, err)
	}
	if able && err == nil {
		k.pin, k.pinnedAt = k.version, at.path
	}
}

func (m *machine) disable(at *place, remote string) {
	k := at.known[remote]
	_, err := m.api.Disable(m.t.Context(), []string{toolName(at, remote)})
	m.note("disable %s: %v", toolName(at, remote), err)
	if (err == nil) != (k != nil) {
		m.broke(7, "disable %s: known %v, and %v", toolName(at, remote), k != nil, err)
	}
	if k != nil {
		k.pin = 0
	}
}

// changeUpstream has a server change what it lists or how it speaks.
func (m *machine) changeUpstream() {
	at, remote := pick(m, m.places), pick(m, remotes)
	u := at.played
	u.mu.Lock()
	defer u.mu.Unlock()
	switch n := m.rng.IntN(10); {
	case n == 0 && u.issuer == nil:
		u.modern = !u.modern
		clear(u.sessions)
	case n == 1:
		u.stream = !u.stream
	case n == 2:
		clear(u.sessions)
	case u.listed[remote] > 0 && m.rng.IntN(4) == 0:
		u.listed[remote] = -u.listed[remote]
	case u.listed[remote] < 0:
		u.listed[remote] = -u.listed[remote]
	default:
		u.listed[remote]++
	}
	m.note("server %q lists %v, modern %v", at.id, u.listed, u.modern)
}

func (m *machine) importAny() {
	at := pick(m, m.places)
	if m.rng.IntN(4) == 0 {
		if _, err := m.api.Import(m.t.Context(), []string{at.id}, false, true); err != nil {
			m.broke(7, "a dry run of %q: %v", at.id, err)
		}
		m.look()
		return
	}
	m.importFrom(at)
}

// importFrom takes over what a server lists now.
func (m *machine) importFrom(at *place) {
	reports, err := m.api.Import(m.t.Context(), []string{at.id}, false, false)
	if err != nil {
		m.t.Fatal(err)
	}
	m.note("import %q: %s", at.id, reports[0].Summary())
	if (reports[0].Refusal == "") != (at.enabled && at.class != "") {
		m.broke(7, "import of %q: %s", at.id, reports[0].Summary())
	}
	if reports[0].Refusal == "" {
		at.imported()
	}
	m.look()
}

// imported takes into the books what the server lists.
func (at *place) imported() {
	at.played.mu.Lock()
	defer at.played.mu.Unlock()
	for _, remote := range remotes {
		k, version := at.known[remote], at.played.listed[remote]
		switch {
		case version > 0 && k == nil:
			at.known[remote] = &known{version: version}
		case version > 0:
			k.version, k.vanished = version, false
		case k != nil:
			k.vanished = true
		}
	}
}

// badImport meets a server that misbehaves while it is listed.
func (m *machine) badImport() {
	at := pick(m, m.places)
	if !at.enabled || at.class == "" {
		return
	}
	leg := "tools/list"
	if len(at.played.legs()) > 1 && m.rng.IntN(3) == 0 {
		leg = "initialize"
	}
	reply := pick(m, looseReplies)
	do := loose(reply)
	if m.rng.IntN(4) == 0 {
		do, reply = status(pick(m, []int{301, 302, 307, 308, 401, 403, 500}), m.elsewhere.site.URL+"/mcp"), "a status"
	}
	before, _ := m.g.State.Upstream().LastContact(gate.ServerID(at.id))
	at.played.arm(leg, do)
	reports, err := m.api.Import(m.t.Context(), []string{at.id}, false, false)
	met := at.played.disarm()
	if err != nil {
		m.t.Fatal(err)
	}
	m.note("import %q, %s at %s %d times: %s", at.id, reply, leg, met, reports[0].Summary())
	after, _ := m.g.State.Upstream().LastContact(gate.ServerID(at.id))
	good := reports[0].Refusal == ""
	switch {
	case good && met == 1: // had it been asked again, perhaps in another era, that answer would count
		m.broke(8, "import %q took %q for a reply: %s", at.id, reply, reports[0].Summary())
	case good != (after != before):
		m.broke(8, "import %q came to %q, and the contact %v became %v", at.id, reports[0].Summary(), before, after)
	}
	if good {
		at.imported()
	}
	m.look()
}

// reload puts another file into force.
func (m *machine) reload() {
	m.note("reload")
	m.edit()
	m.apply()
}

// edit changes one thing of the file, and returns what takes it back.
func (m *machine) edit() (undo func()) {
	at, p := pick(m, m.places), pick(m, m.people)
	wasAt, was, channel := *at, *p, m.channel
	switch m.rng.IntN(8) {
	case 0:
		at.class = pick(m, append(slices.Clone(classes), "", "public_content", "public_content", "editor_content"))
	case 1:
		at.enabled = m.rng.IntN(4) > 0
	case 2, 3:
		at.waived = m.rng.IntN(2) > 0
	case 4:
		p.admin = m.rng.IntN(4) > 0
	case 5:
		p.zone = pick(m, zones)
	case 6:
		p.groups = pick(m, [][]string{nil, nil, {}, {"mcp_old"}, {"mcp_new", "mcp_mine"}, {"mcp_bare", "mcp_old"}})
	case 7:
		if m.channel = pick(m, channels); m.rng.IntN(3) == 0 {
			at.path = pick(m, []string{"/mcp", "/mcp", "/v2/mcp"})
		}
	}
	return func() {
		at.class, at.enabled, at.waived, at.path = wasAt.class, wasAt.enabled, wasAt.waived, wasAt.path
		p.admin, p.zone, p.groups, m.channel = was.admin, was.zone, was.groups, channel
	}
}

func (m *machine) apply() {
	m.write()
	reply, err := m.api.Reload(m.t.Context(), "")
	if err != nil || len(reply.Problems) > 0 {
		m.t.Fatalf("reload: %v, %q", err, reply.Problems)
	}
}

// wait lets time pass, so that questions expire.
func (m *machine) wait() {
	d := time.Duration(m.rng.IntN(200)) * time.Second
	m.note("%s pass", d)
	m.moved.Add(int64(d))
}

// leaveSession ends a session of the 2025 era, and the questions in it.
func (m *machine) leaveSession() {
	p := pick(m, m.people)
	if len(p.sessions) == 0 {
		return
	}
	s := pick(m, p.sessions)
	m.note("%s leaves a session", p.name)
	m.leave(p, s)
	p.sessions = slices.DeleteFunc(p.sessions, func(other *session) bool { return other == s })
	m.open = slices.DeleteFunc(m.open, func(q *asking) bool {
		if q.session != s {
			return false
		}
		if !q.used {
			m.nothingOrGone(q)
		}
		return true
	})
}

// nothingOrGone is the end of a call whose session is over.
func (m *machine) nothingOrGone(q *asking) {
	if v := m.next(q.flight).verdict(); v != "refused" && v != "declined" && v != "cancelled" {
		m.broke(2, "the session was left, and %s is %q", q.tool(), v)
	}
}

// misbehave has an upstream do something else than to answer, at one leg of a call.
func (m *machine) misbehave() {
	a := m.callable(func(a *attempt) bool { return a.at.waived })
	if a == nil {
		return
	}
	u := a.at.played
	leg := "tools/call"
	if legs := u.legs(); m.rng.IntN(3) == 0 {
		leg = pick(m, legs)
	}
	reply := pick(m, looseReplies)
	do, what := loose(reply), reply
	to := pick(m, []string{m.elsewhere.site.URL + "/mcp", pick(m, m.places).played.site.URL + "/mcp"})
	switch m.rng.IntN(8) {
	case 0, 1:
		do, what = goodbye, "goodbye"
	case 2:
		if do, what = hangUp, "hang up"; leg != "tools/call" && m.rng.IntN(4) > 0 {
			leg = "tools/call" // before it, a pause and another try follow
		}
	case 3:
		code := pick(m, []int{301, 302, 303, 307, 308, 400, 401, 403, 404, 429, 500})
		do, what = status(code, to), fmt.Sprint(code)
	case 4:
		do, what = status(pick(m, []int{307, 308}), to), "307 or 308"
	}
	a.cutOff = what == "goodbye" && leg != "tools/call"
	before, _ := m.g.State.Upstream().LastContact(gate.ServerID(a.at.id))
	u.arm(leg, do)
	m.note("%s calls %s as %s, where %s follows at %s", a.who.name, a.tool(), a.nonce, what, leg)
	m.allow(a)
	one := m.next(m.dial(a, ""))
	u.closing.Wait()
	met := u.disarm()
	m.finished(a, one, "")
	after, _ := m.g.State.Upstream().LastContact(gate.ServerID(a.at.id))
	if (one.verdict() == "ok") != (after != before) {
		m.broke(8, "the call is %q, and the contact %v became %v", one.verdict(), before, after)
	}
	if leg == "initialize" && met == 1 && what == reply && one.verdict() != "not_sent" {
		m.broke(8, "%q was taken for a handshake: %s", reply, one)
	}
}

// abandon has a caller give up, or be cut off, while the call is under way. It
// has an outcome all the same.
func (m *machine) abandon() {
	a := m.callable(func(a *attempt) bool { return a.at.waived })
	if a == nil {
		return
	}
	leg := pick(m, a.at.played.legs())
	parking := newParking()
	a.at.played.arm(leg, parking.hold)
	defer a.at.played.disarm()
	m.note("%s gives up %s as %s at %s", a.who.name, a.tool(), a.nonce, leg)
	m.allow(a)
	f := m.dial(a, "")
	select {
	case <-parking.here:
	case one := <-f.messages: // a kept session has no handshake
		m.finished(a, one, "ok")
		return
	}
	switch {
	case a.session != nil && m.rng.IntN(2) == 0:
		m.over(m.legacy(a.who, a.session, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, a.session.calls)))
	case a.session != nil:
		f.hangUp() // which is no cancel in that era
		parking.exit <- (*visit).behave
	default:
		f.hangUp()
	}
	m.over(f)
	m.apply() // its record takes a late outcome along
	for began := time.Now(); !m.disk.isSettled(a.nonce); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			m.broke(3, "the caller of %s hung up, and there is no outcome", a.nonce)
			return
		}
	}
}

// fullDisk has people go on while the ledger cannot be written.
func (m *machine) fullDisk() {
	m.note("the disk is full")
	m.disk.fill(true)
	for range 1 + m.rng.IntN(3) {
		m.onFullDisk()
	}
	m.disk.fill(false)
	m.note("the disk has room")
	m.look()
	m.apply() // the first write finds out that there is room again
	if a := m.callable(func(a *attempt) bool { return a.at.waived }); a != nil {
		m.begin(a)
	}
}

func (m *machine) onFullDisk() {
	switch m.rng.IntN(4) {
	case 0:
		at, remote := pick(m, m.places), pick(m, remotes)
		if k := at.known[remote]; k != nil && at.state(k) == "disabled" || k != nil && at.state(k) == "changed" {
			if _, err := m.api.Enable(m.t.Context(), []string{toolName(at, remote)}); err == nil {
				m.broke(3, "%s was enabled, which is nowhere on record", toolName(at, remote))
			}
		}
	case 1:
		undo := m.edit()
		m.write()
		if _, err := m.api.Reload(m.t.Context(), ""); err == nil {
			m.broke(3, "a file came into force, which is nowhere on record")
		}
		undo()
		m.write()
	case 2:
		if q := m.asked(func(q *asking) bool { return !q.used && q.session == nil && !q.console && m.stands(q) }); q != nil {
			if v := m.next(m.dial(q.attempt, back(q.state, yes))).verdict(); v != "refused" {
				m.broke(3, "a yes that cannot be put on record ends in %q", v)
			}
		}
	default:
		if a := m.callable(func(*attempt) bool { return true }); a != nil {
			if one := m.next(m.dial(a, "")); one["error"] == nil && one.verdict() != "refused" {
				m.broke(3, "a call that cannot be put on record ends in %s", one)
			}
		}
	}
}
