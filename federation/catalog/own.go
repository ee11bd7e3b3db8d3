package catalog

import "gatehouse/gate"

// The names of our own tools.
const (
	StatusTool gate.LocalName = "gatehouse_status"
	FindTool   gate.LocalName = "gatehouse_find"
	CallTool   gate.LocalName = "gatehouse_call"
)
