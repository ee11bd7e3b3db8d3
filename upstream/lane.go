package upstream

import (
	"context"
	"log/slog"
	"sync/atomic"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// A lane is one configured server with everything prepared to call it. Servers
// share no lock and no connection, so one that hangs holds up no other.
type lane struct {
	server   Server
	endpoint *wire.Endpoint
	unusable error // why there is no endpoint
	keeper   *keeper
	era      atomic.Pointer[string] // what the store says; nil: not asked yet
}

func newLane(c *Client, s Server) *lane {
	l := &lane{server: s}
	network := s.Network
	if network == nil {
		network = c.options.Network
	}
	l.endpoint, l.unusable = wire.NewEndpoint(wire.EndpointOptions{
		URL:         s.URL,
		HTTPSOnly:   s.Auth.HTTPSOnly(),
		Network:     network,
		TLS:         s.TLS,
		MaxResponse: s.MaxResponse,
		UserAgent:   "gatehouse/" + c.options.Version,
	})
	l.keeper = newKeeper(c, l)
	return l
}

func (l *lane) authMode() credential.Mode {
	if l.server.Auth.Mode == "" {
		return credential.None
	}
	return l.server.Auth.Mode
}

// knownEra is the era to speak without asking, "" when it has to be found out.
// Remembered is false for one that the operator has pinned.
func (l *lane) knownEra(c *Client) (era string, remembered bool) {
	if l.server.Protocol != Auto {
		return l.server.Protocol, false
	}
	if known := l.era.Load(); known != nil {
		return *known, true
	}
	stored, ok := c.options.Store.Era(l.server.ID)
	if !ok || stored != Legacy && stored != Modern {
		stored = ""
	}
	l.era.CompareAndSwap(nil, &stored)
	return stored, true
}

// remember keeps what was found out about a server that is not pinned; ""
// forgets it. A store that cannot remember costs a probe, not an operation.
func (l *lane) remember(c *Client, era string) {
	if l.server.Protocol != Auto {
		return
	}
	if known := l.era.Load(); known != nil && *known == era {
		return
	}
	kept := era // only what is kept has to outlive the call
	l.era.Store(&kept)
	if err := c.options.Store.SetEra(l.server.ID, era); err != nil {
		c.log.Warn("era not remembered", "server", string(l.server.ID), "era", era, "error", err)
	}
}

// sendDelete ends a session at the server. What comes of it is nobody's error.
func (l *lane) sendDelete(ctx context.Context, log *slog.Logger, s legacySession, credential credential.Session) {
	_, err := l.endpoint.Delete(ctx, s.header(trace{}), credential.Header)
	if err != nil {
		log.Debug("session not ended", "server", string(l.server.ID), "error", err)
	}
}

// sendCancelled tells the server that nobody waits for a request any more,
// which it may heed or not.
func (l *lane) sendCancelled(ctx context.Context, log *slog.Logger, s legacySession, id string, credential credential.Session) {
	params := rawjson.AppendString([]byte(`{"requestId":`), id)
	_, err := l.endpoint.Do(ctx, wire.Request{Method: "notifications/cancelled", Notification: true,
		Params: [][]byte{append(params, `,"reason":"the caller gave up"}`...)}, Header: s.header(trace{}), Credential: credential.Header})
	if err != nil {
		log.Debug("cancellation not delivered", "server", string(l.server.ID), "error", err)
	}
}

// close ends what the lane keeps. Operations under way finish on it.
func (l *lane) close() {
	l.keeper.close()
	if l.endpoint != nil {
		l.endpoint.CloseIdle()
	}
}

// lanes is every configured server, replaced as a whole.
type lanes map[gate.ServerID]*lane
