// Package upstream is the strict client: the hands of the gateway.
//
// It has one method per operation. Test shakes hands, List walks all pages of
// tools/list, Call sends what one permit allows. Each of them has one deadline
// for all of its requests, its own credential session, and, where the server's
// era has sessions, an MCP session that does not outlive it. The one exception
// is asked for by the operator: a server with session = "caller" keeps a session
// for each caller, and nobody else ever uses it.
//
// Call takes a gate.Permit instead of tool and arguments and spends it. Nothing
// exported from this package sends tools/call in any other way, and once the
// request may have reached the server nothing sends it again.
package upstream
