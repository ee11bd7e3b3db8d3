package federation

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gatehouse/gate"
)

func newTestSessions(t *testing.T) (*sessions, *int) {
	ended := 0
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return newSessions(ctx, func(*session) { ended++ }), &ended
}

func TestSessionBelongsToItsCaller(t *testing.T) {
	table, _ := newTestSessions(t)
	s, err := table.open("alice", "2025-11-25", true)
	if err != nil {
		t.Fatal(err)
	}
	if table.find(s.id, "alice") != s {
		t.Error("the owner does not find the session")
	}
	for _, id := range []string{s.id, s.id + " ", s.id[:10], "../" + s.id} {
		if table.find(id, "bob") != nil {
			t.Errorf("bob found a session by %q", id)
		}
	}
	if table.find(s.id[:31], "alice") != nil {
		t.Error("a prefix of the id is enough")
	}
	table.close(s)
	if table.find(s.id, "alice") != nil || s.ctx.Err() == nil {
		t.Error("a closed session lives on")
	}
}

// TestSessionsAreBounded is C20: nearly all clients leave without a DELETE.
func TestSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, ended := newTestSessions(t)
		var first *session
		for range maxCallerSessions {
			s, err := table.open("alice", "2025-11-25", false)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = s
			}
			time.Sleep(time.Millisecond)
		}
		first.calls.Add(1) // at work: not to be dropped although it is the oldest
		if _, err := table.open("alice", "2025-11-25", false); err != nil {
			t.Fatal(err)
		}
		if table.find(first.id, "alice") == nil || *ended != 1 {
			t.Errorf("a session at work was dropped, or none was: %d ended", *ended)
		}
		bob, err := table.open("bob", "2025-11-25", false)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(sessionIdle - time.Second)
		table.find(bob.id, "bob")
		time.Sleep(2 * time.Second)
		table.reap()
		if table.find(bob.id, "bob") == nil {
			t.Error("a session in use was reaped")
		}
		if table.total != 2 {
			t.Errorf("%d sessions left, want bob's and the one at work", table.total)
		}
		first.calls.Add(-1)
	})
}

func TestNoRoomWhenAllAreAtWork(t *testing.T) {
	table, _ := newTestSessions(t)
	for range maxCallerSessions {
		s, err := table.open("alice", "2025-11-25", false)
		if err != nil {
			t.Fatal(err)
		}
		s.calls.Add(1)
	}
	if _, err := table.open("alice", "2025-11-25", false); !errors.Is(err, errBusy) {
		t.Errorf("got %v, want errBusy", err)
	}
	if _, err := table.open(gate.CallerName("bob"), "2025-11-25", false); err != nil {
		t.Errorf("one caller crowds out another: %v", err)
	}
}

// TestAnswersFindTheirQuestion is C43: an answer counts once, only for the very
// question, only while somebody waits.
func TestAnswersFindTheirQuestion(t *testing.T) {
	s := &session{}
	first, answer1 := s.ask()
	second, answer2 := s.ask()
	if first == second || len(first) < 32 {
		t.Errorf("ids %q and %q can be guessed", first, second)
	}
	other := &session{}
	if other.deliver(first, []byte("x")) {
		t.Error("an answer in another session was taken")
	}
	if !s.deliver(second, []byte("two")) || !s.deliver(first, []byte("one")) {
		t.Error("answers in reverse order were not taken")
	}
	if s.deliver(first, []byte("again")) {
		t.Error("a second answer was taken")
	}
	if string(<-answer1) != "one" || string(<-answer2) != "two" {
		t.Error("an answer reached another question")
	}
	third, _ := s.ask()
	s.forget(third)
	if s.deliver(third, []byte("late")) {
		t.Error("an answer after the end was taken")
	}
}

// TestManyCallersDoNotCrowdOutOne: at the cap of all, whoever holds most makes room.
func TestManyCallersDoNotCrowdOutOne(t *testing.T) {
	table, _ := newTestSessions(t)
	for i := range maxSessions {
		if _, err := table.open(gate.CallerName([]string{"a", "b", "c", "d"}[i%4]), "2025-11-25", false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := table.open("late", "2025-11-25", false); err != nil {
		t.Errorf("four callers lock out a fifth: %v", err)
	}
	if table.total != maxSessions {
		t.Errorf("%d sessions, the cap is %d", table.total, maxSessions)
	}
}
