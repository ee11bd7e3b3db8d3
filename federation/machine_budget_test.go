package federation_test

import (
	"fmt"
	"strings"
	"time"
)

// budget is what one server may take in exhaust; it is the least that the
// configuration allows. think is how long a person takes there.
const (
	budget = 100 * time.Millisecond
	think  = 60 * time.Millisecond
)

// exhaust gives one server a small budget and has it hang at one leg, or answer
// each of them slowly. On a busy machine another leg may be the one that is cut:
// what is said must fit what was seen.
func (m *machine) exhaust() {
	a := m.callable(func(*attempt) bool { return true })
	if a == nil {
		return
	}
	a.at.timeout = budget.String()
	m.apply()
	m.exhausted(a)
	a.at.timeout = "20s"
	m.apply()
}

func (m *machine) exhausted(a *attempt) {
	u := a.at.played
	leg, do := pick(m, u.legs()), hang
	if len(u.legs()) > 1 && m.rng.IntN(3) == 0 {
		leg, do = "", slow(think)
	}
	dial := func() *flight { return m.dial(a, "") }
	if !a.at.waived {
		q := m.ask(a)
		if q == nil || q.console {
			return
		}
		time.Sleep(think) // which is charged to nobody
		q.used = true
		dial = func() *flight {
			if q.session == nil {
				return m.dial(a, back(q.state, yes))
			}
			m.respond(q.who, q.session, q.id, yes)
			return q.flight
		}
	}
	m.note("%s calls %s as %s, which hangs at %q", a.who.name, a.tool(), a.nonce, leg)
	m.allow(a)
	t := u.arm(leg, do)
	began := time.Now()
	one := m.next(dial())
	took := time.Since(began)
	m.finished(a, one, "")
	met, verdict := u.disarm(), one.verdict()
	said := string(one.member("result", "content"))
	m.note("%s after %s, met %d times: %s", verdict, took, met, said)
	switch {
	case verdict == "ok" && (met > 1 || t.leg != "" && met > 0):
		m.broke(5, "a budget of %s was not kept: ok after %s", budget, took)
	case verdict == "ok", verdict == "upstream_error":
		return // the leg did not come, or the server had forgotten a session or its era
	}
	for _, part := range []string{"our limit of 100ms is spent", fmt.Sprintf(`server \"%s\"`, a.at.id), " was cut short"} {
		if !strings.Contains(said, part) && !(part == " was cut short" && strings.Contains(said, " was not sent")) {
			m.broke(5, "what ends a call by its budget does not say %q: %s", part, said)
		}
	}
	if t.leg != "" && met > 0 && !strings.Contains(said, strings.TrimPrefix(t.leg, "notifications/")+" was cut short") {
		m.broke(5, "%s hung, and the error says: %s", t.leg, said)
	}
	if took < budget || took > budget+patience/2 {
		m.broke(5, "a budget of %s ended a call after %s", budget, took)
	}
}
