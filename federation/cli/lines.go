package cli

import (
	"io"
	"sync"
	"time"
)

const (
	// lineDelay is how long a line of the log may wait for others.
	lineDelay = 10 * time.Millisecond
	// lineRoom is how many bytes wait at most.
	lineRoom = 32 << 10
)

// A lineWriter lets the lines that a loaded daemon logs share a write: a write
// each would be a tenth of what a call costs. What is logged is what may be
// late; what must not get lost is in the ledger.
type lineWriter struct {
	out io.Writer

	mu      sync.Mutex
	waiting []byte
	timer   *time.Timer // set while something waits
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, line...)
	switch {
	case len(w.waiting) >= lineRoom:
		return len(line), w.write()
	case w.timer == nil:
		w.timer = time.AfterFunc(lineDelay, w.flush)
	}
	return len(line), nil
}

// flush writes what waits.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.write() // there is nowhere to say that the log cannot be written
}

// write is called with mu held.
func (w *lineWriter) write() error {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if len(w.waiting) == 0 {
		return nil
	}
	_, err := w.out.Write(w.waiting)
	w.waiting = w.waiting[:0]
	return err
}
