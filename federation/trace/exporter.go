package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"gatehouse/upstream/wire"
)

const (
	// complainEvery is how long the log is spared once it was told that the
	// collector takes nothing.
	complainEvery = time.Minute
	// firstWait is the pause before a batch is sent again; it doubles each time.
	firstWait = 500 * time.Millisecond
	// maxAnswer is what is read of a collector's answer, in bytes.
	maxAnswer = 64 << 10
	media     = "application/x-protobuf"
)

// An exporter posts batches of spans to a collector (OTLP/HTTP). The SDK calls it
// from its own goroutine, one batch after the other.
type exporter struct {
	settings
	client  *http.Client
	agent   string
	log     *slog.Logger
	lose    func(spans int, why string)
	ctx     context.Context // ends what is being sent when nobody waits for it any more
	cancel  context.CancelFunc
	leaving chan struct{} // closed when nothing is sent twice any more
	ended   chan struct{} // closed after the last batch
}

func newExporter(s *settings, version string, log *slog.Logger) (*exporter, error) {
	// The operator names the collector, in a place of its own: that it may be a
	// private host here opens it to no server.
	network, err := wire.NewNetwork(wire.NetworkOptions{PrivateHosts: []string{s.url.Hostname()}})
	if err != nil {
		return nil, err
	}
	checked, err := network.CheckURL(s.url.String(), false)
	if err != nil {
		return nil, err
	}
	e := &exporter{settings: *s, agent: "gatehouse/" + version, log: log, leaving: make(chan struct{}), ended: make(chan struct{})}
	e.url = checked
	if e.client, err = network.HTTPClient(s.tls); err != nil {
		return nil, err
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.lose = e.complaints("the collector did not take spans")
	return e, nil
}

// ExportSpans implements the SDK's interface. That spans are lost is said here,
// not returned: the SDK would say it for every batch.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	body, err := e.encode(spans)
	if err == nil {
		err = e.deliver(ctx, body)
	}
	if err != nil {
		e.lose(len(spans), err.Error())
	}
	return nil
}

// Shutdown implements the SDK's interface: there will be no further batch.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	close(e.ended)
	return nil
}

// hurry has every batch sent once only from now on.
func (e *exporter) hurry() { close(e.leaving) }

// abandon breaks off what is still being sent, and waits until nothing is: with
// its context over, what is left in the queue fails at once.
func (e *exporter) abandon() {
	e.cancel()
	<-e.ended
}

func (e *exporter) encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	body, err := proto.Marshal(request(spans))
	if err != nil || !e.gzip {
		return body, err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(body) // a buffer takes everything
	err = z.Close()
	return packed.Bytes(), err
}

// A setback is why the collector did not take a batch.
type setback struct {
	text   string
	passes bool          // another try may do better
	after  time.Duration // what the collector asks to wait, 0 when it does not
}

func (s *setback) Error() string { return s.text }

// deliver posts a batch, again as long as that may help and there is time.
func (e *exporter) deliver(ctx context.Context, body []byte) error {
	for wait := firstWait; ; wait *= 2 {
		failure := e.post(ctx, body)
		if failure == nil {
			return nil
		}
		if !failure.passes {
			return failure
		}
		pause := time.NewTimer(max(wait, failure.after))
		select {
		case <-pause.C:
		case <-e.leaving:
			pause.Stop()
			return failure
		case <-ctx.Done():
			pause.Stop()
			return failure
		}
	}
}

func (e *exporter) post(ctx context.Context, body []byte) *setback {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url.String(), bytes.NewReader(body))
	if err != nil {
		return &setback{text: "the request could not be made"} // unreachable: the url was checked
	}
	r.Header = e.header.Clone()
	r.Header.Set("Content-Type", media)
	r.Header.Set("User-Agent", e.agent)
	if e.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	response, err := e.client.Do(r)
	if err != nil {
		if outer := (*url.Error)(nil); errors.As(err, &outer) {
			err = outer.Err // without the url, whose query may hold a secret
		}
		return &setback{text: err.Error(), passes: true}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case response.StatusCode >= 200 && response.StatusCode <= 299:
		if err == nil {
			e.partly(answer)
		}
		return nil
	case response.StatusCode == http.StatusTooManyRequests || response.StatusCode >= 502 && response.StatusCode <= 504:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return &setback{text: status(response), passes: true, after: time.Duration(seconds) * time.Second}
	}
	return &setback{text: status(response)}
}

func status(r *http.Response) string { return fmt.Sprintf("the collector answers %d", r.StatusCode) }

// partly hears which spans of a batch that was taken were not.
func (e *exporter) partly(answer []byte) {
	var said collector.ExportTraceServiceResponse
	if proto.Unmarshal(answer, &said) != nil {
		return // it answered in another format; it took the batch
	}
	if p := said.GetPartialSuccess(); p.GetRejectedSpans() > 0 {
		e.lose(int(p.GetRejectedSpans()), "the collector rejects spans: "+wire.Clip(p.GetErrorMessage()))
	}
}

// complaints makes what logs a message at most once in complainEvery, with the
// number of spans that were lost since the last time.
func (e *exporter) complaints(message string) func(spans int, why string) {
	var (
		mu   sync.Mutex
		lost int
		last time.Time
	)
	return func(spans int, why string) {
		mu.Lock()
		defer mu.Unlock()
		lost += spans
		if !last.IsZero() && time.Since(last) < complainEvery {
			return
		}
		e.log.Warn(message, "collector", e.url.Host, "lost", lost, "error", why)
		lost, last = 0, time.Now()
	}
}
