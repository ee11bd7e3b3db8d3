package federation

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"

	"gatehouse/federation/caller"
)

// serveHealth says that the process runs.
func (g *Gateway) serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// Ready lists why calls cannot be taken right now; nothing means ready.
func (g *Gateway) Ready() []string {
	reasons := []string{}
	if g.draining.Load() {
		reasons = append(reasons, "shutting down")
	}
	if err := g.Ledger.Health(); err != nil {
		reasons = append(reasons, "ledger: "+withoutPath(err))
	}
	if err := g.State.Health(); err != nil {
		reasons = append(reasons, "state: "+withoutPath(err))
	}
	if !g.State.Keys().Usable() {
		reasons = append(reasons, "key ring: there is no key to seal questions with; restart to make one")
	}
	if g.inForce() == nil {
		reasons = append(reasons, "catalogue: not loaded")
	}
	return reasons
}

// withoutPath is what went wrong and not where on the disk: the page is for
// anybody, the log and gatehouse doctor tell the operator the rest.
func withoutPath(err error) string {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Op + ": " + at.Err.Error()
	}
	return err.Error()
}

// notice says that the configuration file is not the one in force; "" when it
// is. It holds nothing of the file: anybody may read it.
func (g *Gateway) notice() string {
	switch w := g.Waiting(); {
	case w == nil:
		return ""
	case w.Plan == nil:
		return "the configuration file is not valid, the one before stays in force; see: gatehouse check"
	}
	return "a changed configuration file opens something and waits; see: gatehouse reload"
}

// serveReady says whether calls can be taken, and otherwise why not.
func (g *Gateway) serveReady(w http.ResponseWriter, _ *http.Request) {
	reasons := g.Ready()
	status, word := http.StatusOK, "ready"
	if len(reasons) > 0 {
		status, word = http.StatusServiceUnavailable, "not ready"
	}
	notices := []string{}
	if notice := g.notice(); notice != "" {
		notices = append(notices, notice)
	}
	writeJSON(w, status, map[string]any{"status": word, "reasons": reasons, "notices": notices})
}

// serveMetadata is the protected resource metadata of RFC 9728.
func (g *Gateway) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	set := g.inForce()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(caller.Metadata(set.public, set.config.OIDC))
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the peer may be gone; nothing depends on it
}
