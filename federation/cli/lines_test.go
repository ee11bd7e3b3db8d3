package cli

import (
	"io"
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

// Lines of many goroutines stay whole and none is lost, while the clock and full
// rooms write them.
func TestLinesStayWhole(t *testing.T) {
	out := &countedOut{}
	w := &lineWriter{out: out}
	line := strings.Repeat("x", 200) + "\n"
	var all sync.WaitGroup
	const writers, each = 8, 500
	for range writers {
		all.Go(func() {
			for range each {
				if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
			}
		})
	}
	all.Wait()
	w.flush()
	text, writes := out.state()
	if text != strings.Repeat(line, writers*each) {
		t.Errorf("%d bytes came out, want %d whole lines", len(text), writers*each)
	}
	if writes > writers*each/10 {
		t.Errorf("%d writes for %d lines", writes, writers*each)
	}
}

// A log that cannot be written loses what it was given, and no more.
func TestLinesThatCannotBeWritten(t *testing.T) {
	out := &failingOut{fails: 1}
	w := &lineWriter{out: out}
	if _, err := w.Write([]byte(strings.Repeat("a", lineRoom))); err == nil {
		t.Error("the failure is not told")
	}
	if _, err := w.Write([]byte("b\n")); err != nil {
		t.Error(err)
	}
	w.flush()
	if text := out.text.String(); text != "b\n" {
		t.Errorf("then came %d bytes, want the next line alone", len(text))
	}
}

// A failingOut fails so often first.
type failingOut struct {
	fails int
	text  strings.Builder
}

func (o *failingOut) Write(b []byte) (int, error) {
	if o.fails--; o.fails >= 0 {
		return 0, io.ErrClosedPipe
	}
	return o.text.Write(b)
}
