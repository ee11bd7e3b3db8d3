package credential

import (
	"context"
	"sync"
	"time"

	"gatehouse/gate"
)

// A cache holds the tokens that are the gateway's own and shared by design:
// those of client_credentials and oauth. It starts no goroutine. Whoever needs
// a token first fetches it with their own time; the others wait, each within
// their own context, and one of them takes over when the first gives up.
type cache struct {
	now func() time.Time

	mu    sync.Mutex
	slots map[string]*slot
}

// A slot is one token. Turn is held by whoever reads or fetches it.
type slot struct {
	turn    chan struct{} // capacity 1
	token   Secret
	renew   time.Time // from here on a new one is fetched
	expires time.Time // from here on it is worth nothing
	failure error
	failed  time.Time
}

func (c *cache) slot(key string) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slots[key]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		if c.slots == nil {
			c.slots = map[string]*slot{}
		}
		c.slots[key] = s
	}
	return s
}

// get returns the cached token of key, or the one that fetch brings.
func (c *cache) get(ctx context.Context, key string, fetch func(context.Context) (grant, error)) (Secret, error) {
	s, asked := c.slot(key), c.now()
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return Secret{}, outOfTime(ctx)
	}
	defer func() { <-s.turn }()
	if !s.token.IsZero() && c.now().Before(s.renew) {
		return s.token, nil
	}
	// Whoever was waiting while the endpoint said no need not ask again.
	if s.failure != nil && s.failed.After(asked) {
		return Secret{}, s.failure
	}
	start := c.now()
	g, err := fetch(ctx)
	if err != nil {
		if ctx.Err() == nil { // giving up is one waiter's failure, not the token's
			s.failure, s.failed = err, c.now()
		}
		return Secret{}, err
	}
	s.failure = nil
	s.token, s.renew, s.expires = g.access, renewal(start, g.expires), g.expires
	return s.token, nil
}

// put replaces the token of key, after a login.
func (c *cache) put(ctx context.Context, key string, g grant) error {
	s := c.slot(key)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return outOfTime(ctx)
	}
	s.token, s.renew, s.expires, s.failure = g.access, renewal(c.now(), g.expires), g.expires, nil
	<-s.turn
	return nil
}

// hold runs f while nobody else reads, fetches or changes what belongs to key.
func (c *cache) hold(ctx context.Context, key string, f func()) {
	s := c.slot(key)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		f()
	case <-ctx.Done():
	}
}

// renewal is when a token is replaced: half a minute before it expires, or
// after three quarters of a short life.
func renewal(start, expires time.Time) time.Time {
	margin := min(30*time.Second, expires.Sub(start)/4)
	return expires.Add(-margin)
}

// drop forgets the token of key if it is still the one that was refused.
func (c *cache) drop(ctx context.Context, key string, refused Secret) {
	c.hold(ctx, key, func() {
		if s := c.slot(key); s.token.Reveal() == refused.Reveal() {
			s.token = Secret{}
		}
	})
}

// shared is the session of a mode whose token is the gateway's own.
type shared struct {
	cache *cache
	key   string
	fetch func(context.Context, func(gate.Leg)) (grant, error)
	widen func(ctx context.Context, challenge string) // told what a 403 says is missing; nil: of no use
	verdict

	mu     sync.Mutex
	closed bool
	legs   []gate.Leg
	last   Secret
}

func (s *shared) Header(ctx context.Context) (name, value string, err error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return "", "", errClosed()
	}
	token, err := s.cache.get(ctx, s.key, func(ctx context.Context) (grant, error) { return s.fetch(ctx, s.addLeg) })
	if err != nil {
		return "", "", err
	}
	s.mu.Lock()
	s.last = token
	s.mu.Unlock()
	return "Authorization", "Bearer " + token.Reveal(), nil
}

func (s *shared) addLeg(l gate.Leg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.legs = append(s.legs, l)
}

func (s *shared) Legs() []gate.Leg {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]gate.Leg(nil), s.legs...)
}

func (s *shared) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.last = true, Secret{}
}
