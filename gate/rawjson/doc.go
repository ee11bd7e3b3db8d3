// Package rawjson reads JSON strictly and leaves the bytes alone.
//
// What a gate judges must be what the other side runs. Go's encoding/json keeps
// the last of two equal keys, matches keys without regard to case and turns
// numbers into floats, so a second parser may see another message in the same
// bytes. This package decodes nothing it is not asked for: it checks a whole
// value in one pass, hands out the raw bytes of members and elements, and
// refuses what two parsers could read differently (RFC 8259 section 4, RFC 7493).
package rawjson
