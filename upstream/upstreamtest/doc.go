// Package upstreamtest plays MCP servers over HTTP: well-behaved ones of both
// eras, in both framings, that keep a record of every request they saw, and
// hostile ones, one per rule that a client has to hold to.
//
// Nothing here is lenient on behalf of the client. A played server refuses a
// request that its era refuses, so a client that gets an answer from it has
// spoken properly.
package upstreamtest
