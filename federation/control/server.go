package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"gatehouse/federation"
	"gatehouse/gate"
)

// maxBody bounds a request to the socket; the largest is a call's arguments.
const maxBody = 4 << 20

// A Socket answers on the daemon's control socket.
type Socket struct {
	http *http.Server
	path string
	done chan error
	end  sync.Once
}

// Serve opens the socket at path and answers for g there until Close.
func Serve(g *federation.Gateway, path string, logger *slog.Logger) (*Socket, error) {
	path = nearby(path)
	listener, err := listenSocket(path)
	if err != nil {
		return nil, err
	}
	s := &Socket{path: path, done: make(chan error, 1), http: &http.Server{
		Handler:           handler(NewLocal(g, true), g, logger),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}}
	go func(l net.Listener) { s.done <- s.http.Serve(l) }(listener) // ended by Close, which waits
	return s, nil
}

// Close ends the server and takes the socket away. Requests that are not done
// by the end of ctx are cut.
func (s *Socket) Close(ctx context.Context) (err error) {
	s.end.Do(func() {
		// First the name, so that nobody finds a socket that no longer answers.
		_ = os.Remove(s.path)
		if s.http.Shutdown(ctx) != nil {
			err = s.http.Close()
		}
		if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
	})
	return err
}

func handler(api API, g *federation.Gateway, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	all := operations(api)
	maps.Copy(all, loginOperations(api))
	maps.Copy(all, reloadOperations(api))
	for name, run := range all {
		mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) {
			in, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err != nil {
				writeFailure(w, http.StatusBadRequest, failure{Text: "the request could not be read"})
				return
			}
			out, err := run(r.Context(), in)
			if err != nil {
				logger.Debug("control", "operation", name, "error", err)
				writeFailure(w, http.StatusUnprocessableEntity, failure{Text: err.Error(), NotFound: errors.Is(err, ErrNotFound)})
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(out) // the peer may be gone; nothing depends on it
		})
	}
	mux.Handle(profilePath, profiles())
	mux.HandleFunc("/callers/{name}/mcp", func(w http.ResponseWriter, r *http.Request) {
		next := g.HandlerFor(gate.CallerName(r.PathValue("name")))
		if next == nil {
			writeFailure(w, http.StatusNotFound, failure{Text: noCaller(r.PathValue("name")).Error(), NotFound: true})
			return
		}
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err != nil {
				writeFailure(w, http.StatusRequestEntityTooLarge, failure{Text: "the message is too large"})
				return
			}
			completeHeaders(r, body, g.Catalog.Snapshot())
		}
		next.ServeHTTP(w, r)
	})
	return mux
}

// An operation is a method of API with its argument and result as JSON.
type operation func(ctx context.Context, in []byte) (any, error)

// The arguments of operations that take any.
type (
	inServer struct{ ID string }
	inImport struct {
		IDs    []string
		All    bool
		DryRun bool
	}
	inPattern  struct{ Pattern string }
	inPatterns struct{ Patterns []string }
	inName     struct{ Name string }
	inExplain  struct{ Tool, Caller string }
	inDecide   struct {
		Number  uint64
		Approve bool
	}
	inSecret struct {
		Name  string
		Value []byte
	}
	none struct{}
)

// operations are what the socket serves, by their names in the path.
func operations(api API) map[string]operation {
	return map[string]operation{
		"status":  of(func(ctx context.Context, _ none) (any, error) { return api.Status(ctx) }),
		"servers": of(func(ctx context.Context, _ none) (any, error) { return api.Servers(ctx) }),
		"test":    of(func(ctx context.Context, in inServer) (any, error) { return api.TestServer(ctx, in.ID) }),
		"import": of(func(ctx context.Context, in inImport) (any, error) {
			return api.Import(ctx, in.IDs, in.All, in.DryRun)
		}),
		"tools":     of(func(ctx context.Context, in inPattern) (any, error) { return api.Tools(ctx, in.Pattern) }),
		"tool":      of(func(ctx context.Context, in inName) (any, error) { return api.Tool(ctx, in.Name) }),
		"diff":      of(func(ctx context.Context, in inName) (any, error) { return api.Diff(ctx, in.Name) }),
		"enable":    of(func(ctx context.Context, in inPatterns) (any, error) { return api.Enable(ctx, in.Patterns) }),
		"disable":   of(func(ctx context.Context, in inPatterns) (any, error) { return api.Disable(ctx, in.Patterns) }),
		"explain":   of(func(ctx context.Context, in inExplain) (any, error) { return api.Explain(ctx, in.Tool, in.Caller) }),
		"approvals": of(func(ctx context.Context, _ none) (any, error) { return api.Approvals(ctx) }),
		"approval":  of(func(ctx context.Context, in inDecide) (any, error) { return api.Approval(ctx, in.Number) }),
		"decide": of(func(ctx context.Context, in inDecide) (any, error) {
			return none{}, api.Decide(ctx, in.Number, in.Approve)
		}),
		"secrets": of(func(ctx context.Context, _ none) (any, error) { return api.Secrets(ctx) }),
		"set-secret": of(func(ctx context.Context, in inSecret) (any, error) {
			return none{}, api.SetSecret(ctx, in.Name, in.Value)
		}),
		"remove-secret": of(func(ctx context.Context, in inName) (any, error) { return none{}, api.RemoveSecret(ctx, in.Name) }),
	}
}

// of makes an operation of a function that takes a struct.
func of[In any](f func(context.Context, In) (any, error)) operation {
	return func(ctx context.Context, raw []byte) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, errors.New("the request does not fit the operation; are the daemon and this command of one version?")
		}
		return f(ctx, in)
	}
}

// A failure is an error on its way through the socket.
type failure struct {
	Text     string `json:"error"`
	NotFound bool   `json:"not_found,omitempty"`
}

func writeFailure(w http.ResponseWriter, status int, f failure) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f) // the peer may be gone; nothing depends on it
}
