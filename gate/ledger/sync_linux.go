package ledger

import (
	"os"
	"syscall"
)

// fdatasync makes a file's content and length durable, and leaves its times to
// the next opportunity: that is half the work of a full sync.
func fdatasync(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
