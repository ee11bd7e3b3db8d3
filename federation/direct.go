package federation

import (
	"net/http"

	"gatehouse/gate"
)

// PublicURL is how callers reach us, without the endpoint's path.
func (g *Gateway) PublicURL() string { return g.inForce().public }

// HandlerFor serves the endpoint to one caller whom something else than a token
// has identified: the control socket, which only the operator can open. The
// caller is judged as always. Nil when no caller has that name.
func (g *Gateway) HandlerFor(name gate.CallerName) http.Handler {
	known := g.Caller(name)
	if known == nil {
		return nil
	}
	who := *known
	who.AuthenticatedBy = "socket"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case g.draining.Load():
			http.Error(w, "shutting down", http.StatusServiceUnavailable)
		case r.Method == http.MethodPost:
			g.servePost(w, r, &who)
		case r.Method == http.MethodGet:
			g.serveNotices(w, r, &who)
		case r.Method == http.MethodDelete:
			g.serveDelete(w, r, &who)
		default:
			methodNotAllowed(w)
		}
	})
}
