package clientfile

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"gatehouse/federation/config"
	"gatehouse/gate/rawjson"
)

// Why an entry is not taken.
const (
	leftStdio    = "it is started as a process (stdio), and Gatehouse starts none; run it behind a bridge that speaks Streamable HTTP"
	leftSSE      = "it speaks HTTP+SSE, which the specification has replaced by Streamable HTTP"
	leftNoURL    = "it has neither a url nor a command"
	leftVariable = "its url is put together from variables; write the url out"
	leftUser     = "its url holds a user name or password; a credential belongs under [server.auth]"
	leftQuery    = "its url has a query that may be a credential; Gatehouse sends credentials in a header only"
	leftURL      = "its url is not one that can be reached over http or https"
)

// add takes one entry over, or says why not.
func (f *File) add(name string, raw []byte, ids map[string]bool) {
	leave := func(reason string) { f.Left = append(f.Left, Left{clean(name), reason}) }
	entry, err := rawjson.UniqueObject(raw)
	if err != nil {
		leave("it is not an object whose keys are all different")
		return
	}
	address := rawjson.GetText(entry, "url")
	if address == "" {
		address = rawjson.GetText(entry, "serverUrl")
	}
	if reason := transport(entry, address); reason != "" {
		leave(reason)
		return
	}
	u, reason := checkAddress(address)
	if reason != "" {
		leave(reason)
		return
	}
	s := Server{Name: name, URL: address, Enabled: !flag(entry, "disabled")}
	s.ID = newID(name, ids)
	if s.ID != name {
		s.note("the client calls it %q", clean(name))
	}
	s.address(u)
	s.authenticate(entry)
	if problem := s.problem(); problem != "" {
		delete(ids, s.ID)
		leave("our configuration would not take it: " + problem)
		return
	}
	f.Servers = append(f.Servers, s)
}

// problem says why our configuration would refuse the server's table.
func (s *Server) problem() string {
	var b strings.Builder
	b.WriteString("[vault]\nidentity = \"env:IDENTITY\"\n") // whether there is one is another question
	s.write(&b)
	if cfg, problems := config.Parse("", []byte(b.String())); cfg == nil {
		return clean(problems.Errors()[0].Text)
	}
	return ""
}

func (s *Server) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// transport says why an entry's transport is not ours, "" when it is.
func transport(entry []rawjson.Member, address string) string {
	kind := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(rawjson.GetText(entry, "type") + rawjson.GetText(entry, "transport")))
	_, command := rawjson.Get(entry, "command")
	switch {
	case kind == "sse":
		return leftSSE
	case kind == "stdio" || command && address == "":
		return leftStdio + bridged(entry)
	case address == "":
		return leftNoURL
	case kind == "http", kind == "streamablehttp":
		return ""
	case kind != "":
		return fmt.Sprintf("its type %q is none that we know", clean(rawjson.GetText(entry, "type")))
	}
	if u, err := url.Parse(address); err == nil && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/sse") {
		return leftSSE + "; if this server speaks that as well, add its other url"
	}
	return ""
}

// bridged names the host when what is started only speaks on to a server over
// HTTP, which can be taken over itself. Of its url no more is said: the rest may
// hold a credential.
func bridged(entry []rawjson.Member) string {
	raw, _ := rawjson.Get(entry, "args")
	args, err := rawjson.Array(raw)
	if err != nil {
		return ""
	}
	bridge, host := false, ""
	for _, arg := range args {
		word, _ := rawjson.String(arg) // no string is no url
		bridge = bridge || strings.HasPrefix(word, "mcp-remote")
		if u, err := url.Parse(word); err == nil && (u.Scheme == "http" || u.Scheme == "https") && host == "" {
			host = u.Host
		}
	}
	if !bridge || host == "" {
		return ""
	}
	return fmt.Sprintf("; it is a bridge to %s: add that server with its own url", clean(host))
}

// longValue is from how many characters on a query's value is taken for a
// secret whatever its name.
const longValue = 16

var secretName = regexp.MustCompile(`(?i)token|secret|passw|key|auth|sign|cred`)

func checkAddress(address string) (*url.URL, string) {
	if strings.Contains(address, "${") {
		return nil, leftVariable
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Contains(address, "#") || strings.ContainsFunc(address, unfit):
		return nil, leftURL
	case u.User != nil:
		return nil, leftUser
	}
	for name, values := range u.Query() {
		if secretName.MatchString(name) || slices.ContainsFunc(values, func(v string) bool { return len(v) >= longValue }) {
			return nil, leftQuery
		}
	}
	return u, ""
}

func unfit(r rune) bool { return r <= ' ' || r >= 0x7f }

