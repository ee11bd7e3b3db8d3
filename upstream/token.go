package upstream

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"
)

// tokens makes progress tokens that no other process and no other call uses.
type tokens struct {
	namespace string
	last      *atomic.Uint64
}

func newTokens() tokens { return tokens{"p" + rand.Text()[:12] + "-", new(atomic.Uint64)} }

func (t tokens) next() string { return t.namespace + strconv.FormatUint(t.last.Add(1), 10) }
