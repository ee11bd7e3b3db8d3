package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"gatehouse/federation/trace/tracetest"
	"gatehouse/gate"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start makes a tracer for a collector, by the environment.
func start(t *testing.T, url string, env ...string) (*Tracer, *lines) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	for i := 0; i < len(env); i += 2 {
		t.Setenv(env[i], env[i+1])
	}
	log := &lines{}
	tracer := FromEnvironment("test", slog.New(slog.NewTextHandler(log, nil)))
	if tracer == nil {
		t.Fatal(log.String())
	}
	return tracer, log
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for began := time.Now(); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// A call's spans arrive, packed and with the headers that the environment has.
func TestExport(t *testing.T) {
	c := tracetest.Start(t)
	tracer, log := start(t, c.URL, "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_EXPORTER_OTLP_HEADERS", "api-key=the%20key",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "5000")
	tracer.Begin("", "").End(Ending{Verdict: gate.OK})
	tracer.Close(t.Context())
	if spans := c.All(); len(spans) != 1 || spans[0].Kind != "server" {
		t.Errorf("spans %+v; %s", spans, log.String())
	}
	h := c.Headers()[0]
	if h.Get("Content-Encoding") != "gzip" || h.Get("Api-Key") != "the key" || h.Get("User-Agent") != "gatehouse/test" {
		t.Errorf("headers %q", h)
	}
	if strings.Contains(log.String(), "the key") {
		t.Error("the log has a header's value")
	}
}

// What passes is tried again, what does not is not.
func TestRepetition(t *testing.T) {
	for _, test := range []struct{ status, requests int }{{429, 2}, {503, 2}, {400, 1}, {401, 1}, {500, 1}, {307, 1}} {
		t.Run(fmt.Sprint(test.status), func(t *testing.T) {
			c := tracetest.Start(t)
			var refused atomic.Bool
			c.Answer(func(w http.ResponseWriter, r *http.Request) bool {
				if refused.Swap(true) {
					return false
				}
				w.Header().Set("Location", "/v1/traces")
				w.WriteHeader(test.status)
				return true
			})
			tracer, log := start(t, c.URL)
			tracer.Begin("", "").End(Ending{Verdict: gate.OK})
			lost := fmt.Sprintf(`lost=1 error="the collector answers %d"`, test.status)
			wait(t, "spans or a complaint", func() bool { return len(c.All()) == 1 || strings.Contains(log.String(), lost) })
			tracer.Close(t.Context())
			if got := len(c.Headers()); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
			if got := strings.Contains(log.String(), lost); got != (test.requests == 1) {
				t.Errorf("the log: %s", log.String())
			}
		})
	}
}

// A collector that takes a batch may still reject a part of it.
func TestPartialSuccess(t *testing.T) {
	c := tracetest.Start(t)
	c.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{
			RejectedSpans: 3, ErrorMessage: "too old\nlevel=ERROR"}})
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(answer)
		return true
	})
	tracer, log := start(t, c.URL)
	tracer.Begin("", "").End(Ending{})
	tracer.Close(t.Context())
	if !strings.Contains(log.String(), `lost=3 error="the collector rejects spans: too old level=ERROR"`) {
		t.Errorf("the log: %s", log.String())
	}
}

// Calls go on while a collector takes its time, what does not fit into the queue
// is dropped, and the end waits for nobody.
func TestSlowCollector(t *testing.T) {
	c := tracetest.Start(t)
	release := make(chan struct{})
	defer close(release)
	c.Answer(func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return true
	})
	tracer, log := start(t, c.URL, "OTEL_BSP_MAX_QUEUE_SIZE", "16", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	began := time.Now()
	for range 10_000 {
		tracer.Begin("", "").End(Ending{})
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("calls took %s", took)
	}
	wait(t, "a first request", func() bool { return len(c.Headers()) > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began = time.Now()
	tracer.Close(ctx)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("closing took %s", took)
	}
	if n := strings.Count(log.String(), "did not take spans"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, log.String())
	}
}

// The complaint comes at most once a minute, and counts what it did not say.
func TestComplaints(t *testing.T) {
	c := tracetest.Start(t)
	tracer, log := start(t, c.URL)
	defer tracer.Close(t.Context())
	lose := tracer.exporter.complaints("lost")
	for range 5 {
		lose(2, "why")
	}
	if n := strings.Count(log.String(), "msg=lost"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestParse(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if c := parse(good); !c.IsValid() || !c.IsRemote() || !c.IsSampled() {
		t.Errorf("%v", c)
	}
	for _, bad := range []string{"", "ff" + good[2:], good[:3] + strings.Repeat("0", 32) + good[35:], good[:36] + strings.Repeat("0", 16) + good[52:],
		good[:53] + "0g", good + "0", strings.Repeat("x", 55)} {
		if c := parse(bad); c.IsValid() {
			t.Errorf("%q is one", bad)
		}
	}
}

// At the end a batch is sent once: a collector that is away holds up no stop.
func TestCloseRepeatsNothing(t *testing.T) {
	c := tracetest.Start(t)
	c.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	tracer, _ := start(t, c.URL, "OTEL_BSP_SCHEDULE_DELAY", "60000")
	tracer.Begin("", "").End(Ending{})
	began := time.Now()
	tracer.Close(t.Context())
	if took := time.Since(began); took > 2*time.Second || len(c.Headers()) != 1 {
		t.Errorf("closing took %s and %d requests", took, len(c.Headers()))
	}
}
