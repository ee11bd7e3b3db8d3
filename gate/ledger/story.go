package ledger

import (
	"errors"
	"fmt"

	"gatehouse/gate"
)

// Story returns every entry that belongs to the same call as the entry of a
// number, in order: question, answer, denial, intent, outcome.
func Story(dir string, number uint64) ([]gate.Entry, error) {
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
		return nil, fmt.Errorf("record %d is not in the ledger", number)
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
	var story []gate.Entry
	err = Read(dir, first, func(_ []byte, e gate.Entry) error {
		if e.Number == number || question != 0 && (e.Number == question || e.Approval == question) ||
			intent != 0 && (e.Number == intent || e.Intent == intent) {
			story = append(story, e)
		}
		return nil
	})
	return story, err
}
