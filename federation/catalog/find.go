package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gatehouse/gate"
)

// The search is BM25 over weighted fields, made for a few thousand short
// documents that change as a whole. A search library would bring its own
// storage, its own analysis chains and several megabytes of dependencies to do
// that; it would still not know a caller's view, and counting word frequencies
// over tools a caller may not see would let them tell that those exist.

// The weights of the fields. A tool is named by the people who know best what
// it does; its description also speaks of other tools. A word counts for the
// best field it stands in and only a little for the others: saying it again is
// no sign of being meant.
const (
	weightName        = 4.0
	weightTitle       = 3.0
	weightServer      = 3.0
	weightDescription = 1.0
	weightParameter   = 0.5

	saturation = 1.2  // k1: how soon more of the same word stops counting
	lengthBias = 0.4  // b: how much long descriptions lose
	akinWeight = 0.45 // a word with the same meaning, against the word itself
	formWeight = 0.2  // the very form of a word beside its stem: "deals" is more like list_deals than get_deal
	elsewhere  = 0.1  // a word in fields beside its best one
)

// A Hit is one result of a search. Texts are as the server wrote them, with
// hidden characters escaped.
type Hit struct {
	Name        gate.LocalName
	Title       string
	Description string
	Score       float64
}

type posting struct {
	place  int32 // in Snapshot.entries
	weight float32
}

// An index holds the words of all tools that somebody may be offered.
type index struct {
	postings map[string][]posting
	length   []float32
	unasked  []float64 // what is left of a tool's score when nobody asked for a change
}

func newIndex(entries []*entry) *index {
	x := &index{postings: make(map[string][]posting), length: make([]float32, len(entries)), unasked: make([]float64, len(entries))}
	words := make(map[string]float32)
	for i, e := range entries {
		if e.tool.Own || e.tool.Availability != gate.Enabled {
			continue
		}
		d, err := readDefinition(e.rec.Definition)
		if err != nil {
			continue // unreachable: what is enabled could be read
		}
		clear(words)
		note := func(text string, weight float32) {
			found := wordsOf(text)
			x.length[i] += weight * float32(len(found))
			slices.SortFunc(found, compareWords)
			for _, w := range slices.Compact(found) {
				for _, form := range w.forms() {
					words[form] = max(words[form], weight) + elsewhere*min(words[form], weight)
				}
			}
		}
		name := string(e.tool.Name[len(e.tool.Group):])
		x.unasked[i] = unaskedFactor(wordsOf(name))
		note(name, weightName)
		note(d.title, weightTitle)
		note(e.tool.ServerName+" "+string(e.tool.Server), weightServer/2)
		note(d.description, weightDescription)
		note(parameterNames(d.input), weightParameter)
		for w, weight := range words {
			x.postings[w] = append(x.postings[w], posting{int32(i), weight})
		}
	}
	return x
}

func parameterNames(schema []byte) string {
	doc, err := decodeNumbers(schema)
	if err != nil {
		return ""
	}
	named, _ := doc["properties"].(map[string]any)
	names := make([]string, 0, len(named))
	for n := range named {
		names = append(names, n)
	}
	return strings.Join(names, " ")
}

// Find searches the remote tools that c may call by words: names, titles,
// descriptions and parameter names. The best hit comes first; equal ones are in
// order of name.
func (s *Snapshot) Find(c *gate.Caller, words string, limit int) []Hit {
	v := s.view(c)
	var best []scored
	if e := find(v.offered, gate.LocalName(strings.TrimSpace(words))); e != nil && !e.tool.Own {
		best = []scored{{e, math.Inf(1)}} // asked for by its very name
	} else {
		best = s.index().search(v, wordsOf(words))
	}
	hits := make([]Hit, 0, min(limit, len(best)))
	for _, b := range best[:min(limit, len(best))] {
		described := b.describe()
		hits = append(hits, Hit{b.tool.Name, described.Title, described.Description, b.score})
	}
	return hits
}

// unaskedFactor puts tools that change something behind their reading
// neighbours, and those that delete last. A model that asks for "invoices"
// should not be handed delete_invoice first.
func unaskedFactor(name []word) float64 {
	switch {
	case slices.ContainsFunc(name, func(w word) bool { return deleting[w.stem] }):
		return 0.9
	case len(name) > 0 && changing[name[0].stem]:
		return 0.95
	}
	return 1
}

type scored struct {
	*entry
	score float64
}

func (x *index) search(v *view, words []word) []scored {
	q := query{index: x, seen: make([]bool, len(x.length)), total: float64(len(v.offered)),
		best: make([]float64, len(x.length)), form: make([]float64, len(x.length))}
	length := 0.0
	for _, e := range v.offered {
		q.seen[e.place] = true
		length += float64(x.length[e.place])
	}
	q.average = length/max(1, q.total) + 1
	slices.SortFunc(words, compareWords)
	words = slices.Compact(words)
	asked := slices.ContainsFunc(words, func(w word) bool { return changing[w.stem] })
	scores := make([]float64, len(x.length))
	for _, w := range words {
		// Of a word and its kin only the best counts, or a tool would gain by
		// saying the same thing in several ways.
		clear(q.best)
		clear(q.form)
		q.score(q.best, w.stem, 1)
		for _, a := range akin[w.stem] {
			if !slices.ContainsFunc(words, func(w word) bool { return w.stem == a }) {
				q.score(q.best, a, akinWeight)
			}
		}
		q.score(q.form, w.form(), formWeight)
		for place, score := range q.best {
			if score > 0 {
				scores[place] += score + q.form[place]
			}
		}
	}
	var out []scored
	for _, e := range v.offered {
		score := scores[e.place]
		if !asked {
			score *= x.unasked[e.place]
		}
		if score > 0 {
			out = append(out, scored{e, score})
		}
	}
	slices.SortStableFunc(out, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	return out
}

// A query is one search within one view; its lists go by place.
type query struct {
	*index
	seen           []bool
	total, average float64
	best, form     []float64
}

// score raises best to what word gives the tools of the view. Frequencies are
// those within the view.
func (q *query) score(best []float64, word string, factor float64) {
	holding := 0.0
	for _, p := range q.postings[word] {
		if q.seen[p.place] {
			holding++
		}
	}
	rarity := math.Log(1 + (q.total-holding+0.5)/(holding+0.5))
	for _, p := range q.postings[word] {
		w := float64(p.weight)
		score := factor * rarity * w * (saturation + 1) / (w + saturation*(1-lengthBias+lengthBias*float64(q.length[p.place])/q.average))
		best[p.place] = max(best[p.place], score)
	}
}
