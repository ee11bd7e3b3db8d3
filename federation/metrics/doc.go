// Package metrics counts what a gateway does, for Prometheus.
//
// Names are those of the OpenTelemetry conventions for MCP, in Prometheus'
// spelling, where there is one, and begin with gatehouse_ otherwise.
//
// No label can take a value that a caller or a server chooses: methods, reasons
// and legs that are not known are counted as "other", tools by the group that
// the configuration gives them. Whoever calls ten thousand tools that do not
// exist adds no series.
//
// Nearly everything is counted from the entries of the ledger, on the ledger's
// own goroutine after whoever waited was answered. What is on record and what is
// counted cannot disagree, and a call pays for one observation only.
package metrics
