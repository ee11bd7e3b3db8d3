package gate

import (
	"fmt"
	"strings"
)

// A Class says how sensitive the data behind a tool is. The zero value,
// Unclassified, fits under no ceiling, so forgetting to classify a tool cannot
// open it.
type Class uint8

// The classes, least to most sensitive.
const (
	Unclassified Class = iota
	PublicContent
	EditorContent
	SourceCode
	InternalConfiguration
	SystemDiagnostics
	SecretAdjacent
)

var classNames = [...]string{"", "public_content", "editor_content", "source_code",
	"internal_configuration", "system_diagnostics", "secret_adjacent"}

// ClassNames lists the declarable classes, least sensitive first.
func ClassNames() []string { return classNames[1:] }

// String returns the configuration's spelling, or "unclassified".
func (c Class) String() string {
	if c == Unclassified || int(c) >= len(classNames) {
		return "unclassified"
	}
	return classNames[c]
}

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText accepts the exact spelling of a declarable class and nothing else.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range classNames[1:] {
		if string(text) == name {
			*c = Class(i + 1)
			return nil
		}
	}
	return fmt.Errorf("unknown data class %q (want %s)", text, strings.Join(ClassNames(), ", "))
}

// Fits reports whether data of class c may travel to where ceiling is the limit.
// Neither an undeclared class nor an undeclared ceiling ever fits.
func (c Class) Fits(ceiling Class) bool {
	return c != Unclassified && ceiling != Unclassified && c <= ceiling && int(ceiling) < len(classNames)
}

// A Zone says where a caller's model runs, that is, where a result travels
// next. The zero value is the least trusted zone.
type Zone uint8

// The zones, least to most trusted.
const (
	ExternalGlobal Zone = iota
	ExternalEU
	PrivateHosted
	Local
)

var zones = [...]struct {
	name    string
	ceiling Class
}{
	{"external_global", EditorContent},
	{"external_eu", InternalConfiguration},
	{"private_hosted", SystemDiagnostics},
	{"local", SecretAdjacent},
}

// ZoneNames lists the zones, least trusted first.
func ZoneNames() []string {
	names := make([]string, len(zones))
	for i, z := range zones {
		names[i] = z.name
	}
	return names
}

// Ceiling is the most sensitive class whose results may travel to z. A value
// that is no zone has no ceiling, so nothing fits under it.
func (z Zone) Ceiling() Class {
	if int(z) >= len(zones) {
		return Unclassified
	}
	return zones[z].ceiling
}

func (z Zone) String() string {
	if int(z) >= len(zones) {
		return "unknown"
	}
	return zones[z].name
}

// MarshalText implements encoding.TextMarshaler.
func (z Zone) MarshalText() ([]byte, error) { return []byte(z.String()), nil }

// UnmarshalText accepts the exact spelling of a zone and nothing else.
func (z *Zone) UnmarshalText(text []byte) error {
	for i := range zones {
		if string(text) == zones[i].name {
			*z = Zone(i)
			return nil
		}
	}
	return fmt.Errorf("unknown trust zone %q (want %s)", text, strings.Join(ZoneNames(), ", "))
}
