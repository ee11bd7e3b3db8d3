package cli

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A countedOut counts its writes.
type countedOut struct {
	mu     sync.Mutex
	text   strings.Builder
	writes int
}

func (o *countedOut) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writes++
	return o.text.Write(b)
}

func (o *countedOut) state() (string, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.writes
}

func TestLinesShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &countedOut{}
		w := &lineWriter{out: out}
		w.Write([]byte("one\n"))
		w.Write([]byte("two\n"))
		if text, _ := out.state(); text != "" {
			t.Errorf("%q was written at once", text)
		}
		time.Sleep(lineDelay)
		synctest.Wait()
		if text, writes := out.state(); text != "one\ntwo\n" || writes != 1 {
			t.Errorf("got %q in %d writes, want both lines in one", text, writes)
		}
		w.Write([]byte("three\n"))
		w.flush()
		w.flush()
		if text, writes := out.state(); !strings.HasSuffix(text, "three\n") || writes != 2 {
			t.Errorf("after a flush: %q in %d writes", text, writes)
		}
		w.Write([]byte(strings.Repeat("x", lineRoom)))
		if text, _ := out.state(); !strings.HasSuffix(text, "x") {
			t.Error("more than lineRoom waits")
		}
		time.Sleep(time.Second) // no timer is left that would write to nothing
	})
}
