package authserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/upstream/upstreamtest/leak"
)

// A key signs tokens.
type key struct {
	id      string
	private *ecdsa.PrivateKey
}

// Claims are what a token says.
type Claims map[string]any

// Text is the claim of that name when it is a string.
func (c Claims) Text(name string) string {
	text, _ := c[name].(string)
	return text
}

// Rotate replaces all keys by a new one.
func (s *Server) Rotate() {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // unreachable: crypto/rand does not fail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	s.keys = []key{{"key-" + strconv.Itoa(s.made), private}}
}

func (s *Server) publishKeys(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := []map[string]string{}
	for _, k := range s.keys {
		point, err := k.private.PublicKey.Bytes()
		if err != nil {
			panic(err) // unreachable: the key is on its curve
		}
		set = append(set, map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": k.id,
			"x": encode(point[1:33]), "y": encode(point[33:])})
	}
	reply(w, http.StatusOK, map[string]any{"keys": set})
}

// UserToken is what somebody signed in with: a token of the server's own for
// audience, with more claims over the usual ones. A nil claim is left out.
func (s *Server) UserToken(subject, audience string, more Claims) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims := s.claims(subject, audience)
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return s.sign(claims)
}

// claims are those of the next token, which is found by its mark. mu is held.
func (s *Server) claims(subject, audience string) Claims {
	s.issued++
	now := s.now()
	return Claims{"iss": s.Issuer(), "sub": subject, "aud": audience, "iat": now.Unix(), "exp": now.Add(s.life()).Unix(),
		"jti": "token-" + strconv.Itoa(s.issued), "mark": leak.Mark}
}

// sign makes a JWT under the newest key. mu is held.
func (s *Server) sign(claims Claims) string {
	k := s.keys[len(s.keys)-1]
	signed := part(map[string]string{"alg": "ES256", "kid": k.id, "typ": "at+jwt"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(signed))
	r, v, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
	if err != nil {
		panic(err) // unreachable: crypto/rand does not fail
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	v.FillBytes(signature[32:])
	token := signed + "." + encode(signature)
	s.given = append(s.given, token)
	return token
}

func part(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: claims are texts, numbers and lists
	}
	return encode(b)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Verify returns the claims of a token that this server signed, that has not
// expired and was not revoked. An audience, when given, must be its.
func (s *Server) Verify(token, audience string) (Claims, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims, err := s.verify(token)
	switch {
	case err != nil:
		return nil, err
	case audience != "" && claims.Text("aud") != audience:
		return nil, fmt.Errorf("meant for %v", claims["aud"])
	}
	return claims, nil
}

// verify is Verify for any audience. mu is held.
func (s *Server) verify(token string) (Claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, errors.New("not a JWT")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || len(signature) != 64 || !s.signedByUs(parts[0]+"."+parts[1], signature) {
		return nil, errors.New("bad signature")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, err
	}
	var claims Claims
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, err
	}
	switch exp, _ := claims["exp"].(float64); {
	case !s.now().Before(time.Unix(int64(exp), 0)):
		return nil, errors.New("expired")
	case s.revoked[claims.Text("jti")]:
		return nil, errors.New("revoked")
	}
	return claims, nil
}

func (s *Server) signedByUs(signed string, signature []byte) bool {
	sum := sha256.Sum256([]byte(signed))
	r, v := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
	return slices.ContainsFunc(s.keys, func(k key) bool { return ecdsa.Verify(&k.private.PublicKey, sum[:], r, v) })
}
