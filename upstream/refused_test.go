package upstream_test

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"gatehouse/gate"
	"gatehouse/upstream"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/upstreamtest"
)

// told notes what a session is told about its credential.
type told struct {
	credential.Session
	heard *[]int
}

func (s told) Rejected(_ context.Context, status int, _ string) { *s.heard = append(*s.heard, status) }
func (s told) Accepted()                                        { *s.heard = append(*s.heard, http.StatusOK) }

type tellers struct{ heard []int }

func (c *tellers) Open(credential.Auth, credential.Purpose) (credential.Session, error) {
	session, err := credential.NewBroker(credential.Options{}).Open(credential.Auth{}, credential.Discovery())
	return told{session, &c.heard}, err
}

// A session hears of each 401 and 403 and of what went well, and of nothing
// that is not about its credential.
func TestCredentialHearsOfRefusals(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	status := 0
	s.On("tools/call", func(x *upstreamtest.Exchange) {
		if status != 0 {
			x.Raw(status, "text/plain", "no")
			return
		}
		x.Result(`{"resultType":"complete","content":[]}`)
	})
	tellers := &tellers{}
	c := clientWith(t, tellers, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	for _, status = range []int{401, 403, 500, 404, 0} {
		_, err := call(t, c, "demo", "echo", "ada", upstream.CallOptions{})
		if status == 0 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if failed := failure(t, err); status < 500 && failed.Verdict != gate.UpstreamError {
			t.Errorf("%d: verdict %s", status, failed.Verdict)
		}
	}
	if want := []int{401, 403, 200}; !slices.Equal(tellers.heard, want) {
		t.Errorf("heard %v, want %v", tellers.heard, want)
	}
}