// longSegment finds what in a path looks like a credential.
var longSegment = regexp.MustCompile(`/[A-Za-z0-9_-]{32,}(/|$)`)

// address notes what the configuration has to say about a url elsewhere.
func (s *Server) address(u *url.URL) {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || err == nil && (ip.IsLoopback() || ip.IsPrivate()) {
		s.note("[network] private_hosts must hold %q", host)
	}
	if longSegment.MatchString(u.Path) {
		s.note("the path of its url looks like a credential; keep this file to yourself")
	}
}

var foreignID = regexp.MustCompile(`[^a-z0-9]+`)

// newID makes a valid id of a client's name that no other server of the file has.
func newID(name string, taken map[string]bool) string {
	const longest = 32
	base := strings.Trim(foreignID.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if base == "" {
		base = "server"
	}
	cut := func(s string, n int) string { return strings.TrimRight(s[:min(len(s), n)], "-") }
	id := cut(base, longest)
	for n := 2; taken[id] || id == "gatehouse"; n++ {
		suffix := fmt.Sprintf("-%d", n)
		id = cut(base, longest-len(suffix)) + suffix
	}
	taken[id] = true
	return id
}

// A header is one of those that the client sends.
type header struct{ name, value string }

// authenticate takes over the one header that is a credential. A server of ours
// sends one, so what else there is can only be named.
func (s *Server) authenticate(entry []rawjson.Member) {
	var headers []header
	for _, key := range []string{"headers", "requestInit"} {
		members := rawjson.GetObject(entry, key)
		if key == "requestInit" {
			members = rawjson.GetObject(members, "headers")
		}
		for _, m := range members {
			if value, err := rawjson.String(m.Value); err == nil && value != "" {
				headers = append(headers, header{m.Key, value})
			}
		}
	}
	chosen := -1
	for i, h := range headers {
		if usable(h) && (chosen < 0 || rank(h) > rank(headers[chosen])) {
			chosen = i
		}
	}
	for i, h := range headers {
		if i != chosen {
			s.note("its header %q is left out: %s", clean(h.name), whyNot(h))
		}
	}
	if chosen >= 0 {
		s.credential(headers[chosen])
		return
	}
	if _, ok := rawjson.Get(entry, "oauth"); ok {
		s.note(`the client logs in there: set [server.auth] mode = "oauth", then gatehouse login %s`, s.ID)
	}
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")

// ours are headers that the protocol or the connection sets.
var ours = regexp.MustCompile(`(?i)^(mcp-.*|host|content-.*|accept.*|cookie|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|origin|last-event-id|traceparent|tracestate)$`)

func isAuthorization(h header) bool { return strings.EqualFold(h.name, "Authorization") }

// usable reports whether h can be our credential.
func usable(h header) bool {
	if isAuthorization(h) {
		_, ok := bearer(h.value)
		return ok
	}
	return headerName.MatchString(h.name) && !ours.MatchString(h.name)
}

func whyNot(h header) string {
	switch {
	case isAuthorization(h) && !usable(h):
		return "it is no bearer token"
	case !usable(h):
		return "the protocol or the connection sets it"
	}
	return "a server has one credential"
}

// rank prefers a bearer token, then a name that sounds like a credential.
func rank(h header) int {
	switch {
	case isAuthorization(h):
		return 2
	case secretName.MatchString(h.name):
		return 1
	}
	return 0
}

func bearer(value string) (token string, ok bool) {
	scheme, token, found := strings.Cut(strings.TrimSpace(value), " ")
	token = strings.TrimSpace(token)
	return token, found && token != "" && strings.EqualFold(scheme, "Bearer")
}

var (
	variable = regexp.MustCompile(`^\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}$`)
	input    = regexp.MustCompile(`^\$\{input:[^}]*\}$`)
)

// credential turns a header into a reference. A literal is kept for the vault.
func (s *Server) credential(h header) {
	value, where := h.value, fmt.Sprintf("header %q", h.name)
	if token, ok := bearer(value); ok && isAuthorization(h) {
		value, where = token, "the bearer token"
	} else {
		s.Auth.Header = h.name
	}
	if m := variable.FindStringSubmatch(value); m != nil {
		s.Auth.Reference = "env:" + m[1]
		if m[2] != "" {
			s.note("the default of ${%s} is left out", m[1])
		}
		return
	}
	s.Auth.Secret.Name = s.ID + "-token"
	s.Auth.Reference = "vault:" + s.Auth.Secret.Name
	switch {
	case input.MatchString(value):
		s.note("the client asks for %s", where)
	case strings.Contains(value, "${"):
		s.note("%s is put together from variables; write it out when you set the secret", where)
	default:
		s.Auth.Secret.value = value
	}
}

func unprintable(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
