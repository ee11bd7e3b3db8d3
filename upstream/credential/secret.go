package credential

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
)

// redacted is all that any formatter, encoder or logger gets to see.
const redacted = "[secret]"

// A Secret holds a value that must not be printed. It writes itself as
// [secret] in every format, in JSON, TOML and structured logs; only Reveal
// gives the value. Copies share the value, so wiping one wipes all of them.
// Secrets cannot be compared with ==, which would take a telling time.
type Secret struct {
	_ [0]func() // not comparable
	// The value hides behind a function, so that a panic or a dump of the
	// struct that prints memory by reflection finds a code pointer.
	value func() []byte
}

// NewSecret takes over b; the caller must not use it again.
func NewSecret(b []byte) Secret {
	if len(b) == 0 {
		return Secret{}
	}
	return Secret{value: func() []byte { return b }}
}

// SecretString makes a Secret of s, which itself stays in memory.
func SecretString(s string) Secret { return NewSecret([]byte(s)) }

// IsZero reports whether s holds nothing.
func (s Secret) IsZero() bool { return s.value == nil }

// Reveal gives a copy of the value, for the one place that sends it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return string(s.value())
}

// Bytes gives a copy of the value that the caller may wipe.
func (s Secret) Bytes() []byte {
	if s.value == nil {
		return nil
	}
	return bytes.Clone(s.value())
}

// Len is the length of the value in bytes.
func (s Secret) Len() int {
	if s.value == nil {
		return 0
	}
	return len(s.value())
}

// Wipe overwrites the value, for this Secret and every copy of it.
func (s Secret) Wipe() {
	if s.value != nil {
		clear(s.value())
	}
}

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (Secret) GoString() string { return redacted }

// Format implements fmt.Formatter: every verb prints the same word.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON implements json.Marshaler.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
