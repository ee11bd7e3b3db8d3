//go:build !linux && !darwin

package console

// freeDisk is not known here.
func freeDisk(string) (uint64, bool) { return 0, false }
