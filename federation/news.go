package federation

import (
	"sync"

	"gatehouse/gate/ledger"
)

// A pulse wakes those who wait for something new to show. Whoever makes news does
// not wait for them.
type pulse struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next beat; nil while nobody waits
	last uint64        // entry on record, 0 until this process wrote one
}

func (p *pulse) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	return p.next
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// News is closed when, from now on, something is put on record or the catalogue
// changes. What an entry is about may show a moment after it.
func (g *Gateway) News() <-chan struct{} { return g.news.wait() }

// Leaving is closed when the process begins to stop: nobody is waited for any more.
func (g *Gateway) Leaving() <-chan struct{} { return g.leaving.Done() }

// Recorded is the number of the last entry that this process put on record.
func (g *Gateway) Recorded() uint64 {
	g.news.mu.Lock()
	defer g.news.mu.Unlock()
	return g.news.last
}

// committed is told of every batch that the ledger wrote.
func (g *Gateway) committed(c ledger.Commit) {
	g.metrics.Commit(c)
	if n := len(c.Entries); n > 0 {
		g.news.mu.Lock()
		g.news.last = c.Entries[n-1].Number
		g.news.mu.Unlock()
	}
	g.news.beat()
}
