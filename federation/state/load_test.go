package state

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// Tools come back whole and in the order of their keys, however many decode.
func TestLoadManyTools(t *testing.T) {
	for _, processors := range []int{1, 8} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			db := open(t, filepath.Join(t.TempDir(), "gatehouse.db"), Options{})
			defer db.Close()
			const many = 500
			var put []catalog.StoredTool
			for i := range many {
				name := gate.RemoteName(fmt.Sprintf("tool%04d", i))
				put = append(put, catalog.StoredTool{Server: "notes", Remote: name, Definition: fmt.Appendf(nil, `{"name":%q}`, name)})
			}
			if err := db.Catalog().Save(catalog.StoredServer{ID: "notes"}, put, nil); err != nil {
				t.Fatal(err)
			}
			_, tools, err := db.Catalog().Load()
			if err != nil || len(tools) != many {
				t.Fatalf("%d tools, %v", len(tools), err)
			}
			for i, tool := range tools {
				if want := put[i]; tool.Remote != want.Remote || string(tool.Definition) != string(want.Definition) {
					t.Fatalf("tool %d is %q with %s, want %q", i, tool.Remote, tool.Definition, want.Remote)
				}
			}
			err = db.bolt.Update(func(tx *bbolt.Tx) error {
				return tx.Bucket(bucketTools).Put(toolKey("notes", "tool0123"), []byte{9})
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := db.Catalog().Load(); err == nil || !strings.Contains(err.Error(), "tool0123") || strings.Contains(err.Error(), "tool0124") {
				t.Errorf("one damaged record of many: %v", err)
			}
		})
	}
}
