// Package vault keeps secrets in the state, each encrypted with age, so that an
// operator who holds the identity can open them with the age tool as well.
package vault

import (
	"context"
	"time"

	"gatehouse/upstream/credential"
)

// A Record is one sealed secret, as it is stored.
type Record struct {
	Name   string
	Sealed []byte    // an age file
	By     string    // who set it
	At     time.Time // when
}

// A Store keeps sealed records.
type Store interface {
	// Record returns the record of that name; false when there is none.
	Record(name string) (Record, bool, error)
	// Records returns all records, sorted by name.
	Records() ([]Record, error)
	// Update puts and removes records in one transaction. A name to be removed
	// that does not exist is no error.
	Update(put []Record, remove []string) error
}

// Options is what a Vault works with.
type Options struct {
	Store    Store
	Identity credential.Reference // env: or file:, an age X25519 or post-quantum identity; zero: the vault is closed
	Secrets  credential.Secrets   // resolves Identity; asked at each use
	Now      func() time.Time     // nil: time.Now
}

// A Vault seals and opens secrets. It is safe for concurrent use.
type Vault struct{ options Options }

// New returns a Vault. It does not open the identity yet.
func New(o Options) *Vault {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Vault{options: o}
}

// Info is what may be told about a secret.
type Info struct {
	Name string    `json:"name"`
	By   string    `json:"set_by"`
	At   time.Time `json:"set_at"`
}

// Reveal opens the secret of that name.
func (v *Vault) Reveal(ctx context.Context, name string) (credential.Secret, error) {
	return credential.Secret{}, &credential.Error{Reason: credential.ReasonUnresolved, Text: name}
}

// Set seals value under name, replacing what was there.
func (v *Vault) Set(ctx context.Context, name string, value credential.Secret, by string) error {
	return nil
}

// List tells names, who set them and when, without opening anything.
func (v *Vault) List() ([]Info, error) { return nil, nil }

// Remove deletes the secret of that name; false when there was none.
func (v *Vault) Remove(name string) (bool, error) { return false, nil }

// Rekey opens every secret with the present identity and seals it for the one
// that next names, in one transaction. It returns how many there were.
func (v *Vault) Rekey(ctx context.Context, next credential.Reference) (int, error) { return 0, nil }
