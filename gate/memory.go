package gate

import (
	"fmt"
	"sync"
	"time"
)

// A memory keeps what people said yes to, for tools whose server's table has an
// approval_memory. It covers the identical call of the same caller in the same
// session, and only that.
type memory struct {
	mu   sync.Mutex
	kept map[binding]kept
}

type kept struct {
	consent
	until time.Time
}

func (m *memory) keep(b binding, yes consent, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = make(map[binding]kept)
	}
	m.kept[b] = kept{yes, until}
}

// recall returns a consent without an approval to use up: its question was
// used by the first call.
func (m *memory) recall(now time.Time, b binding) (consent, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[b]
	if !ok || !now.Before(k.until) {
		return consent{}, false
	}
	return consent{by: k.by, note: fmt.Sprintf("covered by approval %d until %s", k.asked.question, clockText(k.until))}, true
}

func (m *memory) forget(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for b, k := range m.kept {
		if !now.Before(k.until) {
			delete(m.kept, b)
		}
	}
}

func clockText(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
