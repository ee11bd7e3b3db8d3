// Package trace tells an OpenTelemetry collector what became of each call.
//
// Whether it does, and where the collector is, say the standard variables of the
// environment; without them there is no Tracer, and every method of one that is
// nil, and of the Call that it begins, does nothing.
//
// Names are those of the OpenTelemetry conventions for MCP where there is one,
// and begin with gatehouse. otherwise. A span holds names, numbers, verdicts and
// times. It never holds an argument, a part of a result, a session's id, a
// server's own words, or a name that a caller made up.
//
// The SDK samples, batches and drops; only what brings a batch to the collector
// is our own, because the exporter that belongs to the SDK brings gRPC along.
package trace
