package vault

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"gatehouse/upstream/credential"
)

type memory struct {
	mu      sync.Mutex
	records map[string]Record
	fail    error
}

func (m *memory) Record(name string) (Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[name]
	return r, ok, nil
}

func (m *memory) Records() ([]Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Record
	for _, name := range slices.Sorted(maps.Keys(m.records)) {
		out = append(out, m.records[name])
	}
	return out, nil
}

func (m *memory) Update(put []Record, remove []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return m.fail
	}
	for _, name := range remove {
		delete(m.records, name)
	}
	for _, r := range put {
		m.records[r.Name] = r
	}
	return nil
}

// identity writes a file as age-keygen does, and returns a reference to it.
func identity(t *testing.T, text string) credential.Reference {
	t.Helper()
	if text == "" {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Sprintf("# created: today\n# public key: %s\n%s\n", id.Recipient(), id)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, err := credential.ParseReference("file:" + path)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func newVault(t *testing.T, ref credential.Reference) (*Vault, *memory) {
	t.Helper()
	m := &memory{records: map[string]Record{}}
	now := time.Date(2026, 12, 1, 3, 0, 0, 0, time.UTC)
	return New(Options{Store: m, Identity: ref, Secrets: &credential.Resolver{}, Now: func() time.Time { return now }}), m
}

func TestRoundTrip(t *testing.T) {
	v, m := newVault(t, identity(t, ""))
	ctx := t.Context()
	if err := v.Set(ctx, "company-client", credential.SecretString("Kp7MarkedSecretQz3"), "operator"); err != nil {
		t.Fatal(err)
	}
	got, err := v.Reveal(ctx, "company-client")
	if err != nil || got.Reveal() != "Kp7MarkedSecretQz3" {
		t.Fatalf("got %q, %v", got.Reveal(), err)
	}
	if strings.Contains(string(m.records["company-client"].Sealed), "Kp7MarkedSecretQz3") {
		t.Error("the store holds the plain text")
	}
	infos, err := v.List()
	if err != nil || len(infos) != 1 || infos[0].Name != "company-client" || infos[0].By != "operator" || infos[0].At.Hour() != 3 {
		t.Errorf("list %+v, %v", infos, err)
	}
	if removed, err := v.Remove("company-client"); !removed || err != nil {
		t.Errorf("remove: %v, %v", removed, err)
	}
	if removed, err := v.Remove("company-client"); removed || err != nil {
		t.Errorf("remove again: %v, %v", removed, err)
	}
	if _, err := v.Reveal(ctx, "company-client"); !errors.Is(err, ErrNoSecret) {
		t.Errorf("removed secret: %v", err)
	}
}

// The resolver finds the vault's secrets, and what it says names only the name.
func TestThroughResolver(t *testing.T) {
	v, _ := newVault(t, identity(t, ""))
	r := &credential.Resolver{Vault: v}
	ref, err := credential.ParseReference("vault:a")
	if err != nil {
		t.Fatal(err)
	}
	var refused *credential.Error
	if _, err := r.Resolve(t.Context(), ref); !errors.As(err, &refused) || refused.Reason != credential.ReasonUnresolved ||
		err.Error() != "vault:a is not in the vault; store it with: gatehouse secret set a" {
		t.Errorf("absent: %v", err)
	}
	if err := v.Set(t.Context(), "a", credential.SecretString("x\ny"), "operator"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), ref); !errors.As(err, &refused) || strings.Contains(err.Error(), "x") && strings.Contains(err.Error(), "y\n") {
		t.Errorf("a value with a line end must not become a credential: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	ctx := t.Context()
	inVault, _ := credential.ParseReference("vault:key")
	for name, ref := range map[string]credential.Reference{
		"no identity": {}, "in itself": inVault, "no file": mustRef(t, "file:/nonexistent/key"),
		"not an identity": identity(t, "AGE-SECRET-KEY-1HUNTER2\n"),
	} {
		v, _ := newVault(t, ref)
		err := v.Set(ctx, "a", credential.SecretString("x"), "operator")
		if !errors.Is(err, ErrClosed) || strings.Contains(err.Error(), "HUNTER2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	v, _ := newVault(t, identity(t, ""))
	for _, name := range []string{"", "a b", "../a", "-a", strings.Repeat("a", 129)} {
		if err := v.Set(ctx, name, credential.SecretString("x"), "operator"); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
	if err := v.Set(ctx, "a", credential.Secret{}, "operator"); err == nil {
		t.Error("an empty secret was taken")
	}
	if err := v.Set(ctx, "a", credential.NewSecret(make([]byte, maxValue+1)), "operator"); err == nil {
		t.Error("a large secret was taken")
	}
}

func mustRef(t *testing.T, s string) credential.Reference {
	t.Helper()
	ref, err := credential.ParseReference(s)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// Whoever can write to the state can neither exchange secrets nor change them
// without being noticed.
func TestTampering(t *testing.T) {
	v, m := newVault(t, identity(t, ""))
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		if err := v.Set(ctx, name, credential.SecretString("value of "+name), "operator"); err != nil {
			t.Fatal(err)
		}
	}
	a, b := m.records["a"], m.records["b"]
	m.records["a"] = Record{Name: "a", Sealed: b.Sealed}
	if s, err := v.Reveal(ctx, "a"); err == nil {
		t.Errorf("the secret of b was given for a: %d bytes", s.Len())
	}
	for i := range a.Sealed {
		sealed := slices.Clone(a.Sealed)
		sealed[i] ^= 1
		m.records["a"] = Record{Name: "a", Sealed: sealed}
		if s, err := v.Reveal(ctx, "a"); err == nil && s.Reveal() != "value of a" {
			t.Fatalf("byte %d: another value came out", i)
		} else if err == nil {
			t.Fatalf("byte %d: the change went unnoticed", i)
		}
	}
}

func TestRekey(t *testing.T) {
	first, second := identity(t, ""), identity(t, "")
	v, m := newVault(t, first)
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		if err := v.Set(ctx, name, credential.SecretString("value of "+name), "operator"); err != nil {
			t.Fatal(err)
		}
	}
	m.fail = errors.New("disk full")
	if _, err := v.Rekey(ctx, second); !errors.Is(err, m.fail) {
		t.Fatalf("a failed write: %v", err)
	}
	if s, err := v.Reveal(ctx, "a"); err != nil || s.Reveal() != "value of a" {
		t.Fatalf("after a failed rekey: %v", err)
	}
	m.fail = nil
	if n, err := v.Rekey(ctx, second); n != 3 || err != nil {
		t.Fatalf("rekey: %d, %v", n, err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if s, err := v.Reveal(ctx, name); err != nil || s.Reveal() != "value of "+name {
			t.Errorf("%s after rekey: %v", name, err)
		}
	}
	old := New(Options{Store: m, Identity: first, Secrets: &credential.Resolver{}})
	if _, err := old.Reveal(ctx, "a"); !errors.Is(err, ErrClosed) {
		t.Errorf("the old identity still opens: %v", err)
	}
}

// A Set that races with Rekey ends up sealed for the new identity.
func TestSetDuringRekey(t *testing.T) {
	first, second := identity(t, ""), identity(t, "")
	v, m := newVault(t, first)
	if err := v.Set(t.Context(), "seed", credential.SecretString("x"), "operator"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if err := v.Set(context.Background(), fmt.Sprintf("s%d", i), credential.SecretString("y"), "operator"); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := v.Rekey(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	fresh := New(Options{Store: m, Identity: second, Secrets: &credential.Resolver{}})
	for name := range m.records {
		if _, err := fresh.Reveal(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
}

// The age tool opens what we sealed: name, line end, value.
func TestOpensWithAge(t *testing.T) {
	id, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	v, m := newVault(t, identity(t, id.String()+"\n"))
	if err := v.Set(t.Context(), "a", credential.SecretString("Kp7MarkedSecretQz3"), "operator"); err != nil {
		t.Fatal(err)
	}
	r, err := age.Decrypt(strings.NewReader(string(m.records["a"].Sealed)), id)
	if err != nil {
		t.Fatal(err)
	}
	var plain strings.Builder
	buf := make([]byte, 256)
	n, _ := r.Read(buf)
	plain.Write(buf[:n])
	if plain.String() != "a\nKp7MarkedSecretQz3" {
		t.Errorf("plain text %q", plain.String())
	}
}
