package ledger_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"gatehouse/gate"
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
	r, err := ledger.Compare(dir, ledger.Evidence{Key: public})
	if err != nil || r.Bad != nil || r.Signed != last.Through {
		t.Errorf("with the right key: %+v, %v, %v", r, r.Bad, err)
	}
	r, err = ledger.Compare(dir, ledger.Evidence{Key: other})
	if err != nil || r.Bad == nil || !strings.Contains(r.Bad.Text, "not signed with this key") {
		t.Errorf("with another key: %+v, %v", r.Bad, err)
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
