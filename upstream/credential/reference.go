package credential

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A Scheme says where a Reference points.
type Scheme string

// The schemes.
const (
	Env   Scheme = "env"
	File  Scheme = "file"
	Vault Scheme = "vault"
)

// ErrLiteral says that a credential field holds something that is no
// reference. Its text never repeats the value, which may be the secret itself.
var ErrLiteral = errors.New(`a literal secret is refused (want "env:NAME", "file:/path" or "vault:name")`)

// A Reference names a secret without holding it. The zero value names nothing.
type Reference struct {
	scheme Scheme
	name   string
}

// ParseReference reads "env:NAME", "file:/path" or "vault:name". Everything
// else is taken for a literal secret and refused without being repeated.
func ParseReference(s string) (Reference, error) {
	scheme, name, ok := strings.Cut(s, ":")
	if !ok {
		return Reference{}, ErrLiteral
	}
	switch Scheme(scheme) {
	case Env:
		if !validVariable(name) {
			return Reference{}, errors.New(`"env:" wants the name of a variable: letters, digits and _, not starting with a digit`)
		}
	case File:
		if !filepath.IsAbs(name) || strings.ContainsAny(name, "\x00\r\n") {
			return Reference{}, errors.New(`"file:" wants an absolute path`)
		}
	case Vault:
		if !ValidVaultName(name) {
			return Reference{}, fmt.Errorf(`"vault:" wants a name of 1 to %d letters, digits, "-", "_" and ".", starting with a letter or digit`, maxVaultName)
		}
	default:
		return Reference{}, ErrLiteral
	}
	return Reference{Scheme(scheme), name}, nil
}

// Scheme says where r points, "" for the zero Reference.
func (r Reference) Scheme() Scheme { return r.scheme }

// Name is the variable, the path or the name in the vault.
func (r Reference) Name() string { return r.name }

// IsZero reports whether r names nothing.
func (r Reference) IsZero() bool { return r.scheme == "" }

// String is what ParseReference read.
func (r Reference) String() string {
	if r.IsZero() {
		return ""
	}
	return string(r.scheme) + ":" + r.name
}

// MarshalText implements encoding.TextMarshaler.
func (r Reference) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler by ParseReference.
func (r *Reference) UnmarshalText(text []byte) (err error) {
	*r, err = ParseReference(string(text))
	return err
}

func validVariable(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

const maxVaultName = 128

// ValidVaultName reports whether s can name a secret in the vault.
func ValidVaultName(s string) bool {
	for i, c := range []byte(s) {
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || c != '-' && c != '_' && c != '.') {
			return false
		}
	}
	return s != "" && len(s) <= maxVaultName
}
