package federation

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestNothingIsWrittenAfterAPanic: a comment that keeps a connection alive and
// comes after its request is over would end the process.
func TestNothingIsWrittenAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gateway{now: time.Now} // without a catalogue, every call panics
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the call did not panic")
				}
			}()
			g.answerCall(context.Background(), &answer{w: w, streams: true}, &message{}, &invocation{})
		}()
		time.Sleep(2 * keepAliveEvery)
		if w.Body.Len() > 0 || w.Flushed {
			t.Errorf("written after the end: %q", w.Body)
		}
	})
}
