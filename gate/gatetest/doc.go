// Package gatetest helps to test what stands around a gate: a ledger, a clock, a
// key ring and a snapshot in memory, permits for tests, and the suite that every
// gate.Ledger has to pass.
package gatetest
