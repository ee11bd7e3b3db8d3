package trace

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the package when a goroutine of a tracer outlives it.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := lingering(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// lingering returns the stacks of our goroutines, and of the SDK's, that do not
// end in time.
func lingering() (left string) {
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			ours := strings.Contains(stack, "gatehouse/") || strings.Contains(stack, "go.opentelemetry.io/")
			if ours && !strings.Contains(stack, "TestMain(") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
	}
	return left
}
