package catalog

import "gatehouse/gate"

// A Difference says how a tool differs from what an operator enabled. Its texts
// are safe to print.
type Difference struct {
	Name    gate.LocalName `json:"name"`
	Server  gate.ServerID  `json:"server"`
	Remote  string         `json:"remote_name"`
	Old     gate.Digest    `json:"old,omitzero"` // of the enabled definition
	New     gate.Digest    `json:"new,omitzero"`
	Changes []FieldChange  `json:"changes"`
}

// The kinds of FieldChange.
const (
	Added   = "added"
	Removed = "removed"
	Altered = "changed"
)

// A FieldChange is one difference.
type FieldChange struct {
	Field string `json:"field"` // "description", "inputSchema.properties.bcc", "url", …
	Kind  string `json:"kind"`
	Old   string `json:"old,omitempty"`
	New   string `json:"new,omitempty"`
}

// String is the difference for a terminal of 80 columns.
func (d Difference) String() string { return "" }

// Diff says how a tool differs from what was enabled.
func (c *Catalog) Diff(name gate.LocalName) (Difference, error) { return Difference{}, nil }

func changes(old, new []byte) []FieldChange { return nil }
func briefly([]FieldChange) string          { return "" }
