package conformance

import (
	"io"
	"log"
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// discard takes what net/http says about connections that a check cuts.
var discard = log.New(io.Discard, "", 0)

// A check is one thing that a client has to do right.
type check struct {
	name string
	run  func(t *testing.T, p upstreamtest.Profile, impl Implementation)
}

// Run puts an implementation through every check of one profile. Checks run in
// parallel: most of what they take is waiting.
func Run(t *testing.T, p upstreamtest.Profile, impl Implementation) {
	for _, group := range [][]check{legChecks, requestChecks, listChecks, callChecks, budgetChecks, failureChecks, sessionChecks, eraChecks} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, p, impl)
			})
		}
	}
	t.Run("replies", func(t *testing.T) { replies(t, p, impl) })
}
