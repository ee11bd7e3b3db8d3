//go:build !unix

package ledger

import (
	"errors"
	"os"
)

// lockFile refuses: without a lock that ends with its process, two writers could
// open one ledger.
func lockFile(*os.File) (held bool, err error) {
	return false, errors.New("file locks are not available on this system")
}
