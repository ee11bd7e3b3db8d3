package conformance

import (
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// replies puts every row of the table of replies before the client, once as the
// answer to a listing and once as the answer to a call.
func replies(t *testing.T, p upstreamtest.Profile, impl Implementation) {
	for _, kind := range upstreamtest.HostileKinds() {
		for _, method := range []string{"tools/list", "tools/call"} {
			script := upstreamtest.Misdeed(kind, method)
			if script == nil || tolerated[kind] || waits[kind] {
				continue
			}
			t.Run(kind+" to "+method, func(t *testing.T) {
				s := upstreamtest.New(p)
				s.On(method, script)
				b := open(t, impl, s, pinned(p))
				verdict, err := "not_sent", error(nil)
				if method == "tools/list" {
					_, err = b.client.List(b.ctx())
				} else {
					_, verdict, err = b.client.Call(b.ctx(), Call{Tool: "echo", Arguments: `{}`})
				}
				want := "outcome_unknown"
				if provenNotRun[kind] {
					want = "upstream_error"
				}
				switch {
				case err == nil:
					t.Fatal("the reply was accepted")
				case method == "tools/call" && verdict != want:
					t.Errorf("verdict %s, want %s, error %v", verdict, want, err)
				case method == "tools/call" && s.Count(method) != 1:
					t.Errorf("sent %d times", s.Count(method))
				case b.contacts.Load() != 0:
					t.Error("counts as a contact")
				}
			})
		}
	}
}

var (
	// tolerated are kinds that a strict client accepts nevertheless.
	tolerated = map[string]bool{"stays-open": true, "changed-flood": true, "unpaired-escapes": true, "rug-pull": true, "escapes": true}
	// waits only end with the budget; the checks of the budget have them.
	waits = map[string]bool{"silent": true, "trickling-body": true, "keep-alive": true, "progress-for-ever": true, "asks-back": true}
	// provenNotRun are answers of a server that ran nothing.
	provenNotRun = map[string]bool{"unauthorized": true, "forbidden": true, "busy": true}
)
