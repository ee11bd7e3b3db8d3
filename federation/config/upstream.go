package config

import (
	"gatehouse/upstream"
	"gatehouse/upstream/wire"
)

// UpstreamServers are the servers as the strict client wants them: those that
// are enabled and have a url.
func (c *Config) UpstreamServers() []upstream.Server {
	var out []upstream.Server
	for _, s := range c.Servers {
		if s.URL == "" || !s.Enabled {
			continue
		}
		out = append(out, upstream.Server{
			ID:          s.ID,
			Name:        s.Name,
			URL:         s.URL,
			Timeout:     s.Timeout,
			Protocol:    s.Protocol,
			Session:     s.Session,
			SessionIdle: s.SessionIdle,
			MaxSessions: s.MaxSessions,
			MaxResponse: s.MaxResponse,
			Auth:        s.Auth,
			TLS:         wire.TLSOptions{CAFile: s.CAFile, ClientCert: s.ClientCert, ClientKey: s.ClientKey},
		})
	}
	return out
}
