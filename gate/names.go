package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Names that mean different things have different types, so that a swap does
// not compile.
type (
	// A ServerID is the operator's name for an upstream: [a-z0-9][a-z0-9-]{0,31}.
	ServerID string
	// A RemoteName is a tool's name on its own server, byte for byte.
	RemoteName string
	// A LocalName is what callers use: mcp_<id>_<remote>, at most 64 of [A-Za-z0-9_-].
	LocalName string
	// A CallerName names who calls: the name of a [[caller]] table, or "<issuer>|<subject>".
	CallerName string
)

// A Digest is a SHA-256 sum. Its text form is lower-case hexadecimal; the zero
// value means that nothing was digested and prints as the empty string.
type Digest [sha256.Size]byte

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest { return sha256.Sum256(b) }

// IsZero reports whether nothing was digested.
func (d Digest) IsZero() bool { return d == Digest{} }

func (d Digest) String() string {
	if d.IsZero() {
		return ""
	}
	return hex.EncodeToString(d[:])
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The empty text is the zero digest.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = Digest{}
		return nil
	}
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(d) {
		return fmt.Errorf("digest %q is not %d hexadecimal digits", text, 2*len(d))
	}
	copy(d[:], b)
	return nil
}
