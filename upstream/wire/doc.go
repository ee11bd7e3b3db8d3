// Package wire carries one strict JSON-RPC message to an upstream MCP server
// over HTTP and judges what comes back.
//
// It has three parts. A [Network] is the host gate: which addresses this
// process may connect to, checked on every address that is dialed. An
// [Endpoint] is one upstream url behind that gate. [Endpoint.Do] is one round
// trip: one POST, never redirected and never replayed, one reply that is either
// accepted by every rule or refused with an [Error] that says which rule.
//
// Nothing here decodes a result. What a server answered travels as the bytes
// received, because a second encoding could say something else.
package wire
