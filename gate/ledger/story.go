package ledger

import (
	"bytes"
	"errors"
	"fmt"

	"gatehouse/gate"
)

// A Line is an entry together with its bytes in the ledger.
type Line struct {
	gate.Entry
	Raw []byte
}

// Story returns every entry that belongs to the same call as the entry of a
// number, in order: question, answer, denial, intent, outcome.
func Story(dir string, number uint64) ([]Line, error) {
	var start *gate.Entry
	stop := errors.New("found")
	err := Read(dir, number, func(_ []byte, e gate.Entry) error {
		if e.Number == number {
			start = &e
		}
		return stop
	})
	if start == nil {
		if err != nil && !errors.Is(err, stop) {
			return nil, err
		}
		return nil, fmt.Errorf("record %d: there is no such entry", number)
	}
	question, intent := start.Approval, start.Intent
	switch start.Kind {
	case gate.KindQuestion:
		question = number
	case gate.KindIntent:
		intent = number
	}
	// Nothing of a call comes before its question, or its intent when nobody was asked.
	first := number
	for _, n := range []uint64{question, intent} {
		if n != 0 {
			first = min(first, n)
		}
	}
	var story []Line
	err = Read(dir, first, func(raw []byte, e gate.Entry) error {
		if e.Number == number || question != 0 && (e.Number == question || e.Approval == question) ||
			intent != 0 && (e.Number == intent || e.Intent == intent) {
			story = append(story, Line{e, bytes.Clone(raw)})
			if e.Kind == gate.KindOutcome {
				return stop
			}
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return story, err
}
