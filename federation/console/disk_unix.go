//go:build linux || darwin

package console

import "syscall"

// freeDisk is how many bytes are free to us where path is.
func freeDisk(path string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
