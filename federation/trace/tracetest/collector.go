// Package tracetest plays an OpenTelemetry collector for tests.
package tracetest

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// patience bounds a wait for spans.
const patience = 10 * time.Second

// A Span is one that was collected. Ids are hexadecimal, "" for none; attributes
// are as text.
type Span struct {
	Name, Kind, Trace, ID, Parent string
	Attributes                    map[string]string
	Failed, RemoteParent          bool
	Message                       string // of the status
	Start, End                    time.Time
}

// A Collector takes OTLP over HTTP with protobuf. Its methods can be used from
// several goroutines.
type Collector struct {
	URL string // the endpoint for everything

	mu       sync.Mutex
	spans    []Span
	resource map[string]string
	bodies   []byte
	headers  []http.Header
	answer   func(http.ResponseWriter, *http.Request) bool
}

// Start starts a collector that ends with the test.
func Start(t testing.TB) *Collector {
	c := &Collector{resource: map[string]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Answer has f see every request first; with true f has answered it.
func (c *Collector) Answer(f func(http.ResponseWriter, *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// ServeHTTP takes one batch.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.headers = append(c.headers, r.Header.Clone())
	answer := c.answer
	c.mu.Unlock()
	if answer != nil && answer(w, r) {
		return
	}
	body, err := read(r)
	var batch collector.ExportTraceServiceRequest
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/v1/traces":
		http.Error(w, "no such place", http.StatusNotFound)
		return
	case r.Header.Get("Content-Type") != "application/x-protobuf":
		http.Error(w, "no such format", http.StatusUnsupportedMediaType)
		return
	case err != nil || proto.Unmarshal(body, &batch) != nil:
		http.Error(w, "no such message", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = append(c.bodies, body...)
	for _, from := range batch.GetResourceSpans() {
		maps.Copy(c.resource, attributes(from.GetResource().GetAttributes()))
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, span(s))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

func span(s *otlp.Span) Span {
	return Span{
		Name: s.GetName(), Kind: strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Attributes: attributes(s.GetAttributes()), RemoteParent: s.GetFlags()&0x300 == 0x300,
		Failed:  s.GetStatus().GetCode() == otlp.Status_STATUS_CODE_ERROR,
		Message: s.GetStatus().GetMessage(),
		Start:   time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
	}
}

func attributes(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range all {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.GetKey()] = fmt.Sprint(v.IntValue)
		default:
			out[a.GetKey()] = fmt.Sprintf("unexpected %T", v)
		}
	}
	return out
}

// Spans waits until a trace is complete, which it is when the span of a call has
// come, and returns its spans in the order of their beginning. An id of "" stands
// for the only trace that there is.
func (c *Collector) Spans(t testing.TB, trace string) []Span {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var found []Span
		complete := false
		for _, s := range c.All() {
			if trace == "" || s.Trace == trace {
				found = append(found, s)
				complete = complete || s.Kind == "server"
			}
		}
		if complete {
			slices.SortStableFunc(found, func(a, b Span) int { return a.Start.Compare(b.Start) })
			return found
		}
		if time.Since(began) > patience {
			t.Fatalf("no complete trace %q in %+v", trace, c.All())
		}
	}
}

// All are the spans so far.
func (c *Collector) All() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Forget forgets the spans so far.
func (c *Collector) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = nil
}

// Resource is what the senders say of themselves.
func (c *Collector) Resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.resource)
}

// Bodies are all messages, as they came and unpacked, one behind the other.
func (c *Collector) Bodies() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.bodies)
}

// Headers are those of every request, those that were refused included.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}
