package probe

import (
	"net/http"
	"slices"
)

// A Point is one rule, looked at in one place.
type Point struct {
	Step  string `json:"step"` // the request, in words
	Rule  Rule   `json:"rule"`
	Holds bool   `json:"holds"`
	Found string `json:"found,omitempty"` // what is there instead; safe to print
	Reply string `json:"reply,omitempty"` // the beginning of the reply, clipped; safe to print
}

// Departs reports whether the point is a departure, rather than a remark or
// nothing to speak of.
func (p Point) Departs() bool { return !p.Holds && p.Rule.Level != Should }

// A Report is what a probe found.
type Report struct {
	URL     string   `json:"url"`
	Eras    []string `json:"eras"`   // the protocol versions that were spoken
	Server  string   `json:"server"` // as it calls itself, clipped
	Version string   `json:"server_version"`
	Tools   int      `json:"tools"`
	Pages   int      `json:"pages"`
	Points  []Point  `json:"points"`
	// Unfinished says why not everything was asked; "" when it was.
	Unfinished string `json:"unfinished,omitempty"`
}

// Departures are the points that break the protocol, and Remarks those that are
// only advised against.
func (r *Report) Departures() []Point {
	return slices.DeleteFunc(slices.Clone(r.Points), func(p Point) bool { return !p.Departs() })
}

// Remarks are the points that the specification advises against.
func (r *Report) Remarks() []Point {
	return slices.DeleteFunc(slices.Clone(r.Points), func(p Point) bool { return p.Holds || p.Departs() })
}

// look notes that a rule was looked at.
func (p *prober) look(step string, rule Rule, holds bool, found string, a answer) bool {
	point := Point{Step: step, Rule: rule, Holds: holds}
	if !holds {
		point.Found, point.Reply = found, a.quote
	}
	p.report.Points = append(p.report.Points, point)
	return holds
}

func statusName(status int) string {
	if name := http.StatusText(status); name != "" {
		return name
	}
	return "a status of its own"
}
