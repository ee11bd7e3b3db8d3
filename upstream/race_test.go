//go:build race

package upstream_test

// The race detector makes everything some ten times slower.
func init() { scale = 12 }
