package config

import (
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"gatehouse/gate"
)

var (
	serverID  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	aliasName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

const (
	reservedID         = "gatehouse"
	longestName        = 64 // of a local name, mcp_<id>_<remote>
	defaultMaxResponse = 2 << 20
	leastMaxResponse   = 1 << 10
	mostMaxResponse    = 16 << 20
	defaultMaxSessions = 64
)

func (b *builder) servers(tables []serverTable) {
	ids := map[string]*serverTable{}
	for i := range tables {
		t := &tables[i]
		b.serverID(t, ids)
		s := Server{
			ID:             gate.ServerID(t.ID.value),
			Name:           b.serverName(t),
			Enabled:        !t.Enabled.given || t.Enabled.ok() && t.Enabled.value,
			Class:          b.class(t),
			ApprovalWaived: t.RequiresApproval.ok() && !t.RequiresApproval.value,
			ApprovalMemory: b.span(&t.table, &t.ApprovalMemory, 0, time.Second, maxApproval),
			Timeout:        b.span(&t.table, &t.Timeout, b.config.Operation.Timeout, minTimeout, maxTimeout),
			Protocol:       b.oneOf(&t.table, &t.Protocol, "auto", "2025-11-25", "2026-07-28"),
			Session:        b.oneOf(&t.table, &t.Session, "operation", "caller"),
			SessionIdle:    b.span(&t.table, &t.SessionIdle, defaultIdle, time.Second, maxIdle),
			MaxSessions:    orDefault(&t.MaxSessions, defaultMaxSessions),
			MaxResponse:    b.size(&t.table, &t.MaxResponse, defaultMaxResponse),
			ResultLimit:    b.size(&t.table, &t.ResultLimit, 0),
			CallsPerMinute: orDefault(&t.PerMinute, 0),
			Alias:          b.alias(t),
			Line:           t.line,
		}
		u := b.serverURL(t)
		if u != nil {
			s.URL = t.URL.value
		}
		b.serverTLS(t, &s, u)
		b.serverSession(t, &s)
		s.Auth = b.auth(t, &s, u)
		b.config.Servers = append(b.config.Servers, s)
	}
}

func (b *builder) serverID(t *serverTable, ids map[string]*serverTable) {
	f := &t.ID
	switch {
	case !f.given:
		b.add(t.line, "server.id", "%s: id is missing", t.subject)
		return
	case !f.ok():
		return
	}
	folded := strings.ToLower(f.value)
	if other := ids[folded]; other != nil {
		b.wrong(&t.table, &f.field, "%q is taken by the server %q of line %d; every server needs an id of its own, whatever its letters' case",
			clip(f.value), clip(other.ID.value), other.line)
		return
	}
	ids[folded] = t
	switch {
	case f.value == reservedID:
		b.wrong(&t.table, &f.field, "%q is reserved for our own tools; choose another", f.value)
	case strings.Contains(f.value, "_"):
		b.wrong(&t.table, &f.field, `%q has an underscore, which would let mcp_<id>_<tool> be read in two ways; write "-"`, clip(f.value))
	case !serverID.MatchString(f.value):
		b.wrong(&t.table, &f.field, `%q is not usable (want 1 to 32 of a-z, 0-9 and "-", not starting with "-")`, clip(f.value))
	}
}

// serverName is shown to people and in front of every tool's description, so
// it must not be able to close a quotation or to hide.
func (b *builder) serverName(t *serverTable) string {
	if !t.Name.ok() {
		return t.ID.value
	}
	name := t.Name.value
	unfit := func(r rune) bool { return r == '"' || !unicode.IsPrint(r) }
	if strings.TrimSpace(name) == "" || len(name) > 128 || strings.ContainsFunc(name, unfit) {
		b.wrong(&t.table, &t.Name.field, "is not usable (want 1 to 128 printable bytes without double quotes)")
	}
	return name
}

func (b *builder) class(t *serverTable) (c gate.Class) {
	switch f := &t.DataClass; {
	case !f.given:
		b.warn(t.line, "server.data_class", "%s: no data class is declared, so it supplies nothing; set data_class under its [[server]] (%s)",
			t.subject, strings.Join(gate.ClassNames(), ", "))
	case f.ok() && c.UnmarshalText([]byte(f.value)) != nil:
		f.bad = true
		hint := ""
		if near := nearest(f.value, gate.ClassNames()); near != "" {
			hint = "; did you mean \"" + near + "\"?"
		}
		b.add(f.line, "server.data_class", "%s: unknown data class %q (want %s)%s", t.subject, clip(f.value), strings.Join(gate.ClassNames(), ", "), hint)
	}
	return c
}

// serverURL returns the url when there is a usable one. A url that is absent
// leaves a record that supplies nothing; a wrong one is an error.
func (b *builder) serverURL(t *serverTable) *url.URL {
	f := &t.URL
	if !f.given || f.ok() && f.value == "" {
		b.warn(t.line, "server.url", "%s: no url, so it supplies nothing; set url under its [[server]]", t.subject)
		return nil
	}
	if !f.ok() {
		return nil
	}
	u, wrong := checkURL(f.value)
	switch {
	case wrong != "":
		b.wrong(&t.table, &f.field, "%s", wrong)
		return nil
	case secretQuery.MatchString(u.RawQuery):
		b.wrong(&t.table, &f.field, "has a query that looks like a credential; a literal secret is refused, use [server.auth] with a reference")
		return nil
	}
	return u
}

func (b *builder) size(t *table, f *size, def int64) int64 {
	switch {
	case !f.ok():
		return def
	case f.value < leastMaxResponse || f.value > mostMaxResponse:
		b.wrong(t, &f.field, "is %d bytes (want 1KiB to 16MiB)", f.value)
	}
	return f.value
}

func (b *builder) serverTLS(t *serverTable, s *Server, u *url.URL) {
	s.CAFile, s.ClientCert, s.ClientKey = b.file(&t.table, &t.CAFile), b.file(&t.table, &t.ClientCert), b.file(&t.table, &t.ClientKey)
	if t.ClientCert.given != t.ClientKey.given {
		b.add(t.line, "server.client_cert", "%s: client_cert and client_key go together; one of them is missing", t.subject)
	}
	if u == nil || u.Scheme == "https" {
		return
	}
	for _, f := range []*text{&t.CAFile, &t.ClientCert, &t.ClientKey} {
		if f.ok() {
			b.wrong(&t.table, &f.field, "means nothing for a url that is http; write https")
		}
	}
}

func (b *builder) serverSession(t *serverTable, s *Server) {
	if s.Session == "caller" && s.Protocol == "2026-07-28" {
		b.wrong(&t.table, &t.Session.field, `"caller" needs sessions, which protocol "2026-07-28" does not have`)
	}
	if t.MaxSessions.ok() && t.MaxSessions.value == 0 {
		b.wrong(&t.table, &t.MaxSessions.field, "is 0, which would leave no session to call in")
	}
	if s.Session == "caller" {
		return
	}
	for _, f := range []*field{&t.SessionIdle.field, &t.MaxSessions.field} {
		if f.ok() {
			b.warn(f.line, t.dotted(f.key), `%s: %s is used with session = "caller" only`, t.subject, f.key)
		}
	}
}

// alias maps remote names to the remote part of their local name.
func (b *builder) alias(t *serverTable) map[gate.RemoteName]string {
	if len(t.Alias) == 0 {
		return nil
	}
	out, owner := map[gate.RemoteName]string{}, map[string]string{}
	for _, remote := range sortedKeys(t.Alias) {
		f := t.Alias[remote]
		if !f.ok() {
			continue
		}
		local := "mcp_" + t.ID.value + "_" + f.value
		report := func(format string, args ...any) {
			args = append([]any{t.subject, clip(f.value), clip(remote)}, args...)
			b.add(f.line, "server.alias", "%s: alias %q of %q "+format, args...)
		}
		switch {
		case !aliasName.MatchString(f.value):
			report("is not usable (want letters, digits, _ and -)")
		case len(local) > longestName:
			report("makes the name %s, %d characters long; %d fit", local, len(local), longestName)
		case owner[f.value] != "":
			report("is the alias of %q already; both would be left out", owner[f.value])
		}
		owner[f.value] = remote
		out[gate.RemoteName(remote)] = f.value
	}
	return out
}
