package federation

import (
	"context"
	"sync"
	"testing"

	"gatehouse/gate"
)

// A noticed context tells when somebody first asks for its end: the gate does,
// once it has judged a call and looks for a slot.
type noticed struct {
	context.Context
	once *sync.Once
	seen chan struct{}
}

func (n noticed) Done() <-chan struct{} {
	n.once.Do(func() { close(n.seen) })
	return n.Context.Done()
}

// TestQueuedCallsHearOfDecisions: a call that stands in the queue is judged by
// what is in force when its turn comes.
func TestQueuedCallsHearOfDecisions(t *testing.T) {
	for name, decide := range map[string]func(r *reloadRig) error{
		"the tool is disabled": func(r *reloadRig) error {
			_, err := r.g.Disable(context.Background(), "test", "mcp_up_echo")
			return err
		},
		"the caller is no administrator": func(r *reloadRig) error {
			r.reload(r.with("max_concurrent_calls = 1\nadmin = true\n", "max_concurrent_calls = 1\n"))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReloadRig(t)
			r.text = r.with("admin = true\n", "max_concurrent_calls = 1\nadmin = true\n")
			r.reload(r.text)
			_, _, running := r.submit("mcp_up_echo")
			ctx := noticed{t.Context(), new(sync.Once), make(chan struct{})}
			result := make(chan reply, 1)
			go func() {
				result <- r.g.invoke(ctx, &invocation{caller: r.g.Caller("alice"), name: "mcp_up_echo", arguments: []byte(`{}`), era: modern})
			}()
			<-ctx.seen
			if err := decide(r); err != nil {
				t.Fatal(err)
			}
			r.g.Gate.Settle(running, gate.Outcome{})
			if reply := <-result; reply.verdict != gate.Refused || r.upstream.Count("tools/call") != 0 {
				t.Errorf("verdict %s, and the upstream was called %d times", reply.verdict, r.upstream.Count("tools/call"))
			}
		})
	}
}
