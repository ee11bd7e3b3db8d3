package state

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/bbolt"

	"gatehouse/upstream/vault"
)

type vaultStore struct{ bolt *bbolt.DB }

// Vault is the store of sealed secrets.
func (db *DB) Vault() vault.Store { return vaultStore{db.bolt} }

// Record implements vault.Store.
func (s vaultStore) Record(name string) (r vault.Record, ok bool, err error) {
	err = s.bolt.View(func(tx *bbolt.Tx) error {
		value := tx.Bucket(bucketVault).Get([]byte(name))
		if ok = value != nil; !ok {
			return nil
		}
		return decodeRecord(name, value, &r)
	})
	return r, ok && err == nil, err
}

// Records implements vault.Store; bbolt keeps keys in order.
func (s vaultStore) Records() (all []vault.Record, err error) {
	err = s.bolt.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketVault).ForEach(func(name, value []byte) error {
			var r vault.Record
			if err := decodeRecord(string(name), value, &r); err != nil {
				return err
			}
			all = append(all, r)
			return nil
		})
	})
	return all, err
}

// Update implements vault.Store.
func (s vaultStore) Update(put []vault.Record, remove []string) error {
	return s.bolt.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucketVault)
		for _, name := range remove {
			if err := b.Delete([]byte(name)); err != nil {
				return err
			}
		}
		for _, r := range put {
			value, err := json.Marshal(r)
			if err != nil {
				return err
			}
			if err := b.Put([]byte(r.Name), value); err != nil {
				return err
			}
		}
		return nil
	})
}

func decodeRecord(name string, value []byte, r *vault.Record) error {
	if err := json.Unmarshal(value, r); err != nil {
		return fmt.Errorf("secret %q: the stored record is damaged; set it again with: gatehouse secret set %s", name, name)
	}
	return nil
}
