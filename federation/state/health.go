package state

import (
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

// healthFor is how long a finding about the file counts: a probe that anybody
// may send must not make the disk work each time.
const healthFor = 10 * time.Second

// health is what was found out last about the file.
type health struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// Health is nil when the file can be written, as an empty transaction shows,
// and says why it cannot. It may be some seconds old.
func (db *DB) Health() error {
	h := &db.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() || time.Since(h.at) > healthFor {
		h.err = db.bolt.Update(func(*bbolt.Tx) error { return nil })
		h.at = time.Now()
	}
	if h.err != nil {
		return fmt.Errorf("the state cannot be written: %w", h.err)
	}
	return nil
}

// Usable reports whether there is a key that seals.
func (k *Keys) Usable() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	_, ok := k.ring[k.current]
	return ok
}
