package ledger_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/gate/ledger"
	"gatehouse/gate/rawjson"
)

func TestLinesAreCanonical(t *testing.T) {
	full := gatetest.FullEntry()
	full.Number = 7
	for name, e := range map[string]gate.Entry{
		"everything":      full,
		"nothing":         {Number: 1, Kind: gate.KindStop},
		"only generation": {Number: 2, Kind: gate.KindReload, Generation: 4},
	} {
		line, hash := ledger.AppendLine(nil, &e, ledger.Hash{1})
		line = bytes.TrimSuffix(line, []byte{'\n'})
		canonical, err := rawjson.Canonical(nil, line)
		if err != nil || !bytes.Equal(canonical, line) {
			t.Errorf("%s: %v\n%s\nis not canonical, but\n%s", name, err, line, canonical)
		}
		// The hash can be checked with nothing but a JSON library.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(line, &members); err != nil {
			t.Fatal(err)
		}
		delete(members, "hash")
		rest, err := json.Marshal(members)
		if err == nil {
			rest, err = rawjson.Canonical(nil, rest)
		}
		if err != nil || gate.DigestOf(rest) != hash {
			t.Errorf("%s: the hash is not that of the line without it (%v)", name, err)
		}
		back, err := ledger.Decode(line)
		if diff := gatetest.Differ(back, e); err != nil || !strings.HasPrefix(diff, "Detail") && diff != "" {
			t.Errorf("%s: read back with %v: %s", name, err, diff)
		}
	}
}

func TestEncodingAllocatesNothing(t *testing.T) {
	e := gatetest.FullEntry()
	buf := make([]byte, 0, 8192)
	if n := testing.AllocsPerRun(100, func() { buf, _ = ledger.AppendLine(buf[:0], &e, ledger.Hash{1}) }); n != 0 {
		t.Errorf("%v allocations for a line, want none", n)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, line := range []string{
		``, `[]`, `{}`, `{"kind":"intent"}`, `{"number":1}`, `{"kind":"intent","number":"1"}`, `{"kind":"intent","number":1.5}`,
		`{"kind":"intent","number":1,"class":"publik"}`, `{"kind":"intent","number":1,"time":"yesterday"}`,
		`{"kind":"intent","number":1,"kind":"denied"}`, `{"kind":1,"number":1}`, `{"definition":"00","kind":"intent","number":1}`,
	} {
		if e, err := ledger.Decode([]byte(line)); err == nil {
			t.Errorf("%s is read as %+v", line, e)
		}
	}
	if e, err := ledger.Decode([]byte(`{"kind":"intent","later":{"a":1},"number":1}`)); err != nil || e.Number != 1 {
		t.Errorf("a member of a later version: %+v, %v", e, err)
	}
}

func FuzzEntryRoundTrip(f *testing.F) {
	f.Add("alice", "a \"quoted\"\\ \x00\n\u2028 detail", `{"hash":"x"}`, uint64(3), int64(-1))
	f.Fuzz(func(t *testing.T, caller, detail, arguments string, n uint64, bytesIn int64) {
		e := gate.Entry{
			Number: n>>1 + 1, Kind: gate.KindIntent, Caller: gate.CallerName(strings.ToValidUTF8(caller, "")),
			Detail: strings.ToValidUTF8(detail, ""), Arguments: strings.ToValidUTF8(arguments, ""), Approval: n, BytesIn: bytesIn,
		}
		line, _ := ledger.AppendLine(nil, &e, ledger.Hash{2})
		back, err := ledger.Decode(bytes.TrimSuffix(line, []byte{'\n'}))
		if diff := gatetest.Differ(back, e); err != nil || diff != "" {
			t.Fatalf("%s: %v, %s", line, err, diff)
		}
		if bytes.Count(line, []byte{'\n'}) != 1 {
			t.Fatalf("an entry is not one line: %q", line)
		}
	})
}

func BenchmarkAppendLine(b *testing.B) {
	e := gatetest.FullEntry()
	buf := make([]byte, 0, 8192)
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = ledger.AppendLine(buf[:0], &e, ledger.Hash{1})
	}
}
