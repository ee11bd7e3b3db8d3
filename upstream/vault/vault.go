// Package vault keeps secrets in the state, each encrypted with age, so that an
// operator who holds the identity can open them with the age tool as well.
//
// The plain text of a sealed secret is its name, a line end, and the value. The
// name inside keeps whoever can write to the state from putting one secret in
// the place of another, and so from having it sent somewhere else.
package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"filippo.io/age"

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

// Texts resolves the reference to an identity, which may have several lines.
// *credential.Resolver does.
type Texts interface {
	ResolveText(context.Context, credential.Reference) (credential.Secret, error)
}

// Options is what a Vault works with.
type Options struct {
	Store    Store
	Identity credential.Reference // env: or file:, age identities, the first of which seals; zero: the vault is closed
	Secrets  Texts                // resolves Identity, at each use
	Now      func() time.Time     // nil: time.Now
}

// A Vault seals and opens secrets. It is safe for concurrent use.
type Vault struct {
	options Options

	// mu keeps a Set from falling between the reading and the writing of Rekey,
	// which would leave it sealed for the identity that is on its way out.
	mu       sync.RWMutex
	identity credential.Reference
}

var (
	// ErrNoSecret says that the vault has no secret of that name.
	ErrNoSecret = credential.ErrNoSecret
	// ErrClosed says that the vault's identity is missing or is another one.
	ErrClosed = errors.New("the vault cannot be opened")
)

// maxValue bounds a value; it is a credential, not a document.
const maxValue = 64 << 10

// New returns a Vault. It does not open the identity yet.
func New(o Options) *Vault {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Vault{options: o, identity: o.Identity}
}

// Info is what may be told about a secret.
type Info struct {
	Name string    `json:"name"`
	By   string    `json:"set_by"`
	At   time.Time `json:"set_at"`
}

// Reveal opens the secret of that name. The error wraps ErrNoSecret or
// ErrClosed when it is one of these.
func (v *Vault) Reveal(ctx context.Context, name string) (credential.Secret, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	record, ok, err := v.options.Store.Record(name)
	switch {
	case err != nil:
		return credential.Secret{}, fmt.Errorf("vault:%s: the state cannot be read: %w", name, err)
	case !ok:
		return credential.Secret{}, fmt.Errorf("vault:%s %w; store it with: gatehouse secret set %s", name, ErrNoSecret, name)
	}
	keys, err := v.open(ctx, v.identity)
	if err != nil {
		return credential.Secret{}, err
	}
	return keys.unseal(record)
}

// Set seals value under name, replacing what was there.
func (v *Vault) Set(ctx context.Context, name string, value credential.Secret, by string) error {
	switch {
	case !credential.ValidVaultName(name):
		return fmt.Errorf(`%q cannot name a secret (want 1 to 128 letters, digits, "-", "_" and ".", starting with a letter or digit)`, name)
	case value.IsZero():
		return fmt.Errorf("vault:%s: an empty secret is refused", name)
	case value.Len() > maxValue:
		return fmt.Errorf("vault:%s: larger than 64 KiB and no credential", name)
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	keys, err := v.open(ctx, v.identity)
	if err != nil {
		return err
	}
	sealed, err := keys.seal(name, value)
	if err != nil {
		return err
	}
	return v.options.Store.Update([]Record{{Name: name, Sealed: sealed, By: by, At: v.options.Now().UTC()}}, nil)
}

// List tells names, who set them and when, without opening anything.
func (v *Vault) List() ([]Info, error) {
	records, err := v.options.Store.Records()
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(records))
	for i, r := range records {
		infos[i] = Info{r.Name, r.By, r.At}
	}
	return infos, nil
}

// Remove deletes the secret of that name; false when there was none. It needs
// no identity.
func (v *Vault) Remove(name string) (bool, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, ok, err := v.options.Store.Record(name)
	if err != nil || !ok {
		return false, err
	}
	return true, v.options.Store.Update(nil, []string{name})
}

