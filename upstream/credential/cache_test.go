package credential

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Whoever was waiting while the endpoint said no gets that answer and does not
// ask again; whoever comes later does.
func TestCacheSharesFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cache{now: time.Now}
		refused, fetches := errors.New("refused"), 0
		fetch := func(context.Context) (grant, error) {
			fetches++
			time.Sleep(time.Second)
			return grant{}, refused
		}
		failures := make(chan error, 10)
		for range cap(failures) {
			go func() {
				_, err := c.get(t.Context(), "k", fetch)
				failures <- err
			}()
		}
		for range cap(failures) {
			if err := <-failures; err != refused {
				t.Errorf("a waiter got %v", err)
			}
		}
		if fetches != 1 {
			t.Errorf("asked %d times", fetches)
		}
		time.Sleep(time.Second)
		if _, err := c.get(t.Context(), "k", fetch); err != refused || fetches != 2 {
			t.Errorf("later: %v after %d fetches", err, fetches)
		}
	})
}

// A token is renewed half a minute before it expires, a short one after three
// quarters of its life.
func TestRenewal(t *testing.T) {
	now := time.Now()
	for life, want := range map[time.Duration]time.Duration{time.Hour: time.Hour - 30*time.Second, time.Minute: 45 * time.Second, 4 * time.Second: 3 * time.Second} {
		if got := renewal(now, now.Add(life)).Sub(now); got != want {
			t.Errorf("life %s: renewed after %s, want %s", life, got, want)
		}
	}
}
