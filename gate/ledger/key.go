package ledger

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

var errKey = errors.New("not an Ed25519 key in PEM; make one with: openssl genpkey -algorithm ed25519")

// ParseSigner reads a private key as openssl writes it: PKCS #8 in PEM.
func ParseSigner(text []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errKey
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errKey
	}
	return key, nil
}

// ParseKey reads a public key in PEM, or takes the public half of a private one.
func ParseKey(text []byte) (ed25519.PublicKey, error) {
	if signer, err := ParseSigner(text); err == nil {
		return signer.Public().(ed25519.PublicKey), nil
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errKey
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := parsed.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, errKey
	}
	return key, nil
}
