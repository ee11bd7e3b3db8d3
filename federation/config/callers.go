package config

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

var callerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

const (
	defaultPerMinute   = 60
	defaultConcurrency = 16
)

// reservedNames are words that the record uses in the place of a caller or of how
// one came in, in lower case. A caller of such a name would sign for others.
var reservedNames = []string{"operator", "watch", "sighup", "signal", "console", "token", "oidc"}

func (b *builder) callers(tables []callerTable) {
	names, tokens := map[string]int{}, map[Token]*callerTable{}
	for i := range tables {
		t := &tables[i]
		c := Caller{Caller: b.rights(&t.table, &t.rights), Token: b.token(t), Line: t.line}
		c.Name, c.AuthenticatedBy = gate.CallerName(t.Name.value), "token"
		b.callerName(t, names)
		if c.Token != (Token{}) {
			if other := tokens[c.Token]; other != nil {
				b.add(t.Token.line, "caller.token", "%s: token is that of %s too (line %d); each caller needs a token of its own, gatehouse token makes one",
					t.subject, other.subject, other.line)
			}
			tokens[c.Token] = t
		}
		b.config.Callers = append(b.config.Callers, c)
	}
}

func (b *builder) callerName(t *callerTable, names map[string]int) {
	switch {
	case !t.Name.given:
		b.add(t.line, "caller.name", "%s: name is missing", t.subject)
		return
	case !t.Name.ok():
		return
	case !callerName.MatchString(t.Name.value):
		b.wrong(&t.table, &t.Name.field, `%q is not usable (want 1 to 64 letters, digits, ".", "_", "@" and "-", starting with a letter or digit)`, clip(t.Name.value))
		return
	}
	folded := strings.ToLower(t.Name.value)
	if slices.Contains(reservedNames, folded) {
		b.wrong(&t.table, &t.Name.field, "%q stands in the record for something that is no caller; choose another name", t.Name.value)
	}
	if line, taken := names[folded]; taken {
		b.wrong(&t.table, &t.Name.field, "%q is the name of the caller of line %d already", t.Name.value, line)
	}
	names[folded] = t.line
}

// token reads "sha256:<hex>" or a reference. Anything else may be the token
// itself and is not repeated.
func (b *builder) token(t *callerTable) Token {
	f := &t.Token
	switch {
	case !f.given:
		b.add(t.line, "caller.token", "%s: token is missing; gatehouse token makes one", t.subject)
		return Token{}
	case !f.ok():
		return Token{}
	}
	if sum, ok := strings.CutPrefix(f.value, "sha256:"); ok {
		raw, err := hex.DecodeString(sum)
		if err != nil || len(raw) != len(gate.Digest{}) {
			b.wrong(&t.table, &f.field, `is not "sha256:" and 64 hexadecimal digits; gatehouse token prints such a line`)
			return Token{}
		}
		if strings.EqualFold(sum, emptyDigest) {
			b.wrong(&t.table, &f.field, "is the digest of nothing at all; gatehouse token makes a token")
			return Token{}
		}
		return Token{Digest: gate.Digest(raw)}
	}
	ref, err := credential.ParseReference(f.value)
	if err != nil {
		b.wrong(&t.table, &f.field, `is neither "sha256:<hex>" nor a reference; a literal token is refused (gatehouse token prints the line to put here)`)
		return Token{}
	}
	b.use(&t.table, &f.field, ref)
	return Token{Reference: ref}
}

// rights builds what a caller may do. What is left out is the stricter choice,
// except for groups, where leaving the list out narrows nothing.
func (b *builder) rights(t *table, r *rights) gate.Caller {
	c := gate.Caller{
		Admin:           r.Admin.ok() && r.Admin.value,
		Zone:            b.zone(t, &r.TrustZone),
		Groups:          b.groups(t, &r.Groups),
		CallsPerMinute:  orDefault(&r.PerMinute, defaultPerMinute),
		ConcurrentCalls: orDefault(&r.Concurrency, defaultConcurrency),
		NameBudget:      orDefault(&r.NameBudget, 0),
		NamePrefix:      orDefault(&r.NamePrefix, 0),
	}
	if b.oneOf(t, &r.Dialect, "full", "portable") == "portable" {
		c.Dialect = gate.Portable
	}
	if b.oneOf(t, &r.Surface, "full", "find") == "find" {
		c.Surface = gate.Find
	}
	if c.NameBudget > 0 && c.NamePrefix+len("mcp_a_b") > c.NameBudget {
		b.wrong(t, &r.NameBudget.field, "of %d leaves no room for a name behind a prefix of %d", c.NameBudget, c.NamePrefix)
	}
	return c
}

func orDefault(n *number, def int) int {
	if n.ok() {
		return n.value
	}
	return def
}

// zone is the least trusted of those given, because a result travels to all.
func (b *builder) zone(t *table, f *wordOrWords) gate.Zone {
	if !f.ok() {
		return gate.ExternalGlobal
	}
	if len(f.value) == 0 {
		b.wrong(t, &f.field, "is an empty list (want %s)", strings.Join(gate.ZoneNames(), ", "))
		return gate.ExternalGlobal
	}
	least := gate.Local
	for _, word := range f.value {
		var z gate.Zone
		if err := z.UnmarshalText([]byte(word)); err != nil {
			f.bad = true
			b.add(f.line, t.dotted(f.key), "%s: unknown trust zone %q (want %s)", t.subject, clip(word), strings.Join(gate.ZoneNames(), ", "))
			return gate.ExternalGlobal
		}
		least = min(least, z)
	}
	return least
}

// ownGroup is the group of our own gatehouse_* tools.
const ownGroup = "gatehouse"

func (b *builder) groups(t *table, f *words) gate.Groups {
	switch {
	case !f.given:
		return gate.EveryGroup()
	case !f.ok():
		return gate.OnlyGroups()
	}
	known := []string{ownGroup}
	for _, s := range b.config.Servers {
		known = append(known, "mcp_"+string(s.ID))
	}
	names := b.list(t, f, func(g string) string {
		if id, ok := strings.CutPrefix(g, "mcp_"); g != ownGroup && (!ok || !serverID.MatchString(id)) {
			return `this is no group (want "mcp_<server id>")`
		}
		return ""
	})
	for _, g := range names {
		if !slices.Contains(known, g) {
			hint := "until there is a server of that id it opens nothing"
			if near := nearest(g, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			b.warn(f.line, t.dotted(f.key), "%s: groups holds %q, and no server is called so; %s", t.subject, g, hint)
		}
	}
	return gate.OnlyGroups(names...)
}