// Rekey opens every secret with the present identity and seals it for the one
// that next names, in one transaction: either all of them move or none. From
// then on this Vault uses next; the configuration has to be changed to it
// before the next start. It returns how many secrets there were.
func (v *Vault) Rekey(ctx context.Context, next credential.Reference) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, err := v.open(ctx, v.identity)
	if err != nil {
		return 0, err
	}
	then, err := v.open(ctx, next)
	if err != nil {
		return 0, err
	}
	records, err := v.options.Store.Records()
	if err != nil {
		return 0, err
	}
	for i := range records {
		value, err := now.unseal(records[i])
		if err != nil {
			return 0, err
		}
		records[i].Sealed, err = then.seal(records[i].Name, value)
		value.Wipe()
		if err != nil {
			return 0, err
		}
	}
	if err := v.options.Store.Update(records, nil); err != nil {
		return 0, err
	}
	v.identity = next
	return len(records), nil
}

// keys are the identities that open and the recipient that seals.
type keys struct {
	identities []age.Identity
	recipient  age.Recipient
	ref        credential.Reference
}

func (v *Vault) open(ctx context.Context, ref credential.Reference) (keys, error) {
	switch {
	case ref.IsZero():
		return keys{}, fmt.Errorf("%w: no identity is configured; set [vault] identity", ErrClosed)
	case ref.Scheme() == credential.Vault:
		return keys{}, fmt.Errorf("%w: its identity cannot be inside it", ErrClosed)
	}
	text, err := v.options.Secrets.ResolveText(ctx, ref)
	if err != nil {
		return keys{}, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	plain := text.Bytes()
	defer clear(plain)
	// The parser's error would quote the line that it stumbled over.
	identities, err := age.ParseIdentities(bytes.NewReader(plain))
	if err != nil || len(identities) == 0 {
		return keys{}, fmt.Errorf("%w: %s holds no age identity; make one with: age-keygen", ErrClosed, ref)
	}
	k := keys{identities: identities, ref: ref}
	switch first := identities[0].(type) {
	case *age.X25519Identity:
		k.recipient = first.Recipient()
	case *age.HybridIdentity:
		k.recipient = first.Recipient()
	default:
		return keys{}, fmt.Errorf("%w: %s is of a kind that cannot seal", ErrClosed, ref)
	}
	return k, nil
}

func (k keys) seal(name string, value credential.Secret) ([]byte, error) {
	plain := append([]byte(name+"\n"), value.Reveal()...)
	defer clear(plain)
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, k.recipient)
	if err != nil {
		return nil, fmt.Errorf("vault:%s cannot be sealed: %w", name, err)
	}
	if _, err := w.Write(plain); err != nil {
		return nil, fmt.Errorf("vault:%s cannot be sealed: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("vault:%s cannot be sealed: %w", name, err)
	}
	return sealed.Bytes(), nil
}

func (k keys) unseal(r Record) (credential.Secret, error) {
	reader, err := age.Decrypt(bytes.NewReader(r.Sealed), k.identities...)
	if err != nil {
		var other *age.NoIdentityMatchError
		if errors.As(err, &other) {
			return credential.Secret{}, fmt.Errorf("%w: vault:%s is sealed for another identity than %s", ErrClosed, r.Name, k.ref)
		}
		return credential.Secret{}, fmt.Errorf("vault:%s is damaged; set it again", r.Name)
	}
	plain, err := io.ReadAll(io.LimitReader(reader, maxValue+256))
	if err != nil {
		return credential.Secret{}, fmt.Errorf("vault:%s is damaged; set it again", r.Name)
	}
	value, ok := bytes.CutPrefix(plain, []byte(r.Name+"\n"))
	if !ok || len(value) == 0 {
		clear(plain)
		return credential.Secret{}, fmt.Errorf("vault:%s holds a secret of another name; the state was edited, set it again", r.Name)
	}
	return credential.NewSecret(value), nil
}
