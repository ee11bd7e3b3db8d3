package ledger_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	ellipticcurve "crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/gate/ledger"
)

func TestSignedCheckpoints(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 {
		l := open(t, ledger.Options{Dir: dir, Signer: private})
		put(t, l, &gate.Entry{Kind: gate.KindStart}, &gate.Entry{Kind: gate.KindStop})
		closeLedger(t, l)
	}
	all := read(t, dir)
	last := all[len(all)-1]
	if last.Kind != gate.KindCheckpoint || last.Signature == "" || last.Through != last.Number-1 {
		t.Fatalf("the last entry is %+v", last)
	}
	r, err := ledger.Compare(dir, keys(public))
	if err != nil || r.Bad != nil || r.Signed != last.Through {
		t.Errorf("with the right key: %+v, %v, %v", r, r.Bad, err)
	}
	r, err = ledger.Compare(dir, keys(other))
	if err != nil || r.Bad == nil || !strings.Contains(r.Bad.Text, "not signed with a known key") {
		t.Errorf("with another key: %+v, %v", r.Bad, err)
	}
}

func keys(all ...ed25519.PublicKey) ledger.Evidence { return ledger.Evidence{Keys: all} }

// Whoever makes the record anew can still copy the signatures of the old one;
// each is for one entry with one hash, and opens nothing elsewhere.
func TestSignatureOfAnotherChain(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(caller gate.CallerName) (string, gate.Entry) {
		dir := t.TempDir()
		l := open(t, ledger.Options{Dir: dir, Signer: private})
		put(t, l, &gate.Entry{Kind: gate.KindStart, Caller: caller})
		closeLedger(t, l)
		all := read(t, dir)
		return dir, all[len(all)-1]
	}
	_, old := signed("alice")
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir})
	put(t, l, &gate.Entry{Kind: gate.KindStart, Caller: "mallory"}, &gate.Entry{
		Kind: gate.KindCheckpoint, Reason: "signed", Through: old.Through, ResultDigest: old.ResultDigest, Signature: old.Signature})
	closeLedger(t, l)
	if r := verifyGood(t, dir); r.Signed != 0 {
		t.Errorf("without a key: %+v", r)
	}
	r, err := ledger.Compare(dir, keys(public))
	if err != nil || r.Bad == nil || r.Signed != 0 || !strings.Contains(r.Bad.Text, "signed for another entry") {
		t.Errorf("a copied signature: %+v, %v, %v", r, r.Bad, err)
	}
}

// A checkpoint that could not be written is made anew: it would speak of an
// entry that others have followed since.
func TestCheckpointWhileUnwritable(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, clock := t.TempDir(), gatetest.NewClock()
	var broken atomic.Bool
	l := open(t, ledger.Options{Dir: dir, Signer: private, Now: clock.Now, Sync: func(f *os.File) error {
		// An entry's own sync works, the one of the checkpoint after it does not.
		if broken.Load() && endsSigned(f) {
			return errors.New("disk full")
		}
		return nil
	}})
	put(t, l, &gate.Entry{Kind: gate.KindStart})
	clock.Advance(2 * time.Hour)
	broken.Store(true)
	put(t, l, &gate.Entry{Kind: gate.KindImport})
	for began := time.Now(); l.Health() == nil; time.Sleep(time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatal("the checkpoint was never tried")
		}
	}
	broken.Store(false)
	put(t, l, &gate.Entry{Kind: gate.KindReload})
	closeLedger(t, l)
	r, err := ledger.Compare(dir, keys(public))
	if err != nil || r.Bad != nil || r.Signed == 0 {
		t.Errorf("%+v, %v, %v", r, r.Bad, err)
	}
	for _, e := range read(t, dir) {
		if e.Signature != "" && e.Through != e.Number-1 {
			t.Errorf("checkpoint %d speaks of %d", e.Number, e.Through)
		}
	}
}

func endsSigned(f *os.File) bool {
	content, err := os.ReadFile(f.Name())
	lines := bytes.Split(bytes.TrimRight(content, "\n "), []byte("\n"))
	return err == nil && bytes.Contains(lines[len(lines)-1], []byte(`"signature"`))
}

