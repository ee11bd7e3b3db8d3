package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gatehouse/gate"
)

const (
	segmentSuffix = ".jsonl"
	lockName      = "lock"
	headName      = "head"
)

// A segment is one file of the directory.
type segment struct {
	path  string
	first uint64 // number of its first entry, from its name
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", first, segmentSuffix))
}

// segments lists the files of dir in order.
func segments(dir string) ([]segment, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	var found []segment
	for _, f := range files {
		digits, ok := strings.CutSuffix(f.Name(), segmentSuffix)
		if !ok {
			continue
		}
		first, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || len(digits) != 20 {
			continue
		}
		found = append(found, segment{filepath.Join(dir, f.Name()), first})
	}
	slices.SortFunc(found, func(a, b segment) int { return strings.Compare(a.path, b.path) })
	return found, nil
}

// A lineReader reads a file line by line, however long the lines are. The line
// is good until the next one is read.
type lineReader struct {
	r    *bufio.Reader
	long []byte
	end  int64 // offset after the line that was read last
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 256<<10)}
}

// next returns a line without its end. At the end of the file it returns io.EOF,
// and with it what follows the last line end, if anything does. Where a line would
// begin with a blank there is only room.
func (l *lineReader) next() ([]byte, error) {
	if first, err := l.r.Peek(1); err == nil && first[0] == blank {
		return nil, io.EOF
	}
	l.long = l.long[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			l.long = append(l.long, part...)
			continue
		}
		if len(l.long) > 0 {
			l.long = append(l.long, part...)
			part = l.long
		}
		if err != nil {
			return part, err
		}
		l.end += int64(len(part))
		return part[:len(part)-1], nil
	}
}

// from reads a file from an offset on.
func from(file io.ReaderAt, offset int64) io.Reader {
	return io.NewSectionReader(file, offset, math.MaxInt64-offset)
}

// A head is the last entry that was acknowledged, as the file of that name has it.
type head struct {
	number uint64
	hash   gate.Digest
}

// readHead returns the zero head when there is none that can be read, and when
// nothing was acknowledged yet.
func readHead(dir string) head {
	h, _ := findHead(dir)
	return h
}

// findHead is readHead, and reports whether there is one.
func findHead(dir string) (h head, ok bool) {
	b, err := os.ReadFile(filepath.Join(dir, headName))
	if err != nil {
		return head{}, false
	}
	number, digits, ok := strings.Cut(strings.TrimSuffix(string(b), "\n"), " ")
	if !ok || h.hash.UnmarshalText([]byte(digits)) != nil {
		return head{}, false
	}
	if h.number, err = strconv.ParseUint(number, 10, 64); err != nil {
		return head{}, false
	}
	return h, true
}

// appendHead is the text of the file: of one length, so that it can be
// overwritten in place.
func appendHead(dst []byte, h head) []byte {
	return fmt.Appendf(dst, "%020d %x\n", h.number, h.hash[:])
}

// syncDir makes a new or removed name in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
