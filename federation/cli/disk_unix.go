//go:build linux || darwin || freebsd

package cli

import "golang.org/x/sys/unix"

// freeSpace is what an ordinary user may still write to the disk that holds dir.
func freeSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
