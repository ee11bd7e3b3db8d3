package upstreamtest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// lingerLimit bounds how long a goroutine may take to end after the last test.
const lingerLimit = 5 * time.Second

// Main is a package's TestMain: it runs the tests, and fails when a goroutine of
// this module, or one with another of these words in its stack, outlives them.
func Main(m *testing.M, more ...string) {
	code := m.Run()
	if left := lingering(append(more, "gatehouse/")); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// lingering returns the stacks that hold one of words and do not end in time.
func lingering(words []string) (left string) {
	for deadline := time.Now().Add(lingerLimit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		left = ""
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			ours := slices.ContainsFunc(words, func(word string) bool { return strings.Contains(stack, word) })
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
