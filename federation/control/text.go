package control

import "gatehouse/upstream/wire"

// printable makes remote text fit for a terminal.
func printable(s string) string { return wire.Clip(s) }
