// Package probe tells a server's author where the server departs from the
// protocol.
//
// It speaks to any MCP endpoint over HTTP with the strict client that Gatehouse
// calls upstreams with: both eras, the handshake, every page of the listing,
// and requests that must be refused. It looks at each tool's definition by the
// rules of the catalogue. It never sends tools/call, so nothing is done at the
// server's expense but answering.
package probe
