package demo

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxNotes keeps a loop of calls from filling the memory.
const maxNotes = 1000

type note struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// A notebook is what the note tools work on.
type notebook struct {
	mu    sync.Mutex // guards what follows
	next  int
	notes []note
}

func newNotebook() *notebook {
	b := &notebook{next: 1}
	for _, n := range [][2]string{
		{"Shopping", "Oat milk, two lemons, coffee"},
		{"Release checklist", "Tag, build, announce, then sleep"},
		{"Book list", "The Left Hand of Darkness; Roadside Picnic"},
	} {
		b.add(n[0], n[1])
	}
	return b
}

func (b *notebook) add(title, text string) (note, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.notes) >= maxNotes {
		return note{}, fmt.Errorf("the notebook is full (%d notes); delete some first", maxNotes)
	}
	n := note{b.next, title, text}
	b.next++
	b.notes = append(b.notes, n)
	return n, nil
}

func (b *notebook) search(words string, limit int) []note {
	b.mu.Lock()
	defer b.mu.Unlock()
	words = strings.ToLower(words)
	found := []note{}
	for _, n := range b.notes {
		if len(found) < limit && strings.Contains(strings.ToLower(n.Title+"\n"+n.Text), words) {
			found = append(found, n)
		}
	}
	return found
}

func (b *notebook) read(id int) (note, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.index(id); i >= 0 {
		return b.notes[i], nil
	}
	return note{}, fmt.Errorf("there is no note %d", id)
}

func (b *notebook) remove(id int) (note, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.index(id)
	if i < 0 {
		return note{}, fmt.Errorf("there is no note %d", id)
	}
	n := b.notes[i]
	b.notes = slices.Delete(b.notes, i, i+1)
	return n, nil
}

func (b *notebook) index(id int) int {
	return slices.IndexFunc(b.notes, func(n note) bool { return n.ID == id })
}
