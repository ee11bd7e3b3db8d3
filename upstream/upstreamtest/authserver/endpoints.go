package authserver

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"gatehouse/upstream/upstreamtest/leak"
)

const accessToken = "urn:ietf:params:oauth:token-type:access_token"

// register is RFC 7591 for public clients.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	var about map[string]any
	if err := json.NewDecoder(r.Body).Decode(&about); err != nil {
		refuse(w, http.StatusBadRequest, "invalid_client_metadata", "not JSON")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.registered = append(s.registered, about)
	id := "client-" + strconv.Itoa(len(s.registered))
	s.clients[id] = ""
	reply(w, http.StatusCreated, map[string]any{"client_id": id})
}

// authorize agrees to everything that is asked properly.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.knows(q.Get("client_id"), q.Get("redirect_uri")) || q.Get("code_challenge_method") != "S256" ||
		q.Get("code_challenge") == "" || q.Get("response_type") != "code" || q.Get("resource") == "" && !signsIn(q) || q.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := leak.Secret("code")
	s.codes[code] = q
	s.given = append(s.given, code)
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {s.Issuer()}}
	if s.settings.Answer != nil {
		s.settings.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// signsIn reports whether OpenID Connect is spoken: somebody is to be signed in,
// and no resource is to be reached.
func signsIn(asked url.Values) bool {
	return slices.Contains(strings.Fields(asked.Get("scope")), "openid")
}

// knows reports whether a client is registered, or describes itself in a
// document that names the redirect. mu is held.
func (s *Server) knows(client, redirect string) bool {
	if _, ok := s.clients[client]; ok {
		return true
	}
	if s.settings.Document == nil || !strings.HasPrefix(client, "https://") {
		return false
	}
	text, err := s.settings.Document(client)
	var document struct {
		ClientID  string   `json:"client_id"`
		Redirects []string `json:"redirect_uris"`
	}
	if err != nil || json.Unmarshal(text, &document) != nil || document.ClientID != client {
		return false
	}
	if !slices.ContainsFunc(document.Redirects, func(known string) bool { return known == redirect || sameLoopback(known, redirect) }) {
		return false
	}
	s.clients[client] = ""
	return true
}

// sameLoopback lets the port of a loopback redirect vary (RFC 8252 section 7.3).
func sameLoopback(known, redirect string) bool {
	a, errA := url.Parse(known)
	b, errB := url.Parse(redirect)
	if errA != nil || errB != nil || a.Scheme != b.Scheme || a.Path != b.Path || a.Hostname() != b.Hostname() {
		return false
	}
	ip, err := netip.ParseAddr(a.Hostname())
	return err == nil && ip.IsLoopback()
}

// client names who asks, "" for nobody known. mu is held.
func (s *Server) client(r *http.Request) string {
	id, secret := r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		s.basic++
		id, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(password)
	}
	if want, known := s.clients[id]; !known || want != secret {
		return ""
	}
	return id
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil || r.URL.RawQuery != "" {
		refuse(w, http.StatusBadRequest, "invalid_request", "")
		return
	}
	form := maps.Clone(r.PostForm)
	s.mu.Lock()
	s.asked = append(s.asked, form)
	instead := s.settings.Token
	s.mu.Unlock()
	if instead != nil && instead(w, form) { // it may wait
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	client := s.client(r)
	if client == "" {
		refuse(w, http.StatusUnauthorized, "invalid_client", form.Get("client_secret"))
		return
	}
	answer, quoted := s.grant(client, form)
	if answer == nil {
		refuse(w, http.StatusBadRequest, "invalid_grant", quoted)
		return
	}
	reply(w, http.StatusOK, answer)
}

// grant makes the answer to a token request; nil is a refusal, for which quoted
// is what a careless server would quote. mu is held.
func (s *Server) grant(client string, form url.Values) (answer map[string]any, quoted string) {
	answer = map[string]any{"token_type": "Bearer", "expires_in": int(s.life().Seconds())}
	subject, audience := client, form.Get("audience")
	if audience == "" {
		audience = form.Get("resource")
	}
	more := Claims{}
	switch form.Get("grant_type") {
	case "client_credentials":
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		claims, err := s.verify(form.Get("subject_token"))
		if err != nil || form.Get("subject_token_type") != accessToken || audience == "" {
			return nil, form.Get("subject_token")
		}
		subject, more["act"] = claims.Text("sub"), map[string]string{"sub": client}
		answer["issued_token_type"] = accessToken
	case "authorization_code":
		asked := s.redeem(client, form)
		if asked == nil {
			return nil, form.Get("code")
		}
		subject = "operator"
		if signsIn(asked) {
			answer["id_token"] = s.idToken(subject, client, asked.Get("nonce"))
			break
		}
		s.addRefreshToken(client, answer)
	case "refresh_token":
		if s.refreshing[form.Get("refresh_token")] != client {
			return nil, form.Get("refresh_token")
		}
		delete(s.refreshing, form.Get("refresh_token")) // good once
		subject = "operator"
		s.addRefreshToken(client, answer)
	default:
		return nil, form.Get("grant_type")
	}
	if scope := form.Get("scope"); scope != "" {
		answer["scope"], more["scope"] = scope, scope
	}
	claims := s.claims(subject, audience)
	maps.Copy(claims, more)
	answer["access_token"] = s.sign(claims)
	return answer, ""
}

// redeem takes a code, once, from the client that it was made for and that knows
// what its challenge was made of, and returns what was asked for it; nil is a
// refusal. mu is held.
func (s *Server) redeem(client string, form url.Values) (asked url.Values) {
	asked, ok := s.codes[form.Get("code")]
	delete(s.codes, form.Get("code"))
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	if !ok || asked.Get("client_id") != client || asked.Get("redirect_uri") != form.Get("redirect_uri") ||
		asked.Get("code_challenge") != encode(sum[:]) || asked.Get("resource") != form.Get("resource") {
		return nil
	}
	return asked
}

// idToken says who signed in. mu is held.
func (s *Server) idToken(subject, client, nonce string) string {
	claims := s.claims(subject, client)
	claims["nonce"] = nonce
	if s.settings.Person != nil {
		s.settings.Person(claims)
	}
	return s.sign(claims)
}

func (s *Server) addRefreshToken(client string, answer map[string]any) {
	if s.settings.NoRefreshTokens {
		return
	}
	refresh := leak.Secret("refresh")
	s.refreshing[refresh] = client
	s.given = append(s.given, refresh)
	answer["refresh_token"] = refresh
}

// revoke is RFC 7009: what is unknown is as good as revoked.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ParseForm() != nil || s.client(r) == "" {
		refuse(w, http.StatusUnauthorized, "invalid_client", "")
		return
	}
	token := r.PostForm.Get("token")
	delete(s.refreshing, token)
	s.revoked[token] = true
	if claims, err := s.verify(token); err == nil {
		s.revoked[claims.Text("jti")] = true
	}
	w.WriteHeader(http.StatusOK)
}
