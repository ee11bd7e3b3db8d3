package state

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

type catalogStore struct{ bolt *bbolt.DB }

// Catalog is the store of servers and tools.
func (db *DB) Catalog() catalog.Store { return catalogStore{db.bolt} }

// Load implements catalog.Store.
func (s catalogStore) Load() (servers []catalog.StoredServer, tools []catalog.StoredTool, err error) {
	err = s.bolt.View(func(tx *bbolt.Tx) error {
		err := tx.Bucket(bucketServers).ForEach(func(id, value []byte) error {
			var server catalog.StoredServer
			if err := json.Unmarshal(value, &server); err != nil {
				return fmt.Errorf("server %q: the stored record is damaged; restore the state from a backup", id)
			}
			servers = append(servers, server)
			return nil
		})
		if err != nil {
			return err
		}
		tools, err = loadTools(tx.Bucket(bucketTools))
		return err
	})
	return servers, tools, err
}

// loadTools decodes on every processor: ten thousand tools are many.
func loadTools(bucket *bbolt.Bucket) ([]catalog.StoredTool, error) {
	var keys, values [][]byte
	err := bucket.ForEach(func(key, value []byte) error {
		keys, values = append(keys, key), append(values, value)
		return nil
	})
	if err != nil {
		return nil, err
	}
	tools, faults := make([]catalog.StoredTool, len(keys)), make([]error, len(keys))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // waited for below
			for i := int(next.Add(1)) - 1; i < len(keys); i = int(next.Add(1)) - 1 {
				var err error
				if tools[i], err = decodeTool(values[i]); err != nil {
					faults[i] = fmt.Errorf("tool %q: the stored record is damaged; restore the state from a backup", keys[i])
				}
			}
		})
	}
	workers.Wait()
	return tools, errors.Join(faults...)
}

// Save implements catalog.Store.
func (s catalogStore) Save(server catalog.StoredServer, put []catalog.StoredTool, drop []gate.RemoteName) error {
	record, err := json.Marshal(server)
	if err != nil {
		return err
	}
	return s.bolt.Update(func(tx *bbolt.Tx) error {
		if err := tx.Bucket(bucketServers).Put([]byte(server.ID), record); err != nil {
			return err
		}
		b := tx.Bucket(bucketTools)
		for _, remote := range drop {
			if err := b.Delete(toolKey(server.ID, remote)); err != nil {
				return err
			}
		}
		for _, tool := range put {
			value, err := encodeTool(tool)
			if err != nil {
				return err
			}
			if err := b.Put(toolKey(server.ID, tool.Remote), value); err != nil {
				return err
			}
		}
		return nil
	})
}

// toolKey puts the tools of a server together. An id has no zero byte, so no
// two pairs share a key. A remote name may be longer than a key can be; then
// its digest stands in for it, after a byte that no other key has there.
func toolKey(id gate.ServerID, remote gate.RemoteName) []byte {
	const longest = 1024
	key := append([]byte(id), 0)
	if len(remote) <= longest {
		return append(append(key, 'n'), remote...)
	}
	digest := gate.DigestOf([]byte(remote))
	return append(append(key, 'd'), digest[:]...)
}

// encodeTool writes a record and then, each behind its length, the definitions
// beside it. Inside the record encoding/json would compact and re-escape them,
// and what a server said is to be kept to the byte.
func encodeTool(tool catalog.StoredTool) ([]byte, error) {
	parts := [3][]byte{1: tool.Definition}
	tool.Definition = nil
	if tool.Pin != nil {
		pin := *tool.Pin
		parts[2], pin.Definition = pin.Definition, nil
		tool.Pin = &pin
	}
	record, err := json.Marshal(tool)
	if err != nil {
		return nil, err
	}
	parts[0] = record
	var out []byte
	for _, part := range parts {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out, nil
}

var errDamaged = errors.New("damaged")

// decodeTool reads what encodeTool wrote. The result shares nothing with b,
// which is the database's.
func decodeTool(b []byte) (tool catalog.StoredTool, err error) {
	var parts [3][]byte
	for i := range parts {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return tool, errDamaged
		}
		if size > 0 {
			parts[i] = append([]byte(nil), b[n:n+int(size)]...)
		}
		b = b[n+int(size):]
	}
	if err := json.Unmarshal(parts[0], &tool); err != nil || len(b) > 0 {
		return tool, errDamaged
	}
	tool.Definition = parts[1]
	if tool.Pin != nil {
		tool.Pin.Definition = parts[2]
	}
	return tool, nil
}
