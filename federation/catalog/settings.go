package catalog

import (
	"net/url"
	"time"

	"gatehouse/gate"
)

// ServerSettings is what the configuration says about one server and what the
// catalogue has to know of it. The zero value offers nothing.
type ServerSettings struct {
	ID             gate.ServerID
	Name           string // shown in descriptions; ID when empty
	URL            string // empty: supplies nothing
	AuthIdentity   string // how we authenticate there, without secrets
	Enabled        bool
	Class          gate.Class // Unclassified: supplies nothing
	ApprovalWaived bool
	ApprovalMemory time.Duration // how long one yes covers the same call; 0: not at all
	CallsPerMinute int
	Alias          map[gate.RemoteName]string // remote name -> remote part of the local name
}

func (s *ServerSettings) display() string {
	if s.Name == "" {
		return string(s.ID)
	}
	return s.Name
}

func (s *ServerSettings) identity() gate.Digest {
	return gate.DigestOf([]byte(s.AuthIdentity))
}

// origin is scheme://host[:port]. Path, query and user are left out: they may
// hold what no page or record should show.
func (s *ServerSettings) origin() string {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
