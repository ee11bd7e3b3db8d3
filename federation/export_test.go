package federation

import "os"

// WithSync is o with another way for the ledger to make a file durable.
func WithSync(o Options, sync func(*os.File) error) Options {
	o.sync = sync
	return o
}
