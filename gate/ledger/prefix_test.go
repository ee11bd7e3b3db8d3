package ledger_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// signedLedger is a closed ledger with a signature at its end.
func signedLedger(t *testing.T) (dir string, lines []string, public ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	l := open(t, ledger.Options{Dir: dir, Signer: private})
	for range 4 {
		put(t, l, &gate.Entry{Kind: gate.KindDenied, Caller: "alice"})
	}
	closeLedger(t, l)
	content, err := os.ReadFile(filepath.Join(dir, "00000000000000000001.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.SplitAfter(string(content), "\n")
	return dir, lines[:len(lines)-1], public
}

// keepOnly replaces the files of a ledger by one that begins with entry number.
func keepOnly(t *testing.T, dir string, number int, lines ...string) {
	t.Helper()
	removeAll(t, filepath.Join(dir, "*.jsonl"))
	overwrite(t, filepath.Join(dir, fmt.Sprintf("%020d.jsonl", number)), []byte(strings.Join(lines, "")))
}

func removeAll(t *testing.T, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%q: %v, %v", pattern, files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

// hashOf takes a hash out of a line.
func hashOf(t *testing.T, line, field string) (h ledger.Hash) {
	t.Helper()
	_, rest, ok := strings.Cut(line, `"`+field+`":"`)
	if !ok || h.UnmarshalText([]byte(rest[:64])) != nil {
		t.Fatalf("no %s in %s", field, line)
	}
	return h
}

// Every signed checkpoint speaks of the entry before it, and so of the end of
// some beginning. It is no permission to leave that beginning out.
func TestOnlyRetentionVouchesForWhatIsGone(t *testing.T) {
	dir, lines, public := signedLedger(t)
	for first := len(lines); first > 1; first-- {
		keepOnly(t, dir, first, lines[first-1:]...)
		for _, known := range []ledger.Evidence{{}, keys(public)} {
			r, err := ledger.Compare(dir, known)
			if err != nil || r.Bad == nil || !strings.Contains(r.Bad.Text, "no checkpoint vouches") {
				t.Errorf("from entry %d on, with %d keys: %v, %v", first, len(known.Keys), r.Bad, err)
			}
		}
	}
}

// Whoever can write the files can write what retention writes, and not sign it.
func TestForgedRetention(t *testing.T) {
	dir, lines, public := signedLedger(t)
	first, last := lines[2], lines[len(lines)-1]
	forged, _ := ledger.AppendLine(nil, &gate.Entry{Number: uint64(len(lines) + 1), Kind: gate.KindCheckpoint, Reason: "retention",
		Through: 2, ResultDigest: hashOf(t, first, "prev")}, hashOf(t, last, "hash"))
	keepOnly(t, dir, 3, append(lines[2:], string(forged))...)
	r, err := ledger.Compare(dir, keys(public))
	if err != nil || r.Bad == nil || r.Bad.Number != 3 || !strings.Contains(r.Bad.Text, "not covered by a signature") {
		t.Errorf("got %v, %v", r.Bad, err)
	}
}

func TestNothingIsNotSigned(t *testing.T) {
	dir, _, public := signedLedger(t)
	removeAll(t, filepath.Join(dir, "*"))
	if r := verify(t, dir); r.Bad != nil {
		t.Errorf("without a key: %v", r.Bad)
	}
	r, err := ledger.Compare(dir, keys(public))
	if err != nil || r.Bad == nil || !strings.Contains(r.Bad.Text, "no entry") {
		t.Errorf("with a key: %v, %v", r.Bad, err)
	}
}

// With a key, retention signs what vouches for the entries before it removes them.
func TestRetentionSignsFirst(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := ledger.Options{Dir: dir, Retention: 80 * time.Hour, Signer: private, Now: func() time.Time { return now }}
	for range 20 {
		l := open(t, o)
		put(t, l, &gate.Entry{Kind: gate.KindImport}, &gate.Entry{Kind: gate.KindReload})
		closeLedger(t, l)
		now = now.Add(11 * time.Hour)
	}
	r, err := ledger.Compare(dir, keys(public))
	if err != nil || r.Bad != nil || r.First < 10 {
		t.Fatalf("%+v, %v, %v", r, r.Bad, err)
	}
	all, vouched := read(t, dir), 0
	for i, e := range all {
		if e.Reason != "retention" {
			continue
		}
		vouched++
		for i++; i < len(all) && all[i].Reason == "retention"; i++ {
		}
		if i == len(all) || all[i].Signature == "" || all[i].Through != all[i-1].Number {
			t.Errorf("what follows checkpoint %d does not sign it", e.Number)
		}
	}
	if vouched == 0 {
		t.Error("nothing was removed")
	}
}

// Where the record cannot be signed, nothing is taken out of it.
func TestRetentionWithoutSignature(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	o := ledger.Options{Dir: dir, Retention: 80 * time.Hour, Now: func() time.Time { return now }}
	for range 3 {
		l := open(t, o)
		put(t, l, &gate.Entry{Kind: gate.KindImport})
		closeLedger(t, l)
		now = now.Add(11 * time.Hour)
	}
	now = now.Add(200 * time.Hour)
	o.Signer = private
	l, err := ledger.OpenFailing(o, func(f *os.File, b []byte, at int64) (int, error) {
		if bytes.Contains(b, []byte(`"signature"`)) {
			return 0, os.ErrPermission
		}
		return f.WriteAt(b, at)
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, l, &gate.Entry{Kind: gate.KindImport})
	_ = l.Close(t.Context()) // the last signature fails as well
	if all := read(t, dir); all[0].Number != 1 {
		t.Errorf("entries up to %d were removed", all[0].Number-1)
	}
}

// Two readers of a line with a key twice could read two different entries.
func TestKeysThatAreThereTwice(t *testing.T) {
	dir, path, content := written(t, 1)
	line := strings.TrimSuffix(string(content), "\n")
	twice := strings.Replace(line, `"caller":"alice"`, `"caller":"alice","caller":"bob"`, 1)
	if twice == line {
		t.Fatalf("no caller in %s", line)
	}
	overwrite(t, path, rehashed(t, twice))
	removeAll(t, filepath.Join(dir, "head"))
	if r := verify(t, dir); r.Bad == nil || !strings.Contains(r.Bad.Text, "cannot be read") {
		t.Errorf("got %v", r.Bad)
	}
}

// rehashed gives an edited line the hash that it has now, as whoever edits it would.
func rehashed(t *testing.T, line string) []byte {
	t.Helper()
	at := strings.Index(line, `"hash":"`)
	if at < 0 {
		t.Fatalf("no hash in %s", line)
	}
	after := at + len(`"hash":"`) + 64 + len(`",`)
	return fmt.Appendf(nil, "%s\"hash\":\"%x\",%s\n", line[:at], sha256.Sum256([]byte(line[:at]+line[after:])), line[after:])
}
