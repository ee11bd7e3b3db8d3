package conformance

import (
	"net/http"
	"slices"
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// legChecks look at which requests an operation consists of.
var legChecks = []check{
	{"legs of a test", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), pinned(p))
		if err := b.client.Test(b.ctx()); err != nil {
			t.Fatal(err)
		}
		b.expectLegs([]string{"server/discover"}, nil)
	}},
	{"legs of a listing", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.PageSize = 3
		b := open(t, impl, s, pinned(p))
		if _, err := b.client.List(b.ctx()); err != nil {
			t.Fatal(err)
		}
		pages := []string{"tools/list", "tools/list"}
		b.expectLegs(pages, pages)
	}},
	{"legs of a call", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), pinned(p))
		b.call(Call{Tool: "echo", Arguments: `{}`})
		b.expectLegs([]string{"tools/call"}, []string{"tools/call"})
	}},
	{"the result does not wait for the delete", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		release := make(chan struct{})
		s.On(http.MethodDelete, func(x *upstreamtest.Exchange) {
			select {
			case <-release:
			case <-x.Gone():
			}
			s.Answer(x)
		})
		b := open(t, impl, s, pinned(p))
		b.call(Call{Tool: "echo", Arguments: `{}`})
		close(release)
	}},
	{"a failing delete is no error", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, status := range []int{404, 405, 500} {
			s := upstreamtest.New(p)
			s.On(http.MethodDelete, func(x *upstreamtest.Exchange) { x.Raw(status, "text/plain", "no") })
			b := open(t, impl, s, pinned(p))
			b.call(Call{Tool: "echo", Arguments: `{}`})
			if _, err := b.client.List(b.ctx()); err != nil {
				t.Errorf("list with delete answered %d: %v", status, err)
			}
			b.close()
			if p.Sessions && s.Count(http.MethodDelete) != 2 {
				t.Errorf("delete answered %d was sent %d times for 2 operations", status, s.Count(http.MethodDelete))
			}
		}
	}},
	{"never a GET", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		_ = b.client.Test(b.ctx())
		_, _ = b.client.List(b.ctx())
		b.call(Call{Tool: "count", Arguments: `{}`, Progress: func([]byte) {}})
		b.close()
		for _, r := range b.server.Requests() {
			if r.HTTPMethod != http.MethodPost && r.HTTPMethod != http.MethodDelete {
				t.Errorf("the client sent %s", r.HTTPMethod)
			}
		}
	}},
}

// expectLegs compares what was sent with the legs of the profile's era. In the
// 2025 era work stands between handshake and DELETE.
func (b *bench) expectLegs(modern, work []string) {
	b.Helper()
	b.close()
	want := modern
	if !b.profile.Modern {
		want = append([]string{"initialize", "notifications/initialized"}, work...)
		if b.profile.Sessions {
			want = append(want, http.MethodDelete)
		}
	}
	if got := b.server.Methods(); !slices.Equal(got, want) {
		b.Errorf("the client sent %q, want %q", got, want)
	}
}
