package upstream

import (
	"time"

	"gatehouse/gate"
)

// A Store remembers what was learned about servers.
type Store interface {
	// Era is what SetEra last said of the server; "" or false when nothing is known.
	Era(gate.ServerID) (era string, ok bool)
	// SetEra remembers Legacy or Modern; "" forgets.
	SetEra(id gate.ServerID, era string) error
	// Contact says that an operation completed: when, and how long its last leg
	// took. It is on the path of every call, so it must not wait for a disk.
	Contact(id gate.ServerID, at time.Time, latency time.Duration) error
}
