package catalog

import (
	"fmt"
	"runtime"
	"testing"

	"gatehouse/gate"
)

// Every tool is restored, in its place; what was refused or cannot be read is
// there and not ready.
func TestRestoreAll(t *testing.T) {
	for _, processors := range []int{1, 8} {
		t.Run(fmt.Sprint(processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			var tools []StoredTool
			for i := range 300 {
				tool := StoredTool{Server: "a", Remote: gate.RemoteName(fmt.Sprintf("t%d", i)),
					Definition: fmt.Appendf(nil, `{"name":"t%d","inputSchema":{"type":"object","title":"%d"}}`, i, i)}
				switch i % 5 {
				case 1:
					tool.Refusal = "unfit"
				case 2:
					tool.Definition = []byte("{")
				}
				tools = append(tools, tool)
			}
			records := restoreAll(tools)
			if len(records) != len(tools) {
				t.Fatalf("%d records of %d tools", len(records), len(tools))
			}
			for i, r := range records {
				if r.Remote != tools[i].Remote || (r.ready != nil) != (i%5 != 1 && i%5 != 2) {
					t.Errorf("record %d is %q, ready %t", i, r.Remote, r.ready != nil)
				}
				if r.ready != nil && string(r.ready.input) != fmt.Sprintf(`{"type":"object","title":"%d"}`, i) {
					t.Errorf("record %d has the schema %s", i, r.ready.input)
				}
			}
			if none := restoreAll(nil); len(none) != 0 {
				t.Errorf("%d records of nothing", len(none))
			}
		})
	}
}
