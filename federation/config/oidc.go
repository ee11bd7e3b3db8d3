package config

import (
	"regexp"
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
