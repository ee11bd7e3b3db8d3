//go:build unix

package ledger

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes f for this process until it is closed or the process ends,
// however it ends.
func lockFile(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}
