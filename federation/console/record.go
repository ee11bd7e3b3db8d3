package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

const (
	// firstWindow is how many entries are looked at first when a page wants the
	// latest that match; each further look takes four times as many.
	firstWindow = 1000
	// maxScanned bounds how far back one page of entries looks; it offers to go on.
	maxScanned = 50_000
)

// A filter says which entries are wanted. The zero value wants all.
type filter struct {
	Caller, Server, Tool, Verdict, Kind string
	From, To                            string // as a browser's date and time field writes them
	from, to                            time.Time
}

// clockForm is how a date and time field writes a moment, without a zone: ours.
const clockForm = "2006-01-02T15:04"

func filterOf(q url.Values) (f filter, err error) {
	f = filter{Caller: q.Get("caller"), Server: q.Get("server"), Tool: q.Get("tool"), Verdict: q.Get("verdict"), Kind: q.Get("kind"),
		From: q.Get("from"), To: q.Get("to")}
	for _, end := range []struct {
		text string
		to   *time.Time
	}{{f.From, &f.from}, {f.To, &f.to}} {
		if end.text == "" {
			continue
		}
		if *end.to, err = time.ParseInLocation(clockForm, end.text, time.Local); err != nil {
			return f, fmt.Errorf("time %q: wanted as %s", end.text, clockForm)
		}
	}
	return f, nil
}

// Set reports whether anything is left out.
func (f filter) Set() bool { return f != filter{} }

func (f filter) matches(e *gate.Entry) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(f.Server, string(e.Server)) && is(f.Verdict, string(e.Verdict)) && is(f.Kind, string(e.Kind)) &&
		(f.Caller == "" || f.Caller == string(e.Caller) || f.Caller == string(e.AnsweredBy)) &&
		strings.Contains(string(e.Tool), f.Tool) &&
		(f.from.IsZero() || !e.Time.Before(f.from)) && (f.to.IsZero() || e.Time.Before(f.to))
}

// Values are the filter as an address says it.
func (f filter) values() url.Values {
	q := url.Values{}
	for key, value := range map[string]string{"caller": f.Caller, "server": f.Server, "tool": f.Tool, "verdict": f.Verdict,
		"kind": f.Kind, "from": f.From, "to": f.To} {
		if value != "" {
			q.Set(key, value)
		}
	}
	return q
}

// Fields are what a form has to repeat to mean the same entries.
func (f filter) Fields() [][2]string {
	var out [][2]string
	for key, values := range f.values() {
		out = append(out, [2]string{key, values[0]})
	}
	return out
}

// At is the address of what comes before an entry.
func (f filter) At(before uint64) string {
	q := f.values()
	if before > 0 {
		q.Set("before", strconv.FormatUint(before, 10))
	}
	return "/console/ledger?" + q.Encode()
}

// A found is the entries of one page, latest first.
type found struct {
	Entries []gate.Entry
	Older   uint64 // look for more before this one; 0: that was all
	Scanned uint64
}

// latest returns the last entries before a number that match; before 0 is the end.
func latest(dir string, f filter, before uint64, limit int) (found, error) {
	if before == 0 {
		last, err := lastEntry(dir)
		if err != nil {
			return found{}, err
		}
		before = last + 1
	}
	var out found
	for window := uint64(firstWindow); before > 1; window *= 4 {
		from := uint64(1)
		if before > window {
			from = before - window
		}
		batch, oldest, err := matching(dir, f, from, before)
		if err != nil {
			return out, err
		}
		for i := len(batch) - 1; i >= 0; i-- {
			if len(out.Entries) == limit {
				out.Older = out.Entries[limit-1].Number
				return out, nil
			}
			out.Entries = append(out.Entries, batch[i])
		}
		out.Scanned += before - from
		before = from
		if oldest.IsZero() || !f.from.IsZero() && oldest.Before(f.from) {
			return out, nil // retention begins here, or the time that was asked for
		}
		if out.Scanned >= maxScanned {
			out.Older = before
			return out, nil
		}
	}
	return out, nil
}

var errEnough = errors.New("enough was read")

// matching reads the entries from one number up to another.
func matching(dir string, f filter, from, before uint64) (batch []gate.Entry, oldest time.Time, err error) {
	err = ledger.Read(dir, from, func(_ []byte, e gate.Entry) error {
		if e.Number >= before {
			return errEnough
		}
		if oldest.IsZero() {
			oldest = e.Time
		}
		if f.matches(&e) {
			batch = append(batch, e)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return batch, oldest, err
}

// lastEntry is the number of the last entry, 0 when there is none.
func lastEntry(dir string) (last uint64, err error) {
	err = ledger.Tail(context.Background(), dir, 1, false, func(_ []byte, e gate.Entry) error {
		last = e.Number
		return nil
	})
	return last, err
}

// export writes the lines that match as they are kept. write gets what has
// gathered now and then.
func export(dir string, f filter, write func([]byte) error) error {
	var out bytes.Buffer
	err := ledger.Read(dir, 1, func(raw []byte, e gate.Entry) error {
		if !f.matches(&e) {
			return nil
		}
		out.Write(raw)
		out.WriteByte('\n')
		if out.Len() < 64<<10 {
			return nil
		}
		defer out.Reset()
		return write(out.Bytes())
	})
	if err != nil {
		return err
	}
	return write(out.Bytes())
}
