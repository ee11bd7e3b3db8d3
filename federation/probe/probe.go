package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"gatehouse/upstream"
	"gatehouse/upstream/wire"
)

// DefaultTimeout is what one request may take.
const DefaultTimeout = 10 * time.Second

// Options say whom to probe and how.
type Options struct {
	// URL is the endpoint. It is the operator's own word, so its host, and no
	// other, may have a private address.
	URL        string
	Timeout    time.Duration // of one request; 0: DefaultTimeout
	Credential wire.Credential
	TLS        wire.TLSOptions
	Version    string // ours
}

// ErrUnauthorized says that the server wants a credential, or another one.
var ErrUnauthorized = errors.New("the server wants a credential")

// A prober works through one probe.
type prober struct {
	options  Options
	endpoint *wire.Endpoint
	client   *http.Client
	network  *wire.Network
	heard    *heard // the response to the request under way
	report   *Report
	modern   bool
	declares bool // the capability tools was declared
	late     int  // how many requests went unanswered
}

// Run probes a server. The report stands as far as it goes, also beside an
// error, which says that the server could not be reached or wants a credential.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	report := &Report{Eras: []string{}, Points: []Point{}}
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" {
		return report, fmt.Errorf("%q is not the url of an endpoint; want http(s)://host/path", wire.Clip(o.URL))
	}
	report.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	p := &prober{options: o, report: report, heard: &heard{}}
	if p.network, err = wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{u.Hostname()}}); err != nil {
		return report, err
	}
	p.endpoint, err = wire.NewEndpoint(wire.EndpointOptions{URL: o.URL, Network: p.network, TLS: o.TLS, UserAgent: "gatehouse-probe", Tap: p.heard.tap})
	if err != nil {
		return report, err
	}
	defer p.endpoint.CloseIdle()
	if p.client, err = p.network.HTTPClient(o.TLS); err != nil {
		return report, err
	}
	defer p.client.CloseIdleConnections()
	if err = p.run(ctx); errors.Is(err, errLate) {
		report.Unfinished, err = fmt.Sprintf("%d requests were not answered within %s each; the rest was not asked", mostLate, o.Timeout), nil
	}
	return report, err
}

// run meets the server in the newer era first, as a client would.
func (p *prober) run(ctx context.Context) error {
	if err := p.speakModern(ctx); err != nil {
		return err
	}
	if err := p.speakLegacy(ctx); err != nil {
		return err
	}
	p.look("handshake", ruleSpeaks, len(p.report.Eras) > 0, "neither was answered with a handshake", answer{})
	return ctx.Err()
}

// spoke notes an era.
func (p *prober) spoke(version string) {
	if !slices.Contains(p.report.Eras, version) {
		p.report.Eras = append(p.report.Eras, version)
	}
}

// The eras, as the client names them.
const (
	modern = upstream.Modern
	legacy = upstream.Legacy
)
