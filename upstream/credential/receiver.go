package credential

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

// CallbackPath is where the browser comes back to.
const CallbackPath = "/callback"

// A Receiver waits on loopback for the browser to come back from a login. Close
// it when the login is over; Close waits for its goroutine.
type Receiver struct {
	listener net.Listener
	server   *http.Server
	answers  chan url.Values
	done     chan struct{}
}

// Receive listens on a free loopback port.
func Receive() (*Receiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Receiver{listener: listener, answers: make(chan url.Values, 8), done: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+CallbackPath, r.callback)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	go func() { // ended by Close, which waits for it
		defer close(r.done)
		r.server.Serve(listener)
	}()
	return r, nil
}

// Redirect is the url to give to BeginLogin.
func (r *Receiver) Redirect() string { return "http://" + r.listener.Addr().String() + CallbackPath }

// callback takes what may be an answer. Its page shows nothing of what came,
// which anybody who knows the port could have sent.
func (r *Receiver) callback(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	query := req.URL.Query()
	if !query.Has("state") || req.Host != r.listener.Addr().String() {
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte("This is no answer to a login.\n"))
		return
	}
	select {
	case r.answers <- query:
	default: // somebody is trying states; the person can begin again
	}
	w.Write([]byte("You can close this window; the terminal says how the login went.\n"))
}

// Wait returns the query that answers the login of that url. Others are passed
// over, so that a page that guesses the port cannot spoil the login.
func (r *Receiver) Wait(ctx context.Context, loginURL string) (url.Values, error) {
	u, err := url.Parse(loginURL)
	if err != nil || !u.Query().Has("state") {
		return nil, loginFailed("the login has no url to wait for")
	}
	state := u.Query().Get("state")
	for {
		select {
		case query := <-r.answers:
			if sameState(query, state) {
				return query, nil
			}
		case <-ctx.Done():
			return nil, &Error{Reason: ReasonLoginFailed, Text: "nobody came back from the browser in time", Cause: ctx.Err()}
		}
	}
}

// Close stops listening and waits until nothing of the receiver runs.
func (r *Receiver) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = r.server.Close()
	}
	<-r.done
	return err
}

// ParseCallback reads the url that a person copied from the browser.
func ParseCallback(pasted string) (url.Values, error) {
	u, err := url.Parse(pasted)
	if err != nil || !u.Query().Has("state") {
		return nil, loginFailed("this is not the url of the page that the browser ended on")
	}
	return u.Query(), nil
}
