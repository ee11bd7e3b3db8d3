// Package catalog holds what callers may be offered: the tools that imports
// found, what an operator made of them, and our own.
//
// Nothing here asks the network. An import hands over what a server listed; the
// catalogue judges each tool on its own, keeps it as the bytes it came in, and
// swaps in a new Snapshot. A tool is offered only while its definition, and the
// place it comes from, are the ones an operator enabled.
//
// The way through the package is: definition (what a server said about one
// tool) -> StoredTool (what is kept) -> entry (what the configuration and the
// pins make of it) -> view and page (what one kind of caller sees).
package catalog
