// Package authserver is an authorization server for tests, and the resource
// server beside it that accepts its tokens.
//
// It is small and it is real: tokens are JWTs signed with ES256 under keys that
// it publishes and can replace, codes want their PKCE verifier, refresh tokens
// are good once, an exchange (RFC 8693) looks at the token it is given, what was
// revoked (RFC 7009) stops working. It refuses what the specifications refuse,
// so a client that gets a token from it has asked properly. It agrees to
// everything that a person would be asked.
package authserver
