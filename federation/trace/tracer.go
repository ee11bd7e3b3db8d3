package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otrace "go.opentelemetry.io/otel/trace"
)

// closeTimeout bounds what the last batches may take when the process ends.
const closeTimeout = 5 * time.Second

// A Tracer begins the spans of calls and sends them to a collector. It is safe
// for concurrent use; nil traces nothing.
type Tracer struct {
	provider *sdk.TracerProvider
	spans    otrace.Tracer
	exporter *exporter
}

// FromEnvironment makes the tracer that the variables of the environment ask for,
// nil when they ask for none. A request that cannot be met is logged and is no
// reason not to serve: variables like these are handed to whole clusters at once.
// Whoever made a tracer closes it.
func FromEnvironment(version string, log *slog.Logger) *Tracer {
	s, err := fromEnvironment(os.Getenv)
	if s == nil && err == nil {
		return nil
	}
	var e *exporter
	if err == nil {
		e, err = newExporter(s, version, log)
	}
	if err != nil {
		log.Error("there will be no traces", "error", err)
		return nil
	}
	complain := e.complaints("a setting of traces is not followed")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { complain(0, err.Error()) }))
	about, err := describe(version)
	if err != nil {
		otel.Handle(err) // what could be read of it is used
	}
	t := &Tracer{exporter: e, provider: sdk.NewTracerProvider(sdk.WithBatcher(e), sdk.WithResource(about))}
	t.spans = t.provider.Tracer("gatehouse", otrace.WithInstrumentationVersion(version))
	log.Info("traces go to a collector", "collector", s.url.Host)
	return t
}

// describe says who sends. The environment has the last word.
func describe(version string) (*resource.Resource, error) {
	var instance [16]byte
	rand.Read(instance[:]) // never fails (crypto/rand)
	return resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "gatehouse"),
		attribute.String("service.version", version),
		attribute.String("service.instance.id", hex.EncodeToString(instance[:])),
	), resource.WithFromEnv())
}

// Close sends what is left, within ctx and closeTimeout, and ends the tracer. It
// is called once. Nothing that a collector does makes it an error.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	t.exporter.hurry()
	_ = t.provider.Shutdown(ctx) // what was lost is in the log
	t.exporter.abandon()
}
