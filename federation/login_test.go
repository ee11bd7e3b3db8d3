package federation

import (
	"testing"
	"time"
)

// A code that goes anywhere but to this machine goes to somebody else.
func TestLoopbackRedirect(t *testing.T) {
	for redirect, want := range map[string]bool{
		"http://127.0.0.1:4711/callback": true,
		"http://[::1]:4711/callback":     true,
		"http://127.0.0.2/callback":      true,
		"https://127.0.0.1/callback":     false,
		"http://localhost:1/callback":    false, // a name is whatever somebody resolves it to
		"http://evil.example.org/":       false,
		"http://127.0.0.1.evil.example/": false,
		"http://u@127.0.0.1/callback":    false,
		"http://127.0.0.1/callback?a=b":  false,
		"http://127.0.0.1/callback#f":    false,
		"":                               false,
		"javascript:alert(1)":            false,
	} {
		if got := loopbackRedirect(redirect); got != want {
			t.Errorf("%q: %v, want %v", redirect, got, want)
		}
	}
}

// Logins wait for a person, but not for ever, and not in any number.
func TestPendingLogins(t *testing.T) {
	var l logins
	now := time.Now()
	first := l.add(&pendingLogin{server: "a", until: now.Add(loginTime)}, now)
	if l.take("other", now) != nil {
		t.Error("a handle that nobody has opens something")
	}
	if p := l.take(first, now); p == nil || p.server != "a" {
		t.Error("the login is not there")
	}
	if l.take(first, now) != nil {
		t.Error("taken twice")
	}
	late := l.add(&pendingLogin{until: now.Add(loginTime)}, now)
	if l.take(late, now.Add(loginTime)) != nil {
		t.Error("taken after its time")
	}
	oldest := l.add(&pendingLogin{until: now.Add(loginTime)}, now)
	for i := range loginsAtOnce {
		l.add(&pendingLogin{until: now.Add(loginTime + time.Duration(i+1))}, now)
	}
	if len(l.open) != loginsAtOnce || l.take(oldest, now) != nil {
		t.Errorf("%d logins wait, want %d without the oldest", len(l.open), loginsAtOnce)
	}
}
