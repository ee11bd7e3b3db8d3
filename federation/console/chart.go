package console

import (
	"fmt"
	"time"

	"gatehouse/gate"
)

// A chart is bars in a box of 1000 by 100 that is stretched to its place. What
// is to be read stands beside it as text.
type chart struct {
	Bars        []rect
	Most        int // calls in the highest bar
	Total       int
	From, Until string // when it begins and ends
}

// A rect is one piece of a drawing. Class gives it its colour.
type rect struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

// stack is the order of verdicts in a bar, from the bottom up.
var stack = verdicts

func newChart(p *picture, minutes, step int, of func(gate.ServerID) bool) *chart {
	n := minutes / step
	end := p.now.Unix()/60 + 1
	buckets := make([]map[gate.Verdict]int, n)
	c := &chart{From: p.now.Add(-time.Duration(minutes) * time.Minute).Local().Format("15:04"), Until: p.now.Local().Format("15:04")}
	for i := range buckets {
		buckets[i] = map[gate.Verdict]int{}
		sum := 0
		from := end - int64((n-i)*step)
		for cell, calls := range p.between(from, from+int64(step)).calls {
			if of(cell.server) {
				buckets[i][cell.verdict] += calls
				sum += calls
			}
		}
		c.Most, c.Total = max(c.Most, sum), c.Total+sum
	}
	width := 1000 / float64(n)
	for i, bucket := range buckets {
		top := 100.0
		at := time.Unix((end-int64((n-i)*step))*60, 0).Local().Format("15:04")
		for _, verdict := range stack {
			calls := bucket[verdict]
			if calls == 0 {
				continue
			}
			height := 100 * float64(calls) / float64(c.Most)
			top -= height
			c.Bars = append(c.Bars, rect{round(float64(i)*width + width*0.1), round(top), round(width * 0.8), round(height),
				"v-" + string(verdict), fmt.Sprintf("%s: %d %s", at, calls, verdict)})
		}
	}
	return c
}

// A bar is the requests of one operation, one after the other in time.
type bar struct {
	Legs  []legBar
	Total time.Duration
}

type legBar struct {
	gate.Leg
	X, W float64 // of 100
}

// newBar lays out legs; nil when there are none.
func newBar(legs []gate.Leg) *bar {
	if len(legs) == 0 {
		return nil
	}
	b := &bar{}
	for _, leg := range legs {
		b.Total += leg.Took
	}
	at, all := 0.0, float64(max(b.Total, 1))
	for _, leg := range legs {
		w := 100 * float64(leg.Took) / all
		b.Legs = append(b.Legs, legBar{leg, round(at), max(round(w), 0.5)})
		at += w
	}
	return b
}

// round keeps numbers short in a page.
func round(x float64) float64 { return float64(int(x*100+0.5)) / 100 }
