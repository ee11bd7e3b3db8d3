package caller

import (
	"encoding/json"
	"strings"

	"gatehouse/federation/config"
)

// Resource is the identifier of our endpoint under publicURL, which is also
// the audience that tokens for us must name (RFC 8707).
func Resource(publicURL string) string {
	base := strings.TrimRight(publicURL, "/")
	if strings.HasSuffix(base, "/mcp") {
		return base
	}
	return base + "/mcp"
}

// Metadata is the RFC 9728 document of our endpoint.
func Metadata(publicURL string, oidc config.OIDC) []byte {
	doc := struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers,omitempty"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{Resource: Resource(publicURL), Methods: []string{"header"}, Name: "gatehouse"}
	if oidc.Enabled() {
		doc.Servers = []string{oidc.Issuer}
	}
	if oidc.RequiredScope != "" {
		doc.Scopes = []string{oidc.RequiredScope}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic("unreachable: strings always marshal")
	}
	return b
}
