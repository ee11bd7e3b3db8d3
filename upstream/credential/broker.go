package credential

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/gate"
)

// Secrets resolves references. Resolution happens at use, so that a rotated
// secret needs no reload.
type Secrets interface {
	Resolve(ctx context.Context, r Reference) (Secret, error)
}

// A Session gives the credential for the legs of one operation.
type Session interface {
	// Header is asked before every leg, after the host gate. An empty name
	// means that nothing is to be sent. Errors are of type *Error.
	Header(ctx context.Context) (name, value string, err error)
	// Legs are the requests that obtaining the credential took so far.
	Legs() []gate.Leg
	// Close wipes what the session held. Header fails afterwards.
	Close()
}

// A Rejecter is a Session that wants to hear what the upstream thinks of its
// credential, so that the next operation does not send a token that is no good,
// and the operator sees which servers refuse us.
type Rejecter interface {
	// Rejected is called when a leg was answered with status 401 or 403, and with
	// the WWW-Authenticate header that came with it.
	Rejected(ctx context.Context, status int, challenge string)
	// Accepted is called when a leg was answered properly.
	Accepted()
}

// A Purpose says for whom an operation runs. The zero value is for nobody and
// opens no session.
type Purpose struct {
	kind    purposeKind
	caller  gate.CallerName
	inbound Secret
}

type purposeKind uint8

const (
	noPurpose purposeKind = iota
	execution
	discovery
)

// Execution is a call on behalf of the caller who made it, never of the one who
// approved it. Inbound is the verified token the caller came with; zero if the
// caller has none that may be exchanged.
func Execution(caller gate.CallerName, inbound Secret) Purpose {
	return Purpose{execution, caller, inbound}
}

// Discovery is an import or a connection test, on behalf of the operator.
func Discovery() Purpose { return Purpose{kind: discovery} }

// Options is what a Broker works with.
type Options struct {
	Secrets Secrets
	// Client makes token requests. It must dial through the host gate and must
	// not follow redirects; nil refuses every mode that needs a token endpoint.
	Client *http.Client
	// CheckURL is the host gate's check of a url, made before a secret is looked up.
	CheckURL func(raw string, httpsOnly bool) (*url.URL, error)
	// Private reports whether the host gate lets a host have private addresses;
	// nil: it lets none.
	Private func(host string) bool
	// Keep holds what logins obtained; nil refuses mode oauth.
	Keep   Keep
	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
}

// A Broker opens credential sessions. It is safe for concurrent use.
type Broker struct {
	options  Options
	profiles atomic.Pointer[map[string]Profile]
	tokens   cache

	standings standings
	spent     sync.Map // login key -> fingerprint of a refresh token that is no good any more
}

// NewBroker returns a Broker without delegation profiles.
func NewBroker(o Options) *Broker {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Broker{options: o, tokens: cache{now: o.Now}}
}

// Configure replaces the delegation profiles. A session that is already open
// sees the new ones when it exchanges again.
func (b *Broker) Configure(profiles map[string]Profile) { b.profiles.Store(&profiles) }
