package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gatehouse/gate"
)

const (
	// followEvery is how often Tail looks for more.
	followEvery = 200 * time.Millisecond
	// A line after the head may be just being written, over the blanks that were
	// there, and a writer may be held up in the middle of it: one that is not
	// whole is looked at again so often, after such a pause.
	secondLooks = 100
	lookAgain   = 10 * time.Millisecond
)

// Read passes every entry from a number on to f, in order, until f returns an
// error, which Read returns. It needs no lock and can run beside a daemon; an
// entry that is just being written ends it. raw is good until f returns.
func Read(dir string, from uint64, f func(raw []byte, e gate.Entry) error) error {
	_, err := read(dir, cursor{next: from}, f)
	return err
}

// A cursor is how far a reader came.
type cursor struct {
	next   uint64 // number of the entry to read next
	path   string // where to look for it, if that is known
	offset int64
}

func read(dir string, c cursor, f func(raw []byte, e gate.Entry) error) (cursor, error) {
	acknowledged := readHead(dir).number // read first: up to there nothing changes
	files, err := segments(dir)
	if err != nil {
		return c, err
	}
	for i, s := range files {
		if i+1 < len(files) && files[i+1].first <= c.next {
			continue
		}
		if c, err = readSegment(s.path, acknowledged, c, f); err != nil {
			return c, err
		}
	}
	return c, nil
}

func readSegment(path string, acknowledged uint64, c cursor, f func(raw []byte, e gate.Entry) error) (cursor, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil // retention was faster
	}
	if err != nil {
		return c, fmt.Errorf("ledger: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return c, fmt.Errorf("ledger: %w", err)
	}
	resumed := c.path == path && c.offset <= info.Size()
	if !resumed {
		// A file that shrank lost what was never acknowledged: look again.
		c.path, c.offset = path, seek(file, info.Size(), c.next)
	}
	if _, err := file.Seek(c.offset, io.SeekStart); err != nil {
		return c, fmt.Errorf("ledger: %w", err)
	}
	start, looks := c.offset, 0
	for lines := newLineReader(file); ; {
		line, err := lines.next()
		if err == io.EOF {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("ledger: %w", err)
		}
		if (resumed || c.next > acknowledged) && looks < secondLooks && !intact(line) {
			if looks++; looks > 1 {
				time.Sleep(lookAgain)
			}
			resumed = false
			// What was read may have been taken back since, after a failed sync, and
			// other entries written in its place: the way there is found anew.
			if info, err = file.Stat(); err != nil {
				return c, fmt.Errorf("ledger: %w", err)
			}
			c.offset = seek(file, info.Size(), c.next)
			start, lines = c.offset, newLineReader(from(file, c.offset))
			continue
		}
		resumed = false
		if k, ok := linkOf(line); ok && k.number < c.next {
			c.offset = start + lines.end
			continue
		}
		e, err := decode(line)
		if err != nil {
			return c, fmt.Errorf("%s: an entry at byte %d is damaged (%w); run audit verify", filepath.Base(path), c.offset, err)
		}
		if err := f(line, e); err != nil {
			return c, err
		}
		c.next, c.offset = e.Number+1, start+lines.end
		if looks < secondLooks {
			looks = 0
		}
	}
}

// Tail passes the last n entries to f and, with follow, every further one until
// ctx ends; then it returns nil.
func Tail(ctx context.Context, dir string, n int, follow bool, f func(raw []byte, e gate.Entry) error) error {
	last, err := lastNumber(dir)
	if err != nil {
		return err
	}
	c := cursor{next: 1}
	if uint64(max(n, 0)) < last {
		c.next = last - uint64(max(n, 0)) + 1
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if c, err = read(dir, c, f); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lastNumber returns the number of the last whole entry, 0 when there is none.
func lastNumber(dir string) (uint64, error) {
	files, err := segments(dir)
	if err != nil {
		return 0, err
	}
	for i := len(files) - 1; i >= 0; i-- {
		n, err := lastOf(files[i].path)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// lastOf reads a file from its end, in growing pieces, until a whole line is in one.
func lastOf(path string) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, fmt.Errorf("ledger: %w", err)
	}
	for size := int64(64 << 10); ; size *= 4 {
		from := max(info.Size()-size, 0)
		piece := make([]byte, info.Size()-from)
		if _, err := file.ReadAt(piece, from); err != nil && err != io.EOF {
			return 0, fmt.Errorf("ledger: %w", err)
		}
		for end := bytes.LastIndexByte(piece, '\n'); end > 0; {
			begin := bytes.LastIndexByte(piece[:end], '\n') + 1
			if begin == 0 && from > 0 {
				break
			}
			if k, ok := linkOf(piece[begin:end]); ok && intact(piece[begin:end]) {
				return k.number, nil
			}
			end = begin - 1 // being written
		}
		if from == 0 {
			return 0, nil
		}
	}
}
