package ledger

import (
	"os"

	"gatehouse/gate"
)

// OpenFailing opens a ledger whose writes go through put.
func OpenFailing(o Options, put func(*os.File, []byte, int64) (int, error)) (*Ledger, error) {
	return open(o, put)
}

// AppendLine and Decode are the two directions of the format.
var (
	AppendLine = appendLine
	Decode     = decode
)

// SyncFile is how the ledger makes a file durable.
var SyncFile = fdatasync

// Hash is a shorthand.
type Hash = gate.Digest

// Queued is how many requests wait for the writer.
func (l *Ledger) Queued() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// OpenQuestions is how many questions a closed ledger remembers.
func (l *Ledger) OpenQuestions() int { return len(l.questions.open) }
