package config

// Template is the file that `gatehouse init` writes: one administrator whose
// token has that digest ("sha256:<hex>"), and the demo server at demoURL.
func Template(callerName, tokenDigest, demoURL string) string {
	return callerName + tokenDigest + demoURL
}