func TestKeys(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte, err error) []byte {
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	secret := encode("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(public)
	open := encode("PUBLIC KEY", der, err)
	elliptic, err := ecdsa.GenerateKey(ellipticcurve.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err = x509.MarshalPKCS8PrivateKey(elliptic)
	other := encode("PRIVATE KEY", der, err)
	if key, err := ledger.ParseSigner(secret); err != nil || !key.Equal(private) {
		t.Errorf("the private key: %v", err)
	}
	for _, text := range [][]byte{secret, open} {
		if key, err := ledger.ParseKey(text); err != nil || !key.Equal(public) {
			t.Errorf("the public key: %v", err)
		}
	}
	for _, text := range [][]byte{nil, []byte("hunter2"), open, other, secret[:40]} {
		if _, err := ledger.ParseSigner(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := ledger.ParseKey(other); err == nil {
		t.Error("a key that is not Ed25519 was taken")
	}
}

func TestCopyProvesThePast(t *testing.T) {
	dir, path, content := written(t, 4)
	half := content[:bytes.IndexByte(content, '\n')+1]
	compare := func(dir string, copied []byte) ledger.Report {
		r, err := ledger.Compare(dir, ledger.Evidence{Copy: bytes.NewReader(copied)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := compare(dir, half); r.Bad != nil {
		t.Errorf("a true copy: %v", r.Bad)
	}
	elsewhere, _, _ := written(t, 4)
	if r := compare(elsewhere, content); r.Bad == nil || r.Bad.Number != 1 || !strings.Contains(r.Bad.Text, "another entry") {
		t.Errorf("a ledger that was made anew: %v", r.Bad)
	}
	short, _, _ := written(t, 4)
	longer := append(bytes.Clone(content), moreLines(t, content)...)
	overwrite(t, short+"/00000000000000000001.jsonl", content)
	overwrite(t, short+"/head", nil)
	if r := compare(short, longer); r.Bad == nil || r.Bad.Number != 5 || !strings.Contains(r.Bad.Text, "not here") {
		t.Errorf("a ledger that was cut: %v", r.Bad)
	}
	if _, err := ledger.Compare(dir, ledger.Evidence{Copy: strings.NewReader("{}\n")}); err == nil {
		t.Error("a copy without entries is taken as evidence")
	}
	overwrite(t, path, content)
}

// moreLines is the line that would follow content.
func moreLines(t *testing.T, content []byte) []byte {
	t.Helper()
	var prev ledger.Hash
	at := bytes.LastIndex(content, []byte(`"hash":"`)) + len(`"hash":"`)
	if err := prev.UnmarshalText(content[at : at+64]); err != nil {
		t.Fatal(err)
	}
	line, _ := ledger.AppendLine(nil, &gate.Entry{Number: 5, Kind: gate.KindStop}, prev)
	return line
}

func TestStory(t *testing.T) {
	dir := t.TempDir()
	l := open(t, ledger.Options{Dir: dir})
	put(t, l, &gate.Entry{Kind: gate.KindQuestion})
	put(t, l, &gate.Entry{Kind: gate.KindDenied})
	put(t, l, &gate.Entry{Kind: gate.KindAnswer, Approval: 1}, &gate.Entry{Kind: gate.KindIntent, Approval: 1})
	put(t, l, &gate.Entry{Kind: gate.KindIntent}, &gate.Entry{Kind: gate.KindOutcome, Intent: 4, Approval: 1})
	for _, number := range []uint64{1, 3, 4, 6} {
		story, err := ledger.Story(dir, number)
		var kinds []string
		for _, e := range story {
			kinds = append(kinds, string(e.Kind))
		}
		if got := strings.Join(kinds, " "); err != nil || got != "question answer intent outcome" {
			t.Errorf("the story of %d is %q, %v", number, got, err)
		}
	}
	if story, err := ledger.Story(dir, 2); err != nil || len(story) != 1 {
		t.Errorf("got %v, %v", story, err)
	}
	if _, err := ledger.Story(dir, 99); err == nil {
		t.Error("a record that does not exist has a story")
	}
}
