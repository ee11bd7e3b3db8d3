package state

import (
	"encoding/json"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"gatehouse/gate"
)

// contactDelay is how long a contact may wait to be written. Every call makes
// one, and a commit for each would cost more than the call's own record.
const contactDelay = time.Second

var errClosed = errors.New("the state is closed")

// A Contact is the last operation with a server that was completed.
type Contact struct {
	At      time.Time     `json:"at"`
	Latency time.Duration `json:"latency_ns"`
}

// Upstreams keeps what is known of the servers themselves.
type Upstreams struct{ db *DB }

// Upstream is the store of eras and contacts.
func (db *DB) Upstream() Upstreams { return Upstreams{db} }

// eras holds all eras in memory as well, since every call asks for one.
type eras struct {
	mu  sync.RWMutex // guards what follows
	all map[gate.ServerID]string
}

func openEras(bolt *bbolt.DB) (*eras, error) {
	e := &eras{all: map[gate.ServerID]string{}}
	return e, bolt.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketEra).ForEach(func(id, era []byte) error {
			e.all[gate.ServerID(id)] = string(era)
			return nil
		})
	})
}

// Era returns the era that the server was last seen to speak.
func (u Upstreams) Era(id gate.ServerID) (era string, ok bool) {
	u.db.eras.mu.RLock()
	defer u.db.eras.mu.RUnlock()
	era, ok = u.db.eras.all[id]
	return era, ok
}

// SetEra remembers the era of a server; "" forgets it.
func (u Upstreams) SetEra(id gate.ServerID, era string) error {
	if known, ok := u.Era(id); known == era && ok == (era != "") {
		return nil
	}
	// What was learned counts at once; that it could not be written costs a probe
	// after the next start.
	u.db.eras.mu.Lock()
	if era == "" {
		delete(u.db.eras.all, id)
	} else {
		u.db.eras.all[id] = era
	}
	u.db.eras.mu.Unlock()
	return u.db.bolt.Update(func(tx *bbolt.Tx) error {
		if era == "" {
			return tx.Bucket(bucketEra).Delete([]byte(id))
		}
		return tx.Bucket(bucketEra).Put([]byte(id), []byte(era))
	})
}

// Contact records a completed operation. It returns at once; the write follows
// within a second, together with those of other servers.
func (u Upstreams) Contact(id gate.ServerID, at time.Time, latency time.Duration) error {
	return u.db.contacts.set(id, Contact{at.UTC(), latency})
}

// LastContact returns the last contact with a server.
func (u Upstreams) LastContact(id gate.ServerID) (Contact, bool) { return u.db.contacts.get(id) }

// contacts holds all contacts in memory and writes the new ones behind.
type contacts struct {
	bolt *bbolt.DB

	mu     sync.Mutex // guards what follows
	all    map[gate.ServerID]Contact
	dirty  map[gate.ServerID]Contact
	closed bool
	err    error // of the last write

	kick chan struct{} // holds one signal: something is dirty
	stop chan struct{}
	done chan struct{}
}

func openContacts(bolt *bbolt.DB) (*contacts, error) {
	c := &contacts{
		bolt:  bolt,
		all:   map[gate.ServerID]Contact{},
		dirty: map[gate.ServerID]Contact{},
		kick:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	err := bolt.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketContact).ForEach(func(id, value []byte) error {
			var contact Contact
			// A contact that cannot be read is one we do not know.
			if json.Unmarshal(value, &contact) == nil {
				c.all[gate.ServerID(id)] = contact
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	go c.write() // ended and waited for by close
	return c, nil
}

func (c *contacts) set(id gate.ServerID, contact Contact) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	c.all[id], c.dirty[id] = contact, contact
	select {
	case c.kick <- struct{}{}:
	default:
	}
	err := c.err
	c.err = nil
	return err
}

func (c *contacts) get(id gate.ServerID) (Contact, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	contact, ok := c.all[id]
	return contact, ok
}

func (c *contacts) write() {
	defer close(c.done)
	for {
		select {
		case <-c.kick:
		case <-c.stop:
			return
		}
		select {
		case <-time.After(contactDelay):
		case <-c.stop:
			return
		}
		if err := c.flush(); err != nil {
			c.mu.Lock()
			c.err = err // told to whoever records the next contact
			c.mu.Unlock()
		}
	}
}

func (c *contacts) flush() error {
	c.mu.Lock()
	dirty := c.dirty
	c.dirty = map[gate.ServerID]Contact{}
	c.mu.Unlock()
	if len(dirty) == 0 {
		return nil
	}
	return c.bolt.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketContact)
		for id, contact := range dirty {
			value, err := json.Marshal(contact)
			if err != nil {
				return err
			}
			if err := b.Put([]byte(id), value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *contacts) close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	close(c.stop)
	<-c.done
	return c.flush()
}
