package ledger

import (
	"time"

	"gatehouse/gate"
)

// A Commit is one batch of entries that went into the file.
type Commit struct {
	Entries []*gate.Entry // to be read, not kept
	Took    time.Duration
	Synced  bool // it is durable; otherwise a later one makes it so
}

// tell reports a batch, after all who waited for it were answered: whoever
// counts does not make them wait.
func (l *Ledger) tell(requests []*request, took time.Duration, synced bool) {
	if l.observe == nil {
		return
	}
	c := Commit{Took: took, Synced: synced}
	for _, r := range requests {
		if r.err != nil {
			continue
		}
		for i := range r.entries {
			c.Entries = append(c.Entries, &r.entries[i])
		}
	}
	if len(c.Entries) > 0 {
		l.observe(c)
	}
}
