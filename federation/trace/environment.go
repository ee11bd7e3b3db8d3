package trace

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gatehouse/upstream/wire"
)

const (
	// defaultEndpoint is where a collector listens that nobody configured.
	defaultEndpoint = "http://localhost:4318"
	tracesPath      = "/v1/traces"
	// defaultTimeout bounds one batch on its way, repetitions included.
	defaultTimeout = 10 * time.Second
)

// settings say where spans go.
type settings struct {
	url     *url.URL
	header  http.Header // may hold a secret of the operator's
	timeout time.Duration
	gzip    bool
	tls     wire.TLSOptions
}

// fromEnvironment reads where spans go. Nil without an error: nobody asked for
// traces. What decides what is in them (sampler, limits, resource, batches) the
// SDK reads for itself.
func fromEnvironment(getenv func(string) string) (*settings, error) {
	env := environment(getenv)
	if wanted, err := env.wanted(); !wanted || err != nil {
		return nil, err
	}
	s := &settings{timeout: defaultTimeout, tls: wire.TLSOptions{
		CAFile: env.otlp("CERTIFICATE"), ClientCert: env.otlp("CLIENT_CERTIFICATE"), ClientKey: env.otlp("CLIENT_KEY")}}
	switch protocol := env.otlp("PROTOCOL"); protocol {
	case "", "http/protobuf":
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL %q is not spoken here; set http/protobuf and the collector's port for it, which is 4318 as a rule", protocol)
	}
	switch compression := env.otlp("COMPRESSION"); compression {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_COMPRESSION %q is unknown (want gzip or none)", compression)
	}
	if text := env.otlp("TIMEOUT"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT %q is no number of milliseconds", text)
		}
		s.timeout = time.Duration(n) * time.Millisecond
	}
	var err error
	if s.header, err = parseHeaders(env.otlp("HEADERS")); err != nil {
		return nil, err
	}
	s.url, err = env.endpoint()
	return s, err
}

// An environment is how variables are looked up.
type environment func(name string) string

// get is the value of a variable; an empty one is as good as none.
func (env environment) get(name string) string { return strings.TrimSpace(env(name)) }

// otlp is a variable of the exporter: the one for traces goes before the one for
// everything.
func (env environment) otlp(name string) string {
	if v := env.get("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
		return v
	}
	return env.get("OTEL_EXPORTER_OTLP_" + name)
}

// wanted reports whether the environment asks for traces.
func (env environment) wanted() (bool, error) {
	if strings.EqualFold(env.get("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	switch exporter := env.get("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "otlp":
		return true, nil
	case "":
		return env.otlp("ENDPOINT") != "", nil
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER %q is unknown (want otlp or none)", exporter)
	}
}

// endpoint is the url that batches are posted to. The endpoint for traces is that
// url; to the endpoint for everything the path is added.
func (env environment) endpoint() (*url.URL, error) {
	name, raw := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	own := raw != ""
	if !own {
		name, raw = "OTEL_EXPORTER_OTLP_ENDPOINT", env.get("OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	if raw == "" {
		raw = defaultEndpoint
	}
	u, err := url.Parse(raw)
	// The url may carry a password, so it is not quoted.
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New(name + " is no http or https url")
	case u.User != nil:
		return nil, errors.New(name + " holds a user; put credentials into OTEL_EXPORTER_OTLP_HEADERS")
	}
	if !own {
		u = u.JoinPath(tracesPath)
	}
	return u, nil
}

// parseHeaders reads name=value pairs, separated by commas, values with percent
// escapes. No text of theirs is in an error: they are where credentials are.
func parseHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !token(name) || strings.ContainsFunc(value, control) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: entry %d is not of the form name=value", i+1)
		}
		h.Set(name, value)
	}
	return h, nil
}

// token reports whether s can be the name of a header (RFC 9110).
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

func control(r rune) bool { return r < ' ' || r == 0x7f }
