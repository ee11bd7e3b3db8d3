// Package federation is the face of Gatehouse: what callers meet at the one
// endpoint, in both eras of the protocol.
//
// A request passes, outermost first: method, Host and Origin, size, the caller's
// token, one strict parse. What survives is a message whose raw bytes are judged
// by gate, and what gate returns is handed to upstream. tools/list never leaves
// this process: its pages were encoded when the snapshot was built.
//
// Legacy means MCP 2025-03-26 to 2025-11-25 (initialize, sessions), modern means
// 2026-07-28 (every request describes itself). Both live on one URL.
package federation
