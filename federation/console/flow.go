package console

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

const (
	// flowMinutes is how far back the flow is known: one day.
	flowMinutes = 24 * 60
	// maxCounted bounds how far back the first look goes.
	maxCounted = 200_000
	// maxLatencies bounds the times that are kept to say what is usual.
	maxLatencies = 20_000
	// maxReasons bounds how many reasons are told apart within a minute.
	maxReasons = 64
)

// A flow counts the calls of the last day by the minute. It reads the record,
// each time from where it stopped, so that a look costs what is new.
type flow struct {
	mu      sync.Mutex
	next    uint64 // number of the entry to read next; 0: nothing was read yet
	minutes map[int64]*minute
	times   []latency // oldest first
}

// A minute is what ended within one.
type minute struct {
	calls   map[cell]int
	reasons map[string]int
}

type cell struct {
	server  gate.ServerID
	verdict gate.Verdict
}

// A latency is how long the requests of one call took together.
type latency struct {
	at     time.Time
	server gate.ServerID
	took   time.Duration
}

func newFlow() *flow { return &flow{minutes: map[int64]*minute{}} }

// look reads what is new in the record and returns the picture at now.
func (f *flow) look(dir string, now time.Time) (*picture, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == 0 {
		start, err := startOfDay(dir, now.Add(-flowMinutes*time.Minute))
		if err != nil {
			return nil, err
		}
		f.next = start
	}
	err := ledger.Read(dir, f.next, func(_ []byte, e gate.Entry) error {
		f.next = e.Number + 1
		f.count(&e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.forget(now)
	p := &picture{now: now, minutes: make(map[int64]minute, len(f.minutes)), times: slices.Clone(f.times)}
	for at, m := range f.minutes {
		p.minutes[at] = minute{maps.Clone(m.calls), maps.Clone(m.reasons)}
	}
	return p, nil
}

// startOfDay is the number of an entry at or before a time, or of the earliest
// that is looked at.
func startOfDay(dir string, since time.Time) (uint64, error) {
	last, err := lastEntry(dir)
	if err != nil {
		return 0, err
	}
	for window := uint64(firstWindow); ; window *= 4 {
		if last <= window {
			return 1, nil
		}
		from, at := last-window, time.Time{}
		err := ledger.Read(dir, from, func(_ []byte, e gate.Entry) error {
			at = e.Time
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return 0, err
		}
		if at.Before(since) || window >= maxCounted {
			return from, nil
		}
	}
}

// count takes in one entry: how a call ended, or that it was not made.
func (f *flow) count(e *gate.Entry) {
	if e.Kind != gate.KindOutcome && e.Kind != gate.KindDenied {
		return
	}
	at := e.Time.Unix() / 60
	m := f.minutes[at]
	if m == nil {
		m = &minute{map[cell]int{}, map[string]int{}}
		f.minutes[at] = m
	}
	n := max(e.Count, 1)
	m.calls[cell{e.Server, e.Verdict}] += n
	if e.Kind == gate.KindDenied && (m.reasons[e.Reason] > 0 || len(m.reasons) < maxReasons) {
		m.reasons[e.Reason] += n
	}
	if e.Kind != gate.KindOutcome || len(e.Legs) == 0 {
		return
	}
	l := latency{at: e.Time, server: e.Server}
	for _, leg := range e.Legs {
		l.took += leg.Took
	}
	f.times = append(f.times, l)
	if len(f.times) > maxLatencies {
		f.times = slices.Delete(f.times, 0, len(f.times)-maxLatencies)
	}
}

func (f *flow) forget(now time.Time) {
	oldest := now.Unix()/60 - flowMinutes
	maps.DeleteFunc(f.minutes, func(at int64, _ *minute) bool { return at < oldest })
	keep := 0
	for keep < len(f.times) && f.times[keep].at.Unix()/60 < oldest {
		keep++
	}
	f.times = slices.Delete(f.times, 0, keep)
}

// A picture is the flow at one moment.
type picture struct {
	now     time.Time
	minutes map[int64]minute
	times   []latency
}

// A tally is what ended within a span of time.
type tally struct {
	calls   map[cell]int
	reasons map[string]int
}

// within tallies the last minutes.
func (p *picture) within(minutes int) tally {
	return p.between(p.now.Unix()/60-int64(minutes)+1, p.now.Unix()/60+1)
}

func (p *picture) between(from, to int64) tally {
	t := tally{map[cell]int{}, map[string]int{}}
	for at, m := range p.minutes {
		if at < from || at >= to {
			continue
		}
		for c, n := range m.calls {
			t.calls[c] += n
		}
		for r, n := range m.reasons {
			t.reasons[r] += n
		}
	}
	return t
}

func (t tally) total() (n int) {
	for _, calls := range t.calls {
		n += calls
	}
	return n
}

func (t tally) verdict(v gate.Verdict) (n int) {
	for c, calls := range t.calls {
		if c.verdict == v {
			n += calls
		}
	}
	return n
}

// took are the latencies of a server within the last minutes, shortest first.
func (p *picture) took(server gate.ServerID, minutes int) []time.Duration {
	since := p.now.Add(-time.Duration(minutes) * time.Minute)
	var out []time.Duration
	for _, l := range p.times {
		if l.server == server && l.at.After(since) {
			out = append(out, l.took)
		}
	}
	slices.Sort(out)
	return out
}

type flowPage struct {
	Day     bool
	Span    string
	Bucket  string
	Total   int
	Chart   *chart
	Servers []flowServer
	Reasons []flowReason
	Shown   []gate.Verdict // verdicts that there are
}

type flowServer struct {
	Server            string
	Counts            []int // as Shown
	Total             int
	Median, Slow, Max string
	Chart             *chart
}

type flowReason struct {
	Reason string
	Count  int
	Width  float64 // of 100
}

func showFlow(v *visit) error {
	picture, err := v.flow.look(v.api.LedgerDir(), v.now())
	if err != nil {
		return err
	}
	p := flowPage{Span: "hour", Bucket: "minute"}
	minutes, step := 60, 1
	if v.r.URL.Query().Get("span") == "day" {
		p.Day, p.Span, p.Bucket, minutes, step = true, "day", "quarter of an hour", flowMinutes, 15
	}
	all := picture.within(minutes)
	p.Total = all.total()
	for _, verdict := range verdicts {
		if all.verdict(verdict) > 0 {
			p.Shown = append(p.Shown, verdict)
		}
	}
	everything := func(gate.ServerID) bool { return true }
	p.Chart = newChart(picture, minutes, step, everything)
	p.Servers = flowServers(picture, all, p.Shown, minutes, step)
	p.Reasons = flowReasons(all.reasons)
	v.render(http.StatusOK, "flow", "Flow", p)
	return nil
}

func flowServers(picture *picture, all tally, shown []gate.Verdict, minutes, step int) (out []flowServer) {
	byServer := map[gate.ServerID]map[gate.Verdict]int{}
	for c, n := range all.calls {
		if byServer[c.server] == nil {
			byServer[c.server] = map[gate.Verdict]int{}
		}
		byServer[c.server][c.verdict] += n
	}
	for _, id := range slices.Sorted(maps.Keys(byServer)) {
		s := flowServer{Server: string(id), Chart: newChart(picture, minutes, step, func(other gate.ServerID) bool { return other == id })}
		for _, verdict := range shown {
			s.Counts = append(s.Counts, byServer[id][verdict])
			s.Total += byServer[id][verdict]
		}
		if times := picture.took(id, minutes); len(times) > 0 {
			s.Median, s.Slow, s.Max = took(times[len(times)/2]), took(times[len(times)*95/100]), took(times[len(times)-1])
		}
		out = append(out, s)
	}
	return out
}

func flowReasons(reasons map[string]int) (out []flowReason) {
	most := 0
	for _, n := range reasons {
		most = max(most, n)
	}
	for reason, n := range reasons {
		out = append(out, flowReason{reason, n, 100 * float64(n) / float64(most)})
	}
	slices.SortFunc(out, func(a, b flowReason) int { return b.Count - a.Count })
	return out
}
