package console

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// record writes a ledger whose entries have the times they say.
func record(t *testing.T, entries ...*gate.Entry) (dir string, l *ledger.Ledger) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "test.ledger")
	l, err := ledger.Open(ledger.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if len(entries) > 0 {
		if err := l.Append(t.Context(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	return dir, l
}

func outcome(at time.Time, server gate.ServerID, v gate.Verdict, took time.Duration) *gate.Entry {
	return &gate.Entry{Time: at, Kind: gate.KindOutcome, Server: server, Verdict: v, Legs: []gate.Leg{{Name: "initialize", Took: took / 2}, {Name: "tools/call", Took: took / 2}}}
}

func TestFlow(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Minute).Add(30 * time.Second)
	dir, l := record(t,
		outcome(now.Add(-25*time.Hour), "a", gate.OK, time.Second),
		outcome(now.Add(-5*time.Hour), "a", gate.OutcomeUnknown, 4*time.Second),
		outcome(now.Add(-2*time.Minute), "a", gate.OK, 20*time.Millisecond),
		&gate.Entry{Time: now.Add(-2 * time.Minute), Kind: gate.KindIntent, Server: "a"},
		&gate.Entry{Time: now.Add(-time.Minute), Kind: gate.KindDenied, Server: "b", Verdict: gate.Refused, Reason: "trust_zone", Count: 5},
	)
	f := newFlow()
	p, err := f.look(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	hour, day := p.within(60), p.within(flowMinutes)
	if hour.total() != 6 || day.total() != 7 || hour.verdict(gate.Refused) != 5 || day.verdict(gate.OutcomeUnknown) != 1 || hour.reasons["trust_zone"] != 5 {
		t.Errorf("hour %+v, day %+v", hour, day)
	}
	if times := p.took("a", 60); len(times) != 1 || times[0] != 20*time.Millisecond {
		t.Errorf("the hour's times are %v", times)
	}
	if times := p.took("a", flowMinutes); len(times) != 2 || times[1] != 4*time.Second {
		t.Errorf("the day's times are %v", times)
	}
	c := newChart(p, 60, 1, func(gate.ServerID) bool { return true })
	if c.Most != 5 || c.Total != 6 || len(c.Bars) != 2 || c.Bars[1].Y != 0 || c.Bars[1].H != 100 || c.Bars[0].H != 20 {
		t.Errorf("the chart is %+v", c)
	}

	// A second look reads only what is new, and does not change the first picture.
	if err := l.Append(t.Context(), outcome(now, "a", gate.OK, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	again, err := f.look(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	if n := again.within(60).total(); n != 7 || p.within(60).total() != 6 {
		t.Errorf("%d calls at the second look, %d in the first picture", n, p.within(60).total())
	}
	// What is older than a day is forgotten.
	later, err := f.look(dir, now.Add(48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(later.minutes) + len(later.times); n != 0 {
		t.Errorf("%d things are kept for two days", n)
	}
}

func TestLatest(t *testing.T) {
	var entries []*gate.Entry
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.Local)
	for i := range 3000 {
		e := &gate.Entry{Time: start.Add(time.Duration(i) * time.Second), Kind: gate.KindDenied, Caller: "often", Tool: "mcp_a_x"}
		if i%500 == 0 {
			e.Caller, e.Tool = "seldom", "mcp_b_y"
		}
		entries = append(entries, e)
	}
	dir, _ := record(t, entries...)
	for name, test := range map[string]struct {
		filter filter
		before uint64
		want   []uint64
		older  uint64
	}{
		"the end":        {filter{}, 0, []uint64{3000, 2999}, 2999},
		"before":         {filter{}, 3, []uint64{2, 1}, 0},
		"far apart":      {filter{Caller: "seldom"}, 0, []uint64{2501, 2001}, 2001},
		"and on":         {filter{Caller: "seldom"}, 1001, []uint64{501, 1}, 0},
		"part of a name": {filter{Tool: "b_y"}, 502, []uint64{501, 1}, 0},
		"time":           {filter{from: start.Add(499 * time.Second), to: start.Add(501 * time.Second)}, 0, []uint64{501, 500}, 0},
		"nothing":        {filter{Caller: "nobody"}, 0, nil, 0},
	} {
		got, err := latest(dir, test.filter, test.before, 2)
		if err != nil {
			t.Fatal(err)
		}
		var numbers []uint64
		for _, e := range got.Entries {
			numbers = append(numbers, e.Number)
		}
		if len(numbers) != len(test.want) || len(numbers) > 0 && (numbers[0] != test.want[0] || numbers[len(numbers)-1] != test.want[len(test.want)-1]) || got.Older != test.older {
			t.Errorf("%s: got %v, older %d; want %v, older %d", name, numbers, got.Older, test.want, test.older)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, test := range [][6]string{
		{"Ships an order.", "Ships an order and more.", "Ships an ", "order.", "order and more.", ""},
		{"a b c", "a x c", "a ", "b ", "x ", "c"},
		{"a c", "a b c", "a ", "", "b ", "c"},
		{"", "new", "", "", "new", ""},
		{"same", "same", "same", "", "", ""},
	} {
		before, gone, came, after := split(test[0], test[1])
		if [4]string{before, gone, came, after} != [4]string(test[2:]) {
			t.Errorf("split(%q, %q) = %q %q %q %q", test[0], test[1], before, gone, came, after)
		}
	}
}

func TestBar(t *testing.T) {
	if newBar(nil) != nil {
		t.Error("a bar of nothing")
	}
	b := newBar([]gate.Leg{{Name: "a", Took: time.Second}, {Name: "b", Took: 3 * time.Second}})
	if b.Total != 4*time.Second || b.Legs[0].X != 0 || b.Legs[0].W != 25 || b.Legs[1].X != 25 || b.Legs[1].W != 75 {
		t.Errorf("the bar is %+v", b)
	}
	if none := newBar([]gate.Leg{{Name: "a"}}); none.Legs[0].W < 0.5 {
		t.Errorf("what took no time cannot be seen: %+v", none)
	}
}
