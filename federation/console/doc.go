// Package console is the operator's pages: what waits for somebody, the
// servers, the tools, the questions, the callers, the record and the flow.
//
// Pages are rendered here, whole, by html/template; without scripts everything
// works but live updates. What a page shows and does comes through
// federation/control in the name of the administrator who signed in, so a page
// can do nothing that the command line could not, and the record says who did it.
// The record itself is read from its files, as the command line reads it.
//
// Nothing an upstream wrote becomes markup: templates escape it, and characters
// that hide or reorder text are written out before it gets there.
package console
