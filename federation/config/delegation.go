package config

import (
	"regexp"
	"slices"
	"strings"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// callerToken is the subject that stands for the caller's own verified token.
const callerToken = "caller_token"

func (b *builder) delegations(f *file) {
	b.config.Delegation = map[string]credential.Profile{}
	for _, name := range sortedKeys(f.Delegation) {
		t := f.Delegation[name]
		if !t.present {
			continue
		}
		if !profileName.MatchString(name) {
			b.add(t.line, "delegation", `delegation %q: the name is not usable (want 1 to 64 of a-z, 0-9, "_" and "-")`, clip(name))
		}
		for _, need := range []struct {
			key string
			f   field
		}{{"token_endpoint", t.TokenEndpoint.field}, {"client_id", t.ClientID.field}, {"allowed_audiences", t.AllowedAudiences.field}} {
			if !need.f.given {
				b.add(t.line, t.dotted(need.key), "%s: %s is missing", t.subject, need.key)
			}
		}
		p := credential.Profile{
			Name:             name,
			TokenEndpoint:    b.endpoint(&t.table, &t.TokenEndpoint),
			ClientID:         b.visible(&t.table, &t.ClientID),
			ClientSecret:     b.secret(&t.table, &t.ClientSecret),
			AllowedAudiences: b.list(&t.table, &t.AllowedAudiences, checkAudience),
			AllowedScopes:    b.list(&t.table, &t.AllowedScopes, checkScope),
			Grants:           map[string]credential.Grant{},
		}
		for _, caller := range sortedKeys(t.Grants) {
			g := t.Grants[caller]
			if g.present {
				p.Grants[caller] = b.grant(&t, &g, p)
			}
		}
		b.config.Delegation[name] = p
	}
}

func checkAudience(s string) string {
	if s == "" || len(s) > 512 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "want 1 to 512 visible ASCII characters"
	}
	return ""
}

// grant reads one grant. It must lie within its profile: a grant that promises
// more than can be given is a misunderstanding that should surface here.
func (b *builder) grant(pt *delegationTable, t *grantTable, p credential.Profile) credential.Grant {
	g := credential.Grant{
		Enabled:          t.Enabled.ok() && t.Enabled.value,
		AllowedAudiences: b.list(&t.table, &t.AllowedAudiences, checkAudience),
		AllowedScopes:    b.list(&t.table, &t.AllowedScopes, checkScope),
	}
	switch f := &t.Subject; {
	case !f.given && g.Enabled:
		b.add(t.line, t.dotted("subject"), `%s: subject is missing (want a reference, or "caller_token")`, t.subject)
	case f.ok() && f.value == callerToken:
		g.CallerToken = true
	case f.ok():
		ref, err := credential.ParseReference(f.value)
		if err != nil {
			b.wrong(&t.table, &f.field, `is neither "caller_token" nor a reference: %s`, err)
			break
		}
		g.Subject = ref
		b.use(&t.table, &f.field, ref)
	}
	within := func(f *words, outer *words, what string) {
		for _, w := range f.value {
			if f.ok() && outer.ok() && !slices.Contains(outer.value, w) {
				b.wrong(&t.table, &f.field, "holds %q, which the profile %q does not allow; add it to the profile's %s or leave it out", clip(w), p.Name, what)
			}
		}
	}
	within(&t.AllowedAudiences, &pt.AllowedAudiences, "allowed_audiences")
	within(&t.AllowedScopes, &pt.AllowedScopes, "allowed_scopes")
	if g.Enabled && !t.AllowedAudiences.given {
		b.add(t.line, t.dotted("allowed_audiences"), "%s: allowed_audiences is missing; an enabled grant says for which", t.subject)
	}
	return g
}

// grantees wants every grant to be for somebody who can come in.
func (b *builder) grantees(f *file) {
	var names []string
	for _, c := range b.config.Callers {
		names = append(names, string(c.Name))
	}
	for _, profile := range sortedKeys(f.Delegation) {
		for _, caller := range sortedKeys(f.Delegation[profile].Grants) {
			t := f.Delegation[profile].Grants[caller]
			if !t.present {
				continue
			}
			_, _, isOIDC := strings.Cut(caller, "|")
			known := b.config.Caller(gate.CallerName(caller)) != nil
			switch {
			case caller == "":
				b.add(t.line, "delegation", "%s: an empty name is nobody", t.subject)
			case !isOIDC && !known:
				b.add(t.line, "delegation", `%s: no [[caller]] has that name%s (OIDC callers are named "<issuer>|<subject>")`, t.subject, didYouMean(caller, names))
			case !isOIDC && t.Subject.ok() && t.Subject.value == callerToken:
				b.add(t.Subject.line, "delegation", `%s: subject "caller_token" needs a caller who comes with an OIDC token; this one's token is ours and means nothing elsewhere`, t.subject)
			}
		}
	}
}
