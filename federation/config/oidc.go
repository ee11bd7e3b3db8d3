package config

import (
	"net"
	"regexp"
	"slices"
	"strings"
)

// claimPath is a claim, or a path into nested claims. A claim that is a url
// (as some issuers namespace theirs) is taken whole by whoever reads it.
var claimPath = regexp.MustCompile(`^[!-~]{1,256}$`)

func (b *builder) oidc(t *oidcTable) {
	if !t.present {
		return
	}
	o := &b.config.OIDC
	if !t.Issuer.given {
		b.add(t.line, "oidc.issuer", "oidc: issuer is missing")
	}
	o.Issuer = b.endpoint(&t.table, &t.Issuer)
	if strings.Contains(o.Issuer, "?") && t.Issuer.ok() {
		b.wrong(&t.table, &t.Issuer.field, "has a query, which an issuer never has")
	}
	o.JWKSURL = b.endpoint(&t.table, &t.JWKSURL)
	o.Audience = b.visible(&t.table, &t.Audience)
	if !t.Audience.given && b.config.Listen.PublicURL == "" {
		b.add(t.line, "oidc.audience", "oidc: audience is missing, and there is no [listen] public_url to take for it; a token for anybody else must not open this door")
	}
	if t.RequiredScope.ok() {
		if wrong := checkScope(t.RequiredScope.value); wrong != "" {
			b.wrong(&t.table, &t.RequiredScope.field, "%q: %s", clip(t.RequiredScope.value), wrong)
		}
		o.RequiredScope = t.RequiredScope.value
	}
	if len(t.Rules) == 0 {
		b.warn(t.line, "oidc.rule", "oidc: no [[oidc.rule]], so no token is admitted")
	}
	for i := range t.Rules {
		o.Rules = append(o.Rules, b.rule(&t.Rules[i]))
	}
	b.console(&t.Console)
}

// console builds who we are when people sign in to the console at the issuer.
func (b *builder) console(t *consoleTable) {
	if !t.present {
		return
	}
	o, listen := &b.config.OIDC, &b.config.Listen
	o.Console = ConsoleClient{ClientID: b.visible(&t.table, &t.ClientID), ClientSecret: b.secret(&t.table, &t.ClientSecret),
		Scopes: b.list(&t.table, &t.Scopes, checkScope)}
	if !t.ClientID.given {
		b.add(t.line, t.dotted("client_id"), "%s: client_id is missing; it is what the issuer calls us", t.subject)
	}
	if host, port, err := net.SplitHostPort(listen.Address); listen.PublicURL == "" && (err != nil || port == "0" || !loopback(host)) {
		b.add(t.line, "oidc.console", "%s: [listen] public_url is missing, and browsers have to find their way back from the issuer", t.subject)
	}
	if o.Audience != "" && o.Audience == o.Console.ClientID {
		b.warn(t.ClientID.line, t.dotted("client_id"), "%s: client_id is the audience of callers' tokens too, so what signs a browser in would pass for a caller's token; give the console a client of its own", t.subject)
	}
	if len(o.Rules) > 0 && !slices.ContainsFunc(o.Rules, func(r Rule) bool { return r.Grant.Admin }) {
		b.warn(t.line, "oidc.console", "%s: no [[oidc.rule]] has admin = true, so the issuer signs nobody in", t.subject)
	}
}

func (b *builder) rule(t *ruleTable) Rule {
	r := Rule{Claim: t.Claim.value, Value: t.Value.value, Grant: b.rights(&t.table, &t.rights), Line: t.line}
	r.Grant.AuthenticatedBy = "oidc"
	for _, need := range []struct {
		key string
		f   *text
	}{{"claim", &t.Claim}, {"value", &t.Value}} {
		switch {
		case !need.f.given:
			b.add(t.line, t.dotted(need.key), "%s: %s is missing", t.subject, need.key)
		case need.f.ok() && (need.f.value == "" || need.key == "claim" && !claimPath.MatchString(need.f.value)):
			b.wrong(&t.table, &need.f.field, "is empty or not usable; a rule must say who it is for")
		}
	}
	return r
}
