package state

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

func TestCatalogueKeepsBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	at := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	long := gate.RemoteName(strings.Repeat("x", 70_000))
	server := catalog.StoredServer{ID: "notes", LastImport: at, Era: "2026-07-28"}
	tools := map[gate.RemoteName]catalog.StoredTool{
		"a": {Server: "notes", Remote: "a", Definition: []byte(`{ "name":"a", "n": 9007199254740993.0, "d":"<b>&"}`), FirstSeen: at, LastSeen: at,
			Pin: &catalog.StoredPin{URL: "http://127.0.0.1/mcp", Definition: []byte("{ }"), Time: at}},
		"a\x00n": {Server: "notes", Remote: "a\x00n", Refusal: "unfit", FirstSeen: at, LastSeen: at},
		long:     {Server: "notes", Remote: long, Refusal: "name too long", FirstSeen: at, LastSeen: at},
		"gone":   {Server: "notes", Remote: "gone", FirstSeen: at, LastSeen: at},
	}
	var put []catalog.StoredTool
	for _, tool := range tools {
		put = append(put, tool)
	}
	db := open(t, path, Options{})
	if err := db.Catalog().Save(server, put, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Catalog().Save(server, nil, []gate.RemoteName{"gone", "never-there"}); err != nil {
		t.Fatal(err)
	}
	delete(tools, "gone")
	db.Close()

	db = open(t, path, Options{})
	servers, got, err := db.Catalog().Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) != 1 || !reflect.DeepEqual(servers[0], server) {
		t.Errorf("servers %+v, want %+v", servers, server)
	}
	if len(got) != len(tools) {
		t.Fatalf("%d tools, want %d", len(got), len(tools))
	}
	for _, tool := range got {
		if want := tools[tool.Remote]; !reflect.DeepEqual(tool, want) {
			t.Errorf("got  %+v\nwant %+v", tool, want)
		}
	}
}

func TestDamagedToolRecord(t *testing.T) {
	good, err := encodeTool(catalog.StoredTool{Server: "a", Remote: "b", Definition: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeTool(good); err != nil {
		t.Fatalf("the undamaged record: %v", err)
	}
	for n := range good {
		if _, err := decodeTool(good[:n]); err == nil {
			t.Errorf("cut to %d of %d bytes, it still reads", n, len(good))
		}
	}
	if _, err := decodeTool(append(good, 0)); err == nil {
		t.Error("with a byte more, it still reads")
	}
}
