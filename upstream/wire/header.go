package wire

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// CheckHeaderName reports why name cannot carry a credential (mode = "header"):
// it must be a token of RFC 9110, and none that the protocol or HTTP itself uses.
func CheckHeaderName(name string) error {
	if !isToken(name) {
		return fmt.Errorf("header name %q is not an RFC 9110 token", Clip(name))
	}
	switch lower := strings.ToLower(name); lower {
	case "authorization":
		return fmt.Errorf(`header name %q belongs to mode = "bearer"`, name)
	case "host", "content-length", "content-type", "content-encoding", "accept", "accept-encoding", "cookie", "expect",
		"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
		"te", "trailer", "transfer-encoding", "upgrade":
		return fmt.Errorf("header name %q is taken by HTTP itself", name)
	default:
		if strings.HasPrefix(lower, "mcp-") {
			return fmt.Errorf("header name %q is taken by the protocol", name)
		}
	}
	return nil
}

func tokenRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// CheckHeaderValue reports whether value can be sent as it is. It never quotes
// the value, which may be a secret.
func CheckHeaderValue(value string) error {
	if value == "" {
		return fmt.Errorf("header value is empty")
	}
	return checkControls(value)
}

func checkControls(value string) error {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("header value has a control character at byte %d", i)
		}
	}
	return nil
}

// checkField reports whether a field can be written into a message as it is. A
// field that says where messages end, or that is there already, cannot.
func checkField(name, value string) error {
	if !isToken(name) {
		return fmt.Errorf("header name %q is not an RFC 9110 token", Clip(name))
	}
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Upgrade", "Te",
		"User-Agent", "Accept", "Accept-Encoding", "Content-Type":
		return fmt.Errorf("header %q is set by the connection itself", name)
	}
	if err := checkControls(value); err != nil {
		return fmt.Errorf("header %q: %w", name, err)
	}
	return nil
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) })
}

const encodedPrefix, encodedSuffix = "=?base64?", "?="

// EncodeHeaderValue writes s as the value of Mcp-Name or Mcp-Param-* (MCP
// 2026-07-28, streamable HTTP): visible ASCII, space and tab as they are;
// anything else, outer white space, and what looks like the marker itself, as
// base64 of the UTF-8 between markers.
func EncodeHeaderValue(s string) string {
	plain := s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\t' {
			plain = false
		}
	}
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}
