package credential

import (
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestMain fails the package when a goroutine outlives its tests.
func TestMain(m *testing.M) {
	before := runtime.NumGoroutine()
	code := m.Run()
	http.DefaultClient.CloseIdleConnections() // the browser of the login tests
	for range 200 {
		if runtime.NumGoroutine() <= before {
			os.Exit(code)
		}
		time.Sleep(10 * time.Millisecond)
	}
	stacks := make([]byte, 1<<20)
	fmt.Fprintf(os.Stderr, "goroutines outlive the tests:\n%s", stacks[:runtime.Stack(stacks, true)])
	os.Exit(1)
}
