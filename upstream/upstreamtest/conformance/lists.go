package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gatehouse/upstream/upstreamtest"
)

// one is a tool as it stands in a listing.
const one = `{"name":"one","inputSchema":{"type":"object"}}`

// listed makes a script that answers tools/list with what page says of the
// cursor, which is raw; nil is the first page.
func listed(page func(cursor string, n int) string) upstreamtest.Script {
	n := 0
	return func(x *upstreamtest.Exchange) {
		n++
		x.Result(page(string(x.Param("cursor")), n))
	}
}

func pageOf(tools, next string) string {
	if next != "" {
		next = `,"nextCursor":` + next
	}
	return `{"tools":[` + tools + `]` + next + `}`
}

// listChecks walk lists, good and endless ones.
var listChecks = []check{
	{"pages are joined in order, each tool as it came", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.PageSize = 2
		odd := `{ "inputSchema" : {"type":"object","maximum":9007199254740993,"x-y":[1.10]}, "name":"odd", "vendor":{"b":1,"a":2} }`
		s.Tools = append(s.Tools, upstreamtest.Tool{Name: "odd", Definition: odd})
		b := open(t, impl, s, nil)
		tools, err := b.client.List(b.ctx())
		if err != nil || len(tools) != len(s.Tools) {
			t.Fatalf("%d tools of %d, error %v", len(tools), len(s.Tools), err)
		}
		for i, tool := range tools {
			if string(tool) != s.Tools[i].Definition {
				t.Errorf("tool %d is %s, want %s", i, tool, s.Tools[i].Definition)
			}
		}
	}},
	{"the first page has no cursor, later ones the server's own", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		const odd = `"c\u0041\/ö\" "`
		s.On("tools/list", listed(func(cursor string, n int) string {
			if n == 1 {
				if cursor != "" {
					t.Errorf("the first page was asked for with cursor %s", cursor)
				}
				return pageOf(one, odd)
			}
			if (&upstreamtest.Request{Params: []byte(`{"c":` + cursor + `}`)}).Text("c") != `cA/ö" ` {
				t.Errorf("the second page was asked for with cursor %s, want %s", cursor, odd)
			}
			return pageOf("", "")
		}))
		b := open(t, impl, s, nil)
		if _, err := b.client.List(b.ctx()); err != nil {
			t.Error(err)
		}
	}},
	{"the end of a list", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, next := range []string{"", "null", `""`} {
			s := upstreamtest.New(p)
			s.On("tools/list", listed(func(_ string, n int) string {
				if n == 1 {
					return pageOf(one, next)
				}
				return pageOf("", "")
			}))
			want := 1
			if p.Modern && next == `""` {
				want = 2 // there, only absence ends a list
			}
			b := open(t, impl, s, nil)
			tools, err := b.client.List(b.ctx())
			if err != nil || len(tools) != 1 || s.Count("tools/list") != want {
				t.Errorf("nextCursor %q: %d tools, error %v, %d pages asked for, want %d", next, len(tools), err, s.Count("tools/list"), want)
			}
		}
	}},
	{"a list that is refused", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		many := strings.Repeat(","+one, 2000)[1:]
		for name, c := range map[string]struct {
			page  func(cursor string, n int) string
			pages int // how many may be asked for
		}{
			"the same cursor":     {func(string, int) string { return pageOf(one, `"c1"`) }, 2},
			"cursors in a circle": {func(_ string, n int) string { return pageOf(one, fmt.Sprintf(`"c%d"`, n%2)) }, 3},
			"the same cursor spelled otherwise": {func(_ string, n int) string {
				if n == 1 {
					return pageOf(one, `"c"`)
				}
				return pageOf(one, `"\u0063"`)
			}, 2},
			"new cursors for ever":     {func(_ string, n int) string { return pageOf("", fmt.Sprintf(`"c%d"`, n)) }, 50},
			"more than 5 000 tools":    {func(_ string, n int) string { return pageOf(many, fmt.Sprintf(`"c%d"`, n)) }, 3},
			"a number for a cursor":    {func(string, int) string { return pageOf(one, `5`) }, 1},
			"an object for a cursor":   {func(string, int) string { return pageOf(one, `{}`) }, 1},
			"no tools":                 {func(string, int) string { return `{}` }, 1},
			"tools null":               {func(string, int) string { return `{"tools":null}` }, 1},
			"tools that are an object": {func(string, int) string { return `{"tools":{}}` }, 1},
		} {
			s := upstreamtest.New(p)
			s.On("tools/list", listed(c.page))
			b := open(t, impl, s, pinned(p))
			tools, err := b.client.List(b.ctx())
			if err == nil || tools != nil {
				t.Errorf("%s: accepted with %d tools", name, len(tools))
				continue
			}
			if !strings.Contains(err.Error(), serverName) {
				t.Errorf("%s: the error does not name the server: %v", name, err)
			}
			if got := s.Count("tools/list"); got != c.pages {
				t.Errorf("%s: %d pages were asked for, want %d", name, got, c.pages)
			}
			if b.contacts.Load() != 0 {
				t.Errorf("%s: counts as a contact", name)
			}
		}
	}},
	{"5 000 tools and 50 pages are not too many", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		hundred := strings.Repeat(","+one, 100)[1:]
		s := upstreamtest.New(p)
		s.On("tools/list", listed(func(_ string, n int) string {
			if n == 50 {
				return pageOf(hundred, "")
			}
			return pageOf(hundred, fmt.Sprintf(`"c%d"`, n))
		}))
		b := open(t, impl, s, nil)
		tools, err := b.client.List(b.ctx())
		if err != nil || len(tools) != 5000 {
			t.Errorf("%d tools, error %v", len(tools), err)
		}
	}},
	{"a later page that fails fails the list", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/list", func(x *upstreamtest.Exchange) {
			if x.Param("cursor") != nil {
				x.Error(http.StatusOK, -32602, "invalid cursor")
				return
			}
			x.Result(pageOf(one, `"c1"`))
		})
		b := open(t, impl, s, nil)
		tools, err := b.client.List(b.ctx())
		if err == nil || tools != nil || !strings.Contains(err.Error(), "page 2") || s.Count("tools/list") != 2 {
			t.Errorf("%d tools, error %v, %d pages asked for", len(tools), err, s.Count("tools/list"))
		}
	}},
}
