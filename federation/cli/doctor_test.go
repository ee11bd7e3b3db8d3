package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/federation/config"
)

// The doctor asks the issuer what callers need of it, and what people need who
// sign in to the console.
func TestDoctorAsksTheIssuer(t *testing.T) {
	var token string
	var issuer *httptest.Server
	issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, issuer.URL, issuer.URL+"/a", token, issuer.URL+"/k")
	}))
	defer issuer.Close()
	network := config.Network{PrivateHosts: []string{"127.0.0.1"}}
	console := config.ConsoleClient{ClientID: "gatehouse"}
	good, plain := issuer.URL+"/t", "http://issuer.example/t"
	dead := httptest.NewServer(nil)
	dead.Close()
	for name, test := range map[string]struct {
		oidc               config.OIDC
		token, level, says string
	}{
		"none":              {},
		"keys by their url": {oidc: config.OIDC{Issuer: dead.URL, JWKSURL: dead.URL}},
		"callers":           {config.OIDC{Issuer: issuer.URL}, plain, wellLevel, "[oidc]"},
		"console":           {config.OIDC{Issuer: issuer.URL, Console: console}, good, wellLevel, "[oidc.console]"},
		"console, no https": {config.OIDC{Issuer: issuer.URL, Console: console}, plain, wrongLevel, "not https"},
		"console, keys too": {config.OIDC{Issuer: dead.URL, JWKSURL: dead.URL, Console: console}, good, wrongLevel, "does not describe itself"},
		"nobody there":      {config.OIDC{Issuer: dead.URL}, good, wrongLevel, "does not describe itself"},
	} {
		token = test.token
		d := &doctor{app: &app{}, cfg: &config.Config{OIDC: test.oidc, Network: network}}
		d.issuer(t.Context())
		if test.level == "" {
			if len(d.symptoms) != 0 {
				t.Errorf("%s: %+v", name, d.symptoms)
			}
			continue
		}
		if len(d.symptoms) != 1 || d.symptoms[0].Level != test.level || !strings.Contains(d.symptoms[0].Text, test.says) {
			t.Errorf("%s: %+v, want %s, %q", name, d.symptoms, test.level, test.says)
		}
	}
}
