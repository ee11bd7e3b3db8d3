package trace

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/gate"
)

func TestEnvironment(t *testing.T) {
	const endpoint, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, test := range []struct {
		name string
		env  map[string]string
		url  string // "": no traces
		err  string // what the error begins with
	}{
		{"nothing", nil, "", ""},
		{"endpoint", map[string]string{endpoint: "http://c:4318"}, "http://c:4318/v1/traces", ""},
		{"endpoint with a path", map[string]string{endpoint: "https://c.example.org/otlp/"}, "https://c.example.org/otlp/v1/traces", ""},
		{"endpoint of traces", map[string]string{traces: "http://c:4318/there", endpoint: "http://d"}, "http://c:4318/there", ""},
		{"exporter alone", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http://localhost:4318/v1/traces", ""},
		{"exporter none", map[string]string{"OTEL_TRACES_EXPORTER": "none", endpoint: "http://c"}, "", ""},
		{"another exporter", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, "", `OTEL_TRACES_EXPORTER "zipkin" is unknown`},
		{"disabled", map[string]string{"OTEL_SDK_DISABLED": "TRUE", endpoint: "http://c"}, "", ""},
		{"not disabled", map[string]string{"OTEL_SDK_DISABLED": "false", endpoint: "http://c"}, "http://c/v1/traces", ""},
		{"empty", map[string]string{endpoint: " "}, "", ""},
		{"protocol", map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://c/v1/traces", ""},
		{"grpc", map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", `OTEL_EXPORTER_OTLP_PROTOCOL "grpc"`},
		{"protocol of traces", map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, "http://c/v1/traces", ""},
		{"compression", map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "", `OTEL_EXPORTER_OTLP_COMPRESSION "zstd"`},
		{"timeout", map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, "", `OTEL_EXPORTER_OTLP_TIMEOUT "10s"`},
		{"no url", map[string]string{endpoint: "collector:4318"}, "", endpoint + " is no http or https url"},
		{"user", map[string]string{traces: "http://user:pw@c"}, "", traces + " holds a user"},
		{"headers", map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "a=b,secret"}, "", "OTEL_EXPORTER_OTLP_HEADERS: entry 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := fromEnvironment(func(name string) string { return test.env[name] })
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) || strings.Contains(err.Error(), "pw") || strings.Contains(err.Error(), "secret") {
					t.Errorf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if s != nil {
				got = s.url.String()
			}
			if got != test.url {
				t.Errorf("url %q, want %q", got, test.url)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	h, err := parseHeaders(" Authorization = Basic%20cXE=, x-tenant=a%2Cb ,,")
	if err != nil || h.Get("Authorization") != "Basic cXE=" || h.Get("X-Tenant") != "a,b" || len(h) != 2 {
		t.Errorf("%q, %v", h, err)
	}
	for _, bad := range []string{"a", "=b", "a b=c", "a=%zz", "a=b%0d%0ac", "ä=b"} {
		if h, err := parseHeaders(bad); err == nil {
			t.Errorf("%q gives %q", bad, h)
		}
	}
}

// What cannot be met is said, and there is no tracer then.
func TestFromEnvironmentSaysWhy(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"protocol": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		"ca":       {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CERTIFICATE": filepath.Join(t.TempDir(), "none.pem")},
		"host":     {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://0x7f.1"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range env {
				t.Setenv(key, value)
			}
			var out strings.Builder
			if tracer := FromEnvironment("test", slog.New(slog.NewTextHandler(&out, nil))); tracer != nil {
				tracer.Close(t.Context())
				t.Error("there is a tracer")
			}
			if !strings.Contains(out.String(), "there will be no traces") {
				t.Errorf("the log: %q", out.String())
			}
		})
	}
}

// Without a tracer a call pays for comparisons with nil and for nothing else.
func TestNoTracerCostsNothing(t *testing.T) {
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	before := runtime.NumGoroutine()
	tracer := FromEnvironment("test", slog.New(slog.DiscardHandler))
	if tracer != nil || runtime.NumGoroutine() != before {
		t.Fatalf("tracer %v, %d goroutines more", tracer, runtime.NumGoroutine()-before)
	}
	var l gate.Ledger
	ctx, outcome := t.Context(), gate.Outcome{Legs: []gate.Leg{{Took: time.Second}}}
	if n := testing.AllocsPerRun(100, func() {
		c := tracer.Begin("", "")
		if c.Context(ctx) != ctx || tracer.Ledger(l) != l {
			t.Error("something is put in between")
		}
		c.Judging()
		c.Judged(gate.Ruling{})
		c.Sent(&outcome)
		c.End(Ending{})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	tracer.Close(ctx)
}

// The SDK reads from the environment what is in the spans.
func TestSDKReadsItsOwn(t *testing.T) {
	for key, value := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SERVICE_NAME": "gate-7",
		"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,service.name=not-this", "OTEL_TRACES_SAMPLER": "always_off"} {
		t.Setenv(key, value)
	}
	about, err := describe("1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range about.Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	delete(got, "service.instance.id")
	for key := range maps.Clone(got) {
		if strings.HasPrefix(key, "telemetry.sdk.") {
			delete(got, key)
		}
	}
	if want := map[string]string{"service.name": "gate-7", "service.version": "1.2.3", "deployment.environment.name": "test"}; !maps.Equal(got, want) {
		t.Errorf("resource %v, want %v", got, want)
	}
	tracer := FromEnvironment("test", slog.New(slog.DiscardHandler))
	defer tracer.Close(t.Context())
	if tracer.Begin("", "").span.IsRecording() {
		t.Error("the sampler is not followed")
	}
}

// What the SDK finds wrong is in our log, and does not keep traces away.
func TestSDKComplainsToOurLog(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_TRACES_SAMPLER", "sometimes")
	var out strings.Builder
	tracer := FromEnvironment("test", slog.New(slog.NewTextHandler(&out, nil)))
	if tracer == nil {
		t.Fatal("no tracer")
	}
	tracer.Close(t.Context())
	if !strings.Contains(out.String(), "a setting of traces is not followed") || !strings.Contains(out.String(), "sometimes") {
		t.Errorf("the log: %s", out.String())
	}
}
