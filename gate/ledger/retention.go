package ledger

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gatehouse/gate"
)

// pruneEvery is how often the writer looks for segments that are old enough to go.
const pruneEvery = time.Hour

// retentionReason marks the checkpoints that vouch for what retention removed.
const retentionReason = "retention"

// maintain signs, begins a new segment when this one is full or old, and removes
// old ones. Nothing here is urgent: what fails is tried again.
func (l *Ledger) maintain() {
	if l.at != l.synced || l.at.size == 0 || l.torn {
		return
	}
	now := l.now()
	if now.Sub(l.signed) >= signEvery {
		l.sign()
	}
	if l.at.size >= l.segmentBytes || l.retention > 0 && now.Sub(l.segmentFirst) > l.retention/8 {
		if err := l.rotate(); err != nil {
			l.log.Warn("ledger: a new segment cannot be begun; going on with the old one", "error", err)
			return
		}
	}
	if l.retention > 0 && now.Sub(l.pruned) >= pruneEvery {
		l.pruned = now
		if err := l.prune(now.Add(-l.retention)); err != nil {
			l.log.Warn("ledger: old segments cannot be removed", "error", err)
		}
	}
}

func (l *Ledger) rotate() error {
	path := segmentPath(l.dir, l.at.number+1)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(l.dir); err != nil {
		return errors.Join(err, file.Close(), os.Remove(path))
	}
	l.trim()
	old := l.file
	l.file, l.path, l.segmentFirst = file, path, time.Time{}
	l.at.size, l.room = 0, 0
	l.synced = l.at
	return old.Close()
}

// prune removes the segments whose entries are all older than before. For each
// there is first a checkpoint on record, which says what its last entry was, so
// that what remains can still be verified, and where there is a key, a signature
// over that.
func (l *Ledger) prune(before time.Time) error {
	files, err := segments(l.dir)
	if err != nil {
		return err
	}
	var old []segment
	var vouched []gate.Entry
	for i := 0; i+1 < len(files); i++ {
		next, began, err := firstLink(files[i+1])
		if err != nil || !began.Before(before) {
			break
		}
		old = append(old, files[i])
		vouched = append(vouched, gate.Entry{
			Kind: gate.KindCheckpoint, Reason: retentionReason, Through: next.number - 1, ResultDigest: next.prev,
			Detail: fmt.Sprintf("entries %d to %d are older than %s and were removed", files[i].first, next.number-1, l.retention),
		})
	}
	if len(old) == 0 {
		return nil
	}
	r := &request{entries: vouched, done: make(chan error, 1)}
	l.commit([]*request{r}, true)
	if err := <-r.done; err != nil {
		return err
	}
	if l.sign(); l.signer != nil && l.signedUpTo < l.at.number {
		return errors.New("the checkpoint that vouches for them cannot be signed")
	}
	for _, f := range old {
		if err := os.Remove(f.path); err != nil {
			return err
		}
	}
	return syncDir(l.dir)
}

// firstLink reads the first entry of a segment and its time.
func firstLink(f segment) (k link, at time.Time, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return k, at, err
	}
	defer file.Close()
	line, err := newLineReader(file).next()
	if err == io.EOF {
		return k, at, errors.New("an empty segment")
	}
	if err != nil {
		return k, at, err
	}
	k, ok := linkOf(line)
	if !ok || !intact(line) {
		return k, at, fmt.Errorf("%s: the first entry is damaged", f.path)
	}
	return k, at, setTime(&at, string(textAfter(line, `"time":"`)))
}
