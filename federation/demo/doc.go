// Package demo is an upstream to try Gatehouse with: a small MCP server on
// loopback that speaks both protocol eras and needs nothing but this binary.
//
// Its tools work on notes kept in memory. Asked to, it misbehaves in one of
// several ways that real servers were seen to, so that an operator can watch
// what Gatehouse makes of it.
package demo
