package caller

import (
	"crypto/rand"
	"encoding/base64"

	"gatehouse/gate"
)

// tokenPrefix lets people and secret scanners tell what a token is for.
const tokenPrefix = "gh_"

// NewToken makes a token of 32 random bytes and the digest that goes into the
// configuration. The token itself is kept nowhere.
func NewToken() (token string, digest gate.Digest) {
	b := make([]byte, 32)
	rand.Read(b)
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
	return token, gate.DigestOf([]byte(token))
}
