package catalog

import (
	"encoding/json"
	"time"

	"gatehouse/gate"
)

// A Store keeps the catalogue. Values handed in or out are not changed by
// either side afterwards. Definitions come back byte for byte, for callers are
// served these bytes; encoding/json alone would rewrite "<" in them. It must be
// safe for concurrent use.
type Store interface {
	// Load returns all that is kept, in any order.
	Load() ([]StoredServer, []StoredTool, error)

	// Save writes one server's record together with some of its tools: put
	// replaces or adds, drop removes by remote name. All of it is durable when
	// Save returns, or none of it is.
	Save(server StoredServer, put []StoredTool, drop []gate.RemoteName) error
}

// The stored structs are apart from the API's so that the API may change.
// Safe changes: a new member that is right when absent, since older records
// lack it; a longer limit. Not safe without a migration: another meaning or
// type for a member, another JSON name, another way to compute Digest or
// Identity (every pin would read as "changed").

// A StoredServer is what is kept of one server beside its tools.
type StoredServer struct {
	ID          gate.ServerID `json:"id"`
	LastImport  time.Time     `json:"last_import,omitzero"`  // of the last one that succeeded
	LastRefusal time.Time     `json:"last_refusal,omitzero"` // zero once an import succeeded again
	Refusal     string        `json:"refusal,omitempty"`     // why that one was refused
	Era         string        `json:"era,omitempty"`         // the protocol version the last import spoke
	Nameless    []StoredSkip  `json:"nameless,omitempty"`    // what the last import met that has no name to keep it under
}

// A StoredSkip is an entry of a listing that is no tool.
type StoredSkip struct {
	Index  int    `json:"index"` // in the listing, from 0
	Reason string `json:"reason"`
}

// A StoredTool is what is kept of one tool of one server.
type StoredTool struct {
	Server     gate.ServerID   `json:"server"`
	Remote     gate.RemoteName `json:"remote"`
	Definition json.RawMessage `json:"definition,omitempty"` // as last received; absent when it was too large to keep
	Digest     gate.Digest     `json:"digest"`               // of Definition in canonical form
	Refusal    string          `json:"refusal,omitempty"`    // why this definition cannot be served, whatever the tool's local name
	Warnings   []string        `json:"warnings,omitempty"`   // what somebody should know of this definition
	FirstSeen  time.Time       `json:"first_seen"`
	LastSeen   time.Time       `json:"last_seen"`
	Vanished   bool            `json:"vanished,omitempty"` // the last import did not list it
	Pin        *StoredPin      `json:"pin,omitempty"`      // nil: nobody enabled it
}

// A StoredPin is what an operator enabled: this definition, from this place.
type StoredPin struct {
	Digest     gate.Digest     `json:"digest"`
	URL        string          `json:"url"`
	Identity   gate.Digest     `json:"identity"`             // of how we authenticate there, without secrets
	Definition json.RawMessage `json:"definition,omitempty"` // only while it differs from the tool's, for the diff
	Time       time.Time       `json:"time"`
}
