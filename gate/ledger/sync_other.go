//go:build !linux

package ledger

import "os"

// fdatasync makes a file durable.
func fdatasync(f *os.File) error { return f.Sync() }
