package ledger

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gatehouse/gate"
)

// Options open a ledger.
type Options struct {
	Dir       string               // created when it does not exist
	Sync      func(*os.File) error // nil: fdatasync
	Now       func() time.Time     // nil: time.Now
	Retention time.Duration        // how long entries are kept at least; 0: for good
	Logger    *slog.Logger         // nil: nothing is logged
	// Observe, when set, is told of every batch that was written. It runs on the
	// writer, so it must be quick and must not use the ledger.
	Observe      func(Commit)
	SegmentBytes int64              // when to begin a new file; 0: 64 MiB
	Signer       ed25519.PrivateKey // signs a checkpoint every hour and at the end; nil: none
}

const defaultSegmentBytes = 64 << 20

// Open takes a directory for this process alone and makes it ready to be
// appended to. What a crash left half written is cut off; an intent without an
// outcome gets one that says outcome_unknown.
func Open(o Options) (*Ledger, error) { return open(o, (*os.File).WriteAt) }

func open(o Options, put func(*os.File, []byte, int64) (int, error)) (*Ledger, error) {
	if o.Dir == "" {
		return nil, errors.New("ledger: no directory is given")
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	held, err := lock(o.Dir)
	if err != nil {
		return nil, err
	}
	l := newLedger(o, held)
	l.put = put
	lost, err := l.recover()
	if err == nil {
		err = l.openFiles()
	}
	if err != nil {
		l.closeFiles()
		return nil, err
	}
	if len(lost) > 0 {
		l.commit([]*request{{entries: lost}}, true)
	}
	go l.run() // ended and waited for by Close
	return l, nil
}

func newLedger(o Options, held *os.File) *Ledger {
	l := &Ledger{
		dir: o.Dir, sync: o.Sync, now: o.Now, retention: o.Retention, log: o.Logger, segmentBytes: o.SegmentBytes, observe: o.Observe, signer: o.Signer,
		lock: held, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if l.sync == nil {
		l.sync = fdatasync
	}
	if l.now == nil {
		l.now = time.Now
	}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	if l.segmentBytes <= 0 {
		l.segmentBytes = defaultSegmentBytes
	}
	return l
}

// recover reads the whole directory and sets where to go on. It returns the
// outcomes of the intents that have none.
func (l *Ledger) recover() ([]gate.Entry, error) {
	files, err := segments(l.dir)
	if err != nil {
		return nil, err
	}
	s := scan{questions: &l.questions, now: l.now(), open: make(map[uint64][]byte)}
	s.acknowledged, s.headed = findHead(l.dir)
	for i, f := range files {
		if err := s.file(f, i == len(files)-1); err != nil {
			return nil, err
		}
	}
	l.questions.sweep(s.now)
	l.at = point{size: s.size, number: s.last.number, hash: s.last.hash}
	if len(files) > 0 {
		l.path, l.segmentFirst = files[len(files)-1].path, s.began
	}
	if s.cut > 0 {
		l.log.Warn("ledger: an entry that was never acknowledged was cut off", "file", l.path, "bytes", s.cut)
	}
	if h := s.acknowledged; h.number > l.at.number || h.number == l.at.number && h.hash != l.at.hash {
		// The gap must stay visible, so the chain goes on where it was, not where
		// somebody cut it.
		l.log.Error("ledger: entries that were acknowledged are missing or changed; run audit verify",
			"dir", l.dir, "acknowledged", h.number, "found", l.at.number)
		l.at.number, l.at.hash = h.number, h.hash
		if s.hidden {
			l.path, l.at.size, l.segmentFirst = "", 0, time.Time{}
		}
	}
	return unsettled(s.open, l.log), nil
}

// unsettled makes an outcome for every line of an intent that has none.
func unsettled(open map[uint64][]byte, log *slog.Logger) []gate.Entry {
	var lost []gate.Entry
	for n, line := range open {
		e, err := decode(line)
		if err != nil {
			log.Error("ledger: an intent cannot be read; run audit verify", "number", n)
		}
		lost = append(lost, gate.Entry{
			Kind: gate.KindOutcome, Verdict: gate.OutcomeUnknown, Reason: "restart",
			Detail: "the process ended before the outcome was on record",
			Intent: n, Approval: e.Approval, Caller: e.Caller, Request: e.Request, Tool: e.Tool, Server: e.Server,
			Origin: e.Origin, RemoteName: e.RemoteName, Generation: e.Generation, Trace: e.Trace,
		})
	}
	slices.SortFunc(lost, func(a, b gate.Entry) int { return cmp.Compare(a.Intent, b.Intent) })
	return lost
}

// A scan is what opening a ledger learns by reading it.
type scan struct {
	acknowledged head
	headed       bool // there is a head; without one nothing is known to be unacknowledged
	last         head
	questions    *questions
	now          time.Time
	open         map[uint64][]byte // lines of intents without outcome

	// of the file that was read last
	size  int64
	began time.Time
	cut   int64
	// hidden says that something follows the last entry and stays, because
	// entries that were acknowledged may be in it. Nothing is written into that file.
	hidden bool
}

// file reads one segment. Of the last one, what comes after the acknowledged head
// and is not a good entry was being written when the process died: it is cut off.
func (s *scan) file(f segment, last bool) error {
	mode := os.O_RDONLY
	if last {
		mode = os.O_RDWR
	}
	file, err := os.OpenFile(f.path, mode, 0)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer file.Close()
	s.size, s.began = 0, time.Time{}
	for lines := newLineReader(file); ; {
		line, err := lines.next()
		if err == io.EOF {
			if err = s.tail(file, line, last); err == nil && last {
				err = s.truncate(file, f.first)
			}
			return err
		}
		if err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
		if last && s.headed && s.last.number >= s.acknowledged.number && !s.follows(line) {
			return s.truncate(file, f.first)
		}
		s.note(line)
		s.size = lines.end
	}
}

func (s *scan) follows(line []byte) bool {
	k, ok := linkOf(line)
	return ok && k.number == s.last.number+1 && k.prev == s.last.hash && intact(line)
}

// note takes in one line. A line that cannot be read is Verify's business.
func (s *scan) note(line []byte) {
	k, ok := linkOf(line)
	if !ok {
		return
	}
	s.last = head{k.number, k.hash}
	if s.began.IsZero() {
		_ = setTime(&s.began, string(textAfter(line, `"time":"`)))
	}
	s.asked(k, line)
	switch k.kind {
	case gate.KindIntent:
		s.open[k.number] = bytes.Clone(line)
	case gate.KindOutcome:
		delete(s.open, k.intent)
	}
}

// asked follows the questions. What a line that was edited does to them opens
// nothing that the others do not.
func (s *scan) asked(k link, line []byte) {
	e := gate.Entry{Kind: k.kind, Approval: k.approval, Verdict: gate.Verdict(textAfter(line, `"verdict":"`))}
	if k.kind == gate.KindQuestion && setTime(&e.Until, string(textAfter(line, `"until":"`))) != nil {
		return
	}
	s.questions.take(&e, k.number, s.now)
	s.questions.settle()
}

// tail deals with what follows the last line end: nothing, an entry whose line end
// was lost, or the beginning of one.
func (s *scan) tail(file *os.File, rest []byte, last bool) error {
	if len(rest) == 0 || !last {
		return nil
	}
	if !s.follows(rest) {
		return nil
	}
	if _, err := file.WriteAt([]byte{'\n'}, s.size+int64(len(rest))); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	s.note(rest)
	s.size += int64(len(rest)) + 1
	return nil
}

// truncate cuts off what follows the last entry: room for more, or what a crash
// left of entries that nobody was told of. first is the number of the file's
// first entry.
func (s *scan) truncate(file *os.File, first uint64) error {
	rest, err := io.ReadAll(from(file, s.size))
	if err == nil && len(rest) == 0 {
		return nil
	}
	left := len(bytes.Trim(rest, string(blank)))
	if s.hidden = left > 0 && first <= s.acknowledged.number && s.last.number < s.acknowledged.number; s.hidden {
		return nil
	}
	s.cut = int64(left)
	if err == nil {
		err = file.Truncate(s.size)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return fmt.Errorf("ledger: the end cannot be cut off: %w", err)
	}
	return nil
}

// openFiles opens the segment to append to, and the head.
func (l *Ledger) openFiles() (err error) {
	if l.path == "" {
		l.path = segmentPath(l.dir, l.at.number+1)
	}
	if l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if l.head, err = os.OpenFile(filepath.Join(l.dir, headName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if l.at == (point{}) {
		// A ledger that knows from its first commit on what was acknowledged can
		// tell what a crash left of one that was not.
		if err = l.beginHead(); err != nil {
			return fmt.Errorf("ledger: %w", err)
		}
	}
	if err = syncDir(l.dir); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.synced, l.room = l.at, l.at.size
	return nil
}

// beginHead makes durable that nothing is acknowledged.
func (l *Ledger) beginHead() error {
	if _, err := l.head.WriteAt(appendHead(nil, head{}), 0); err != nil {
		return err
	}
	return l.head.Sync()
}

func (l *Ledger) closeFiles() {
	for _, f := range []*os.File{l.file, l.head, l.lock} {
		if f != nil {
			f.Close()
		}
	}
}
