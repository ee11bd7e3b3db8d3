package ledger

import (
	"bytes"
	"time"
)

// A file that grows with every commit costs more than its bytes: its length is
// part of the file system's own journal, and a sync waits for that and for
// everything that others have in it. So the file that is appended to is laid out
// ahead with blanks, which entries overwrite: a sync then waits for the entries
// alone. The file stays text, and is cut to its entries when it is full or the
// ledger is closed.
const (
	blank = ' '

	// sector is the least that a disk writes as a whole: what a crash leaves out of
	// a commit stays blank for at least as long. An edit leaves no such gap.
	sector = 512
	// roomBytes is how far a file is laid out ahead.
	roomBytes = 1 << 20
	// cramped is how long no room is tried for after there was none.
	cramped = time.Minute
)

var blanks = bytes.Repeat([]byte{blank}, 32<<10)

// extend lays the file out beyond end, where the next entries will end. Where
// there is no space for that it takes none: what is left of a disk is for
// entries.
func (l *Ledger) extend(end int64, now time.Time) {
	if now.Before(l.cramped) {
		return
	}
	for at := end; at < end+roomBytes; at += int64(len(blanks)) {
		l.room = at + int64(len(blanks))
		if _, err := l.put(l.file, blanks, at); err != nil {
			l.cramped = now.Add(cramped)
			l.trim()
			return
		}
	}
}

// trim cuts the file to its entries. A file that is not cut reads the same.
func (l *Ledger) trim() {
	if l.torn || l.room <= l.at.size {
		return
	}
	if err := l.file.Truncate(l.at.size); err != nil {
		l.log.Warn("ledger: the room after the last entry cannot be cut off", "file", l.path, "error", err)
		return
	}
	l.room = l.at.size
}
