package trace

import (
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// TestMain fails the package when a goroutine of a tracer outlives it, ours or the SDK's.
func TestMain(m *testing.M) { upstreamtest.Main(m, "go.opentelemetry.io/") }
