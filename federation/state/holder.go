package state

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// errReadOnly is what a file system mounted without write access answers.
const errReadOnly = syscall.EROFS

// An InUseError says that another process holds the state file.
type InUseError struct {
	Path string
	PID  int // 0 when it could not be told
}

func (e *InUseError) Error() string {
	if e.PID > 0 {
		return fmt.Sprintf("%s: in use by process %d", e.Path, e.PID)
	}
	return e.Path + ": in use by another process"
}

// pidPath is where the holder leaves its number for others to name.
func pidPath(path string) string { return path + ".pid" }

func writePID(path string) {
	// Failing costs one number in somebody else's message, nothing more.
	_ = os.WriteFile(pidPath(path), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

func removePID(path string) { _ = os.Remove(pidPath(path)) }

// readPID returns the holder's number, 0 when the file is missing, unreadable
// or names a process that no longer exists.
func readPID(path string) int {
	b, err := os.ReadFile(pidPath(path))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
		return 0
	}
	return pid
}
