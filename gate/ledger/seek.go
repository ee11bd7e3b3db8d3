package ledger

import (
	"bufio"
	"io"
)

// nearEnough is how far before an entry a reader may begin: reading on from
// there costs less than another look.
const nearEnough = 128 << 10

// seek returns where a line begins in the first size bytes of a file, at or
// before the entry of that number. Numbers rise along a file, so it halves the
// distance; where a line cannot be read it looks further ahead, and at the worst
// the reader begins at the start.
func seek(file io.ReaderAt, size int64, number uint64) int64 {
	low, high := int64(0), size
	for high-low > nearEnough {
		middle := low + (high-low)/2
		start, found, ok := lineAfter(file, middle, high)
		if ok && found <= number {
			low = start
		} else {
			high = middle
		}
	}
	return low
}

// lineAfter returns where the first line that begins after from and ends before
// end begins, and the number of its entry.
func lineAfter(file io.ReaderAt, from, end int64) (start int64, number uint64, ok bool) {
	r := bufio.NewReaderSize(io.NewSectionReader(file, from, end-from), 4<<10)
	rest, err := r.ReadBytes('\n')
	if err != nil {
		return 0, 0, false
	}
	line, err := r.ReadBytes('\n')
	if err != nil {
		return 0, 0, false
	}
	k, ok := linkOf(line)
	return from + int64(len(rest)), k.number, ok
}
