package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// A Report is what Verify found.
type Report struct {
	Entries   uint64   `json:"entries"`
	First     uint64   `json:"first"` // 0 when there is no entry
	Last      uint64   `json:"last"`
	Bad       *Fault   `json:"bad,omitempty"`    // nil: the chain is whole
	Torn      *Fault   `json:"torn,omitempty"`   // what a crash left of entries that were never acknowledged; no damage
	Signed    uint64   `json:"signed,omitempty"` // up to where a checkpoint is signed with a given key
	Unsettled []uint64 `json:"unsettled"`        // intents without an outcome; of a running daemon, calls under way
}

// A Fault is the first place where the chain does not hold.
type Fault struct {
	Number uint64 `json:"number"` // of the entry, or of the one that should be there
	File   string `json:"file"`
	Line   int    `json:"line"`
	Text   string `json:"text"`
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s:%d: record %d: %s", f.File, f.Line, f.Number, f.Text)
}

// Verify walks the whole chain of a directory. It returns an error only when the
// files cannot be read; what is wrong with them is in the report. It can run
// beside a daemon.
func Verify(dir string) (Report, error) { return Compare(dir, Evidence{}) }

// Compare is Verify, and also holds the chain to what is known from elsewhere.
func Compare(dir string, known Evidence) (Report, error) {
	// The head is read first: entries that are acknowledged meanwhile are no loss.
	v := verifier{open: make(map[uint64]bool), vouched: make(map[head]uint64), evidence: known}
	v.head, v.headed = findHead(dir)
	if err := v.readCopy(); err != nil {
		return Report{}, err
	}
	files, err := segments(dir)
	if err != nil {
		return Report{}, err
	}
	for i, f := range files {
		if err := v.file(f.path, i == len(files)-1); err != nil {
			return Report{}, err
		}
	}
	v.finish(dir)
	v.report.Unsettled = slices.Sorted(maps.Keys(v.open))
	return v.report, nil
}

type verifier struct {
	report  Report
	head    head
	headed  bool // without a head nothing is known to be unacknowledged
	before  head // the entry before
	removed head // what the first entry follows, when that is gone
	origin  Fault
	vouched map[head]uint64 // what retention removed, by the checkpoint that says so
	open    map[uint64]bool

	evidence Evidence
	copied   map[uint64]gate.Digest // what the copy says and was not met yet

	path string
	line int
}

func (v *verifier) file(path string, last bool) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // retention was faster
	}
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer file.Close()
	v.path, v.line = filepath.Base(path), 0
	start, looks := int64(0), 0
	for lines := newLineReader(file); ; {
		begin := start + lines.end
		line, err := lines.next()
		if err == io.EOF {
			// In the last file an unfinished line is being written, or will be cut
			// off. Had it been acknowledged, the head would tell.
			if v.line++; len(line) > 0 && !last {
				v.bad(v.before.number+1, "the line has no end")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		if last && v.report.Bad == nil && v.before.number >= v.head.number && looks < secondLooks && !intact(line) {
			looks++
			time.Sleep(lookAgain)
			start, lines = begin, newLineReader(from(file, begin))
			continue
		}
		looks = 0
		v.line++
		if last && v.torn(line) {
			return nil
		}
		v.entry(line)
	}
}

// torn reports whether line is where a commit breaks off that was under way when
// the machine stopped. Opening the ledger cuts it off with all that follows.
func (v *verifier) torn(line []byte) bool {
	if v.report.Bad != nil || !v.headed || v.before.number < v.head.number || intact(line) || !bytes.Contains(line, blanks[:sector]) {
		return false
	}
	v.report.Torn = &Fault{v.before.number + 1, v.path, v.line, "was being written when the machine stopped, and was never acknowledged; the next start cuts it off"}
	return true
}

func (v *verifier) entry(line []byte) {
	k, ok := linkOf(line)
	v.report.Entries++
	switch {
	case !ok:
		v.bad(v.before.number+1, "this is not an entry")
		return
	case v.report.Entries == 1:
		if k.number > 1 {
			v.removed = head{k.number - 1, k.prev}
			v.origin = Fault{k.number, v.path, v.line, fmt.Sprintf("entries 1 to %d are missing, and no checkpoint vouches for them", k.number-1)}
		} else if !k.prev.IsZero() {
			v.bad(k.number, "the first entry follows another")
		}
	case k.number != v.before.number+1:
		v.bad(v.before.number+1, disorder(k.number, v.before.number))
	case k.prev != v.before.hash:
		v.bad(k.number, fmt.Sprintf("does not follow %d; the file was edited or is damaged", v.before.number))
	}
	if !intact(line) {
		v.bad(k.number, "its hash is not the hash of the line; the file was edited or is damaged")
	} else if err := rawjson.Check(line); err != nil {
		v.bad(k.number, "cannot be read: "+err.Error())
	}
	v.note(k, line)
}

func disorder(number, before uint64) string {
	switch {
	case number == before:
		return fmt.Sprintf("%d is there twice", number)
	case number < before:
		return fmt.Sprintf("%d comes after %d", number, before)
	}
	return fmt.Sprintf("%d follows %d; what was between is missing", number, before)
}

func (v *verifier) note(k link, line []byte) {
	if v.before = (head{k.number, k.hash}); v.report.First == 0 {
		v.report.First = k.number
	}
	v.report.Last = max(v.report.Last, k.number)
	if k.number == v.head.number && k.hash != v.head.hash {
		v.bad(k.number, "is not the entry that was acknowledged under this number")
	}
	v.compare(k)
	switch k.kind {
	case gate.KindIntent:
		v.open[k.number] = true
	case gate.KindOutcome:
		delete(v.open, k.intent)
	case gate.KindCheckpoint:
		if e, err := decode(line); err == nil && e.Through > 0 {
			if gone := (head{e.Through, e.ResultDigest}); e.Reason == retentionReason && v.vouched[gone] == 0 {
				v.vouched[gone] = e.Number
			}
			v.signature(e, head{k.number - 1, k.prev})
		}
	}
}

// finish checks what only shows at the end.
func (v *verifier) finish(dir string) {
	v.unmet()
	if v.removed.number > 0 {
		v.vouch()
	}
	if v.path == "" {
		v.path = dir
	}
	if v.report.Entries == 0 && len(v.evidence.Keys) > 0 {
		v.bad(1, "there is no entry, so nothing is signed; a ledger with a signing key is never empty")
	}
	if v.head.number > v.report.Last {
		v.bad(v.report.Last+1, fmt.Sprintf("entries %d to %d were acknowledged and are missing from the end", v.report.Last+1, v.head.number))
	}
}

// vouch asks who says that the entries before the first may be missing. Only
// retention does, and where signatures count, only with one at or after it:
// whoever can write the files can write a checkpoint too.
func (v *verifier) vouch() {
	checkpoint := v.vouched[v.removed]
	if checkpoint > 0 && len(v.evidence.Keys) > 0 && checkpoint > v.report.Signed {
		v.origin.Text = fmt.Sprintf("entries 1 to %d are missing, and checkpoint %d, which vouches for them, is not covered by a signature", v.removed.number, checkpoint)
		checkpoint = 0
	}
	if checkpoint == 0 {
		v.report.Bad = &v.origin
	}
}

func (v *verifier) bad(number uint64, text string) {
	if v.report.Bad == nil {
		v.report.Bad = &Fault{number, v.path, v.line, text}
	}
}
