package state

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"
)

const (
	// keyLife is how long a key seals; at the first opening after that a new
	// one takes over.
	keyLife = 30 * 24 * time.Hour
	// keysKept is how many keys still open what they sealed. A sealed approval
	// lives for minutes, so the one before the current would do.
	keysKept = 3

	keySize = 32
)

// Keys is the ring of keys that seal approvals. It implements gate.KeyRing.
type Keys struct {
	bolt *bbolt.DB
	now  func() time.Time

	mu      sync.RWMutex // guards what follows
	current uint32
	ring    map[uint32]sealKey
}

type sealKey struct {
	key  [keySize]byte
	made time.Time
}

func openKeys(bolt *bbolt.DB, now func() time.Time) (*Keys, error) {
	k := &Keys{bolt: bolt, now: now}
	if err := bolt.View(func(tx *bbolt.Tx) error { return k.load(tx) }); err != nil {
		return nil, err
	}
	if key, ok := k.ring[k.current]; !ok || now().Sub(key.made) > keyLife {
		if err := k.Rotate(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// Current is the key that seals from now on.
func (k *Keys) Current() (id uint32, key [keySize]byte) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.current, k.ring[k.current].key
}

// Key is the key of that id; false when it was never in the ring or has left it.
func (k *Keys) Key(id uint32) (key [keySize]byte, ok bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	entry, ok := k.ring[id]
	return entry.key, ok
}

// Rotate makes a new current key. The one before stays in the ring, so that
// questions which are open now can still be answered.
func (k *Keys) Rotate() error {
	value := make([]byte, keySize+8)
	rand.Read(value[:keySize])
	binary.BigEndian.PutUint64(value[keySize:], uint64(k.now().Unix()))

	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.current + 1
	return k.bolt.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketKeys)
		if err := b.Put(keyID(next), value); err != nil {
			return err
		}
		for id := range k.ring {
			if id+keysKept <= next {
				if err := b.Delete(keyID(id)); err != nil {
					return err
				}
			}
		}
		return k.load(tx)
	})
}

// load reads the ring; the highest id is the current one.
func (k *Keys) load(tx *bbolt.Tx) error {
	k.ring, k.current = map[uint32]sealKey{}, 0
	return tx.Bucket(bucketKeys).ForEach(func(id, value []byte) error {
		if len(id) != 4 || len(value) != keySize+8 {
			return fmt.Errorf("a sealing key is damaged; restore the file from a backup")
		}
		n := binary.BigEndian.Uint32(id)
		entry := sealKey{made: time.Unix(int64(binary.BigEndian.Uint64(value[keySize:])), 0)}
		copy(entry.key[:], value)
		k.ring[n], k.current = entry, max(k.current, n)
		return nil
	})
}

func keyID(id uint32) []byte { return binary.BigEndian.AppendUint32(nil, id) }
