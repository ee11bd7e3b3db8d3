package upstream_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"
)

// scale divides the number of rounds of long tests.
var scale = 1

// TestMain fails when a goroutine is left. Most tests wait for a played server
// more than they work, so more of them run at once than there are processors.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "16")
	before := runtime.NumGoroutine()
	code := m.Run()
	if left := settle(before); left > 0 && code == 0 {
		buf := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%d goroutines are left\n%s\n", left, buf[:runtime.Stack(buf, true)])
		code = 1
	}
	os.Exit(code)
}

// settle waits until no more than before goroutines run, and says how many do
// nevertheless.
func settle(before int) int {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return 0
		}
	}
	return max(runtime.NumGoroutine()-before, 0)
}
