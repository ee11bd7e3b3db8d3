package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An InUseError says that another process writes this ledger.
type InUseError struct {
	Dir string
	PID int // 0 when it is not known
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s: in use by another process", e.Dir)
	}
	return fmt.Sprintf("%s: in use by process %d", e.Dir, e.PID)
}

// lock takes the directory. The number in the file is only there to be told; the
// lock itself ends with the process.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if held, err := lockFile(f); err != nil {
		text := make([]byte, 32)
		n, _ := f.ReadAt(text, 0)
		f.Close()
		if !held {
			return nil, fmt.Errorf("%s: the ledger cannot be locked: %w", dir, err)
		}
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
		return nil, &InUseError{dir, pid}
	}
	// The number helps people only, so failing to write it fails nothing.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(strconv.AppendInt(nil, int64(os.Getpid()), 10), 0)
	}
	return f, nil
}
