package upstreamtest

// A Profile is one kind of well-behaved server.
type Profile struct {
	Name     string
	Modern   bool // 2026-07-28; otherwise 2025-11-25
	Sessions bool // issues Mcp-Session-Id and insists on it
	Stream   bool // answers requests with event streams
}

// Profiles lists the kinds that a client has to get along with.
func Profiles() []Profile {
	return []Profile{
		{Name: "2025-stateless"},
		{Name: "2025-sessions", Sessions: true},
		{Name: "2025-sessions-stream", Sessions: true, Stream: true},
		{Name: "2026", Modern: true},
		{Name: "2026-stream", Modern: true, Stream: true},
	}
}

// The protocol versions that the played servers know.
const (
	ModernVersion = "2026-07-28"
	LegacyVersion = "2025-11-25"
)
