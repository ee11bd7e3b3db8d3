// Package demo is an upstream to try Gatehouse with: a small MCP server on
// loopback that speaks both protocol eras and needs nothing but this binary.
//
// Its tools work on notes kept in memory. Asked to, it misbehaves in one of the
// ways of upstreamtest, so that an operator can watch what Gatehouse makes of it
// and an author of another client what theirs does.
package demo
