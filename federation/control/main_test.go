package control

import (
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// TestMain fails the package when a goroutine of ours outlives what started it.
func TestMain(m *testing.M) { upstreamtest.Main(m) }
