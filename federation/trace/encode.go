package trace

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	about "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
)

// Bits of a span's flags beside the eight of W3C.
const (
	knowsParent  = 0x100
	remoteParent = 0x200
)

// request puts spans into the form in which they travel. All of them are of one
// tracer, which has one resource and one scope.
func request(spans []sdk.ReadOnlySpan) *collector.ExportTraceServiceRequest {
	if len(spans) == 0 {
		return &collector.ExportTraceServiceRequest{}
	}
	scope := spans[0].InstrumentationScope()
	out := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: scope.Name, Version: scope.Version}}
	for _, s := range spans {
		out.Spans = append(out.Spans, span(s))
	}
	return &collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &about.Resource{Attributes: attributes(spans[0].Resource().Attributes())},
		SchemaUrl:  spans[0].Resource().SchemaURL(),
		ScopeSpans: []*otlp.ScopeSpans{out},
	}}}
}

func span(s sdk.ReadOnlySpan) *otlp.Span {
	own, parent := s.SpanContext(), s.Parent()
	trace, id := own.TraceID(), own.SpanID()
	out := &otlp.Span{
		TraceId: trace[:], SpanId: id[:], Name: s.Name(), Kind: otlp.Span_SpanKind(s.SpanKind()),
		Flags:             uint32(own.TraceFlags()) | knowsParent,
		StartTimeUnixNano: nanoseconds(s.StartTime()), EndTimeUnixNano: nanoseconds(s.EndTime()),
		Attributes: attributes(s.Attributes()), DroppedAttributesCount: uint32(s.DroppedAttributes()),
	}
	if above := parent.SpanID(); above.IsValid() {
		out.ParentSpanId = above[:]
	}
	if parent.IsRemote() {
		out.Flags |= remoteParent
	}
	if status := s.Status(); status.Code == codes.Error {
		out.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR, Message: status.Description}
	}
	return out
}

func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func attributes(all []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, 0, len(all))
	for _, a := range all {
		out = append(out, &common.KeyValue{Key: string(a.Key), Value: value(a.Value)})
	}
	return out
}

// value keeps integers; the only other attributes that there are here are texts.
func value(v attribute.Value) *common.AnyValue {
	if v.Type() == attribute.INT64 {
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v.AsInt64()}}
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v.String()}}
}
