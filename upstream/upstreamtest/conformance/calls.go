package conformance

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/upstream/upstreamtest"
)

// callChecks look at what a call makes of good answers.
var callChecks = []check{
	{"isError is a result", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		result, verdict, err := b.client.Call(b.ctx(), Call{Tool: "fail", Arguments: `{}`})
		if err != nil || verdict != "tool_error" || !strings.Contains(string(result), "it did not work") {
			t.Errorf("verdict %s, error %v, result %s", verdict, err, result)
		}
		if got := b.contacts.Load(); got != 1 {
			t.Errorf("%d contacts, want 1", got)
		}
	}},
	{"results pass as they are", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, want := range []string{
			`{"content":[],"structuredContent":{"id":9223372036854775807,"f":0.1000000000000000055}}`,
			`{"structuredContent":{"id":1}}`,
			`{"content":[{"type":"acme/chart","v":{"a":[1.10,1E400,-0]},"annotations":{"audience":["user"]}}],"_meta":{"com.acme/t":"z"},"more":"<&>"}`,
			`{"content":[{"type":"resource_link","uri":"http://10.0.0.1/","name":"r"}],"isError":false}`,
			`{ "content" : [ ] }`,
		} {
			s := upstreamtest.New(p)
			s.On("tools/call", func(x *upstreamtest.Exchange) { x.Result(want) })
			b := open(t, impl, s, nil)
			if got := b.call(Call{Tool: "echo", Arguments: `{}`}); string(got) != want {
				t.Errorf("result %s, want %s", got, want)
			}
		}
	}},
	{"unpaired surrogate escapes and nothing else", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Result(`{"content":[{"type":"text","text":"\ud800 \ud83d\ude00 \u00e9"}]}`)
		})
		b := open(t, impl, s, nil)
		want := `{"content":[{"type":"text","text":"\ufffd \ud83d\ude00 \u00e9"}]}`
		if got := b.call(Call{Tool: "echo", Arguments: `{}`}); string(got) != want {
			t.Errorf("result %s, want %s", got, want)
		}
	}},
	{"both framings say the same", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		other := p
		other.Stream = !p.Stream
		arguments := `{"text":"é 1.10 9007199254740993","nested":[[[]]]}`
		first := open(t, impl, upstreamtest.New(p), nil)
		second := open(t, impl, upstreamtest.New(other), nil)
		c := Call{Tool: "echo", Arguments: arguments}
		if got, want := string(first.call(c)), string(second.call(c)); got != want {
			t.Errorf("result %s in one framing, %s in the other", got, want)
		}
	}},
	{"any 2xx with a valid reply", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		for _, status := range []int{200, 201, 202} {
			s := upstreamtest.New(p)
			s.On("tools/call", func(x *upstreamtest.Exchange) {
				x.Raw(status, "Application/JSON; charset=utf-8", x.Message(`"result":`+upstreamtest.Text("ok")))
			})
			open(t, impl, s, nil).call(Call{Tool: "echo", Arguments: `{}`})
		}
	}},
	{"a body at the limit", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			message := x.Message(`"result":` + upstreamtest.Text("ok"))
			x.Raw(http.StatusOK, "application/json", message+strings.Repeat(" ", limit-len(message)))
		})
		open(t, impl, s, nil).call(Call{Tool: "echo", Arguments: `{}`})
	}},
	{"progress", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		var seen []string
		b.call(Call{Tool: "count", Arguments: `{}`, Progress: func(params []byte) { seen = append(seen, string(params)) }})
		if len(seen) != 3 || !strings.Contains(seen[2], `"progress":3,"total":3,"message":"step"`) {
			t.Errorf("progress %q", seen)
		}
		r, _ := b.server.Last("tools/call")
		if len(r.Meta("progressToken")) == 0 {
			t.Error("no progress token was sent")
		}
		b.call(Call{Tool: "count", Arguments: `{}`})
		if r, _ = b.server.Last("tools/call"); r.Meta("progressToken") != nil {
			t.Error("a progress token was sent and nobody asked for progress")
		}
	}},
	{"progress of another token is not ours", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Notify("notifications/progress", `{"progressToken":"other","progress":1}`)
			x.Notify("notifications/message", `{"level":"info","data":"hello"}`)
			x.Result(upstreamtest.Text("ok"))
		})
		b := open(t, impl, s, nil)
		b.call(Call{Tool: "echo", Arguments: `{}`, Progress: func(params []byte) { t.Errorf("progress %s", params) }})
	}},
	{"list_changed is passed over", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			for range 200 {
				x.Notify("notifications/tools/list_changed", `{}`)
			}
			x.Result(upstreamtest.Text("ok"))
		})
		b := open(t, impl, s, nil)
		b.call(Call{Tool: "echo", Arguments: `{}`})
		b.close()
		if s.Count("tools/list") != 0 {
			t.Error("the client listed again by itself")
		}
	}},
	{"a server's own request is never answered", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Event(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
			x.Event(`{"jsonrpc":"2.0","id":` + string(x.ID) + `,"method":"elicitation/create","params":{}}`)
			x.Result(upstreamtest.Text("ok"))
		})
		b := open(t, impl, s, nil)
		b.call(Call{Tool: "echo", Arguments: `{}`})
		b.close()
		for _, r := range s.Requests() {
			if r.HTTPMethod == http.MethodPost && r.Method == "" {
				t.Errorf("the client posted %s", r.Body)
			}
		}
	}},
	{"a stream that stays open after the answer", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			x.Event(x.Message(`"result":` + upstreamtest.Text("ok")))
			<-x.Gone()
		})
		b := open(t, impl, s, nil)
		start := time.Now()
		b.call(Call{Tool: "echo", Arguments: `{}`})
		if took := time.Since(start); took > budget/2 {
			t.Errorf("the call took %s", took)
		}
	}},
	{"one contact for each completed operation", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		s.PageSize = 1
		b := open(t, impl, s, nil)
		if err := b.client.Test(b.ctx()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.client.List(b.ctx()); err != nil {
			t.Fatal(err)
		}
		b.call(Call{Tool: "echo", Arguments: `{}`})
		if got := b.contacts.Load(); got != 3 {
			t.Errorf("%d contacts after 3 operations", got)
		}
	}},
	{"a caller that gives up", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		s := upstreamtest.New(p)
		arrived, gone := make(chan struct{}), make(chan struct{})
		s.On("tools/call", func(x *upstreamtest.Exchange) {
			close(arrived)
			<-x.Gone()
			close(gone)
		})
		b := open(t, impl, s, nil)
		ctx, cancel := context.WithCancel(b.ctx())
		go func() { <-arrived; cancel() }()
		_, verdict, err := b.client.Call(ctx, Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "outcome_unknown" {
			t.Errorf("verdict %s, error %v", verdict, err)
		}
		select {
		case <-gone: // the leg was cut
		case <-time.After(budget):
			t.Error("the request is still open")
		}
		b.close()
		told, ok := s.Last("notifications/cancelled")
		call, _ := s.Last("tools/call")
		switch {
		case p.Modern && ok:
			t.Error("notifications/cancelled was sent; closing the stream says it already")
		case !p.Modern && (!ok || string(told.Param("requestId")) != string(call.ID)):
			t.Errorf("notifications/cancelled names %s, the call was %s", told.Param("requestId"), call.ID)
		case !p.Modern && told.Header.Get("Mcp-Session-Id") != call.Header.Get("Mcp-Session-Id"):
			t.Error("notifications/cancelled was sent in another session")
		}
		if b.contacts.Load() != 0 {
			t.Error("an abandoned call counts as a contact")
		}
	}},
	{"a caller that gave up before", func(t *testing.T, p upstreamtest.Profile, impl Implementation) {
		b := open(t, impl, upstreamtest.New(p), nil)
		ctx, cancel := context.WithCancel(b.ctx())
		cancel()
		_, verdict, err := b.client.Call(ctx, Call{Tool: "echo", Arguments: `{}`})
		if err == nil || verdict != "cancelled" || len(b.server.Requests()) != 0 {
			t.Errorf("verdict %s, error %v, sent %q", verdict, err, b.server.Methods())
		}
	}},
}

// limit is what a client reads of one reply.
const limit = 2 << 20
