package ledger

import (
	"time"

	"gatehouse/gate"
)

const (
	// questionGrace is how long after its time a question is kept, so that its
	// silence can still be recorded by somebody who was held up.
	questionGrace = time.Hour
	// sweepFrom is how many questions there are before anybody looks for old ones.
	sweepFrom = 1024
)

// questions are those that can still be answered, and those whose approval can
// still be used. An approval is good because it is here, not because it is not
// known to have been used: what is forgotten, for whatever reason, whatever the
// clock says, is refused. So old ones can be forgotten, and the set stays as
// small as the questions of one approval timeout.
type questions struct {
	open    map[uint64]question
	undo    []before // how it was, for each change that is not durable yet
	sweepAt int
}

type question struct {
	until  time.Time
	agreed bool // a yes is on record, and not used yet
}

type before struct {
	number uint64
	question
	open bool
}

// take notes what the entry of that number does to a question. It reports false
// when the entry uses an approval that is not there to be used.
func (q *questions) take(e *gate.Entry, number uint64, now time.Time) bool {
	switch {
	case e.Kind == gate.KindQuestion:
		if len(q.open) >= max(q.sweepAt, sweepFrom) {
			q.sweep(now)
		}
		q.set(number, question{until: e.Until}, true)
		return true
	case e.Approval == 0:
		return true
	case e.Kind == gate.KindAnswer:
		asked, open := q.open[e.Approval]
		if !open || asked.agreed {
			return false
		}
		agreed := e.Verdict == ""
		q.set(e.Approval, question{asked.until, agreed}, agreed) // a no ends it
		return true
	case e.Kind == gate.KindIntent:
		if !q.open[e.Approval].agreed {
			return false
		}
		q.set(e.Approval, question{}, false)
	}
	return true
}

func (q *questions) set(number uint64, to question, open bool) {
	was, wasOpen := q.open[number]
	q.undo = append(q.undo, before{number, was, wasOpen})
	q.put(number, to, open)
}

func (q *questions) put(number uint64, to question, open bool) {
	if !open {
		delete(q.open, number)
		return
	}
	if q.open == nil {
		q.open = make(map[uint64]question)
	}
	q.open[number] = to
}

// rollback takes back the changes after the first so many.
func (q *questions) rollback(keep int) {
	for i := len(q.undo) - 1; i >= keep; i-- {
		b := q.undo[i]
		q.put(b.number, b.question, b.open)
	}
	q.undo = q.undo[:keep]
}

// settle makes the changes so far final.
func (q *questions) settle() { q.undo = q.undo[:0] }

// sweep forgets the questions whose time is long over.
func (q *questions) sweep(now time.Time) {
	for number, asked := range q.open {
		if now.After(asked.until.Add(questionGrace)) {
			delete(q.open, number)
		}
	}
	q.sweepAt = 2 * len(q.open)
}
