package config

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/upstream/credential"
)

// builder turns a decoded file into a Config and reports what does not make
// sense. A field that is bad already is passed over, so that one mistake gives
// one problem.
type builder struct {
	*decoder
	dir    string
	config *Config
}

func (b *builder) build(f *file) {
	b.listen(&f.Listen)
	b.state(&f.State)
	b.config.Operation.Timeout = b.span(&f.Operation.table, &f.Operation.Timeout, defaultTimeout, minTimeout, maxTimeout)
	b.network(&f.Network)
	b.config.Gate.Observe = b.oneOf(&f.Gate.table, &f.Gate.Enforcement, "enforce", "observe") == "observe"
	b.approval(&f.Approval)
	b.audit(&f.Audit)
	b.metrics(&f.Metrics)
	b.vault(&f.Vault)
	b.delegations(f)
	b.servers(f.Servers)
	b.callers(f.Callers)
	b.oidc(&f.OIDC)
	b.grantees(f)
	b.nameBudgets()
	b.vaultNeeded()
	if len(f.Callers) == 0 && !f.OIDC.present && len(b.problems.Errors()) == 0 {
		b.warn(0, "caller", "no [[caller]] and no [oidc]: nobody can call; gatehouse token makes a token")
	}
}

// The bounds of durations. An operation that may take an hour is a mistake, and
// zero must not come to mean "no limit".
const (
	defaultTimeout  = 20 * time.Second
	minTimeout      = 100 * time.Millisecond
	maxTimeout      = 10 * time.Minute
	defaultApproval = 5 * time.Minute
	maxApproval     = 24 * time.Hour
	defaultIdle     = 10 * time.Minute
	maxIdle         = 24 * time.Hour
	minRetention    = 24 * time.Hour
	maxRetention    = 36500 * 24 * time.Hour
)

// span returns the duration of f within its bounds, or def when none was given.
func (b *builder) span(t *table, f *span, def, least, most time.Duration) time.Duration {
	switch {
	case !f.ok():
		return def
	case f.value < least || f.value > most:
		b.wrong(t, &f.field, "is %s (want %s to %s)", brief(f.value), brief(least), brief(most))
	}
	return f.value
}

// brief prints a duration as an operator would write it.
func brief(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(days)) + "d"
	}
	s := d.String()
	if trimmed, ok := strings.CutSuffix(s, "m0s"); ok {
		s = trimmed + "m"
	}
	if trimmed, ok := strings.CutSuffix(s, "h0m"); ok {
		s = trimmed + "h"
	}
	return s
}

// oneOf returns f's value, or the first of allowed when f is absent or wrong.
func (b *builder) oneOf(t *table, f *text, allowed ...string) string {
	if !f.ok() {
		return allowed[0]
	}
	if !slices.Contains(allowed, f.value) {
		b.wrong(t, &f.field, "%q is unknown (want %s)", clip(f.value), strings.Join(allowed, ", "))
		return allowed[0]
	}
	return f.value
}

// file resolves a path against the directory of the configuration.
func (b *builder) file(t *table, f *text) string {
	switch {
	case !f.ok():
		return ""
	case f.value == "" || strings.ContainsRune(f.value, 0):
		b.wrong(t, &f.field, "is not a path")
		return ""
	case filepath.IsAbs(f.value):
		return filepath.Clean(f.value)
	}
	return filepath.Join(b.dir, f.value)
}

// secret notes where a reference is used and returns it.
func (b *builder) secret(t *table, f *reference) credential.Reference {
	if !f.ok() {
		return credential.Reference{}
	}
	b.use(t, &f.field, f.value)
	return f.value
}

func (b *builder) use(t *table, f *field, ref credential.Reference) {
	b.config.uses = append(b.config.uses, use{
		where: t.subject + ": " + f.key, key: t.dotted(f.key), line: f.line, ref: ref,
		text: t.subject == "vault" || t.subject == "audit",
	})
}

// defaultState is the state file, beside the configuration.
const defaultState = "gatehouse.db"

const defaultAddress = "127.0.0.1:8620"

func (b *builder) listen(t *listenTable) {
	l := &b.config.Listen
	l.line, l.Address, l.BehindProxy = t.line, defaultAddress, t.BehindProxy.ok() && t.BehindProxy.value
	l.CertFile, l.KeyFile = b.file(&t.TLS.table, &t.TLS.Cert), b.file(&t.TLS.table, &t.TLS.Key)
	if t.TLS.present && (!t.TLS.Cert.given || !t.TLS.Key.given) {
		b.add(t.TLS.line, "listen.tls", "listen: tls needs both cert and key")
	}
	if t.Address.ok() {
		l.Address = t.Address.value
		b.address(t)
	}
	if t.PublicURL.ok() && t.PublicURL.value != "" {
		l.PublicURL = strings.TrimSuffix(t.PublicURL.value, "/")
		if u, wrong := checkURL(t.PublicURL.value); wrong != "" {
			b.wrong(&t.table, &t.PublicURL.field, "%s", wrong)
		} else if u.RawQuery != "" {
			b.wrong(&t.table, &t.PublicURL.field, "must not have a query")
		} else if u.Scheme == "http" && !loopback(u.Hostname()) {
			b.warn(t.PublicURL.line, "listen.public_url", "listen: public_url is http: tokens travel readable to everyone between; use https")
		}
	}
}

func (b *builder) address(t *listenTable) {
	host, ok := b.hostPort(&t.table, &t.Address, defaultAddress)
	if ok && !loopback(host) && !t.TLS.present && !(t.BehindProxy.given && t.BehindProxy.value) {
		b.wrong(&t.table, &t.Address.field, `%q can be reached from other machines, and tokens would travel readable; `+
			`set tls = { cert = "…", key = "…" }, or behind_proxy = true when a proxy ends TLS in front`, clip(t.Address.value))
	}
}

// hostPort checks an address to listen on and returns its host.
func (b *builder) hostPort(t *table, f *text, example string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(f.value)
	if err != nil {
		b.wrong(t, &f.field, "%q is not host:port (want for example %q)", clip(f.value), example)
		return "", false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		b.wrong(t, &f.field, "has port %q (want 1 to 65535, or 0 for any free one)", clip(port))
		return "", false
	}
	if ip, err := netip.ParseAddr(host); host != "" && host != "localhost" && (err != nil || ip.Zone() != "") {
		b.wrong(t, &f.field, "has host %q (want an IP address or localhost)", clip(host))
		return "", false
	}
	return host, true
}

// metrics takes any address: what is read there has no secret, no caller and no
// argument in it, and scrapers are rarely on the same machine.
func (b *builder) metrics(t *metricsTable) {
	if !t.Address.ok() || t.Address.value == "" {
		return
	}
	b.config.Metrics.Address = t.Address.value
	if _, ok := b.hostPort(&t.table, &t.Address, "127.0.0.1:9620"); ok && t.Address.value == b.config.Listen.Address {
		b.wrong(&t.table, &t.Address.field, "%q is the address of [listen]; leave it out to have metrics there, for administrators", clip(t.Address.value))
	}
}

// loopback reports whether host is this machine by its very spelling.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func (b *builder) state(t *stateTable) {
	b.config.State.Path = filepath.Join(b.dir, defaultState)
	if p := b.file(&t.table, &t.Path); p != "" {
		b.config.State.Path = p
		if strings.HasSuffix(t.Path.value, "/") || filepath.Base(p) == ".." || filepath.Base(p) == "." {
			b.wrong(&t.table, &t.Path.field, "must name a file, not a directory")
		}
	}
}

func (b *builder) network(t *networkTable) {
	n := &b.config.Network
	for _, h := range b.list(&t.table, &t.PrivateHosts, func(h string) string { return checkHost(h, false) }) {
		n.PrivateHosts = append(n.PrivateHosts, plainHost(h))
	}
	for _, h := range b.list(&t.table, &t.AllowedHosts, func(h string) string { return checkHost(h, true) }) {
		n.AllowedHosts = append(n.AllowedHosts, plainHost(h))
	}
	if t.AllowedHosts.ok() && len(t.AllowedHosts.value) == 0 {
		b.wrong(&t.table, &t.AllowedHosts.field, "is empty, which would allow no host at all; leave it out to allow every public host")
	}
	if t.Proxy.ok() && t.Proxy.value != "" {
		n.Proxy = t.Proxy.value
		if u, wrong := checkURL(n.Proxy); wrong != "" {
			b.wrong(&t.table, &t.Proxy.field, "%s", wrong)
		} else if u.RawQuery != "" || u.Path != "" && u.Path != "/" {
			b.wrong(&t.table, &t.Proxy.field, "must be scheme://host:port and nothing more")
		}
	}
}

// list returns the entries of f, each of which check has nothing against. An
// entry that occurs twice is a slip of the pen worth hearing of.
func (b *builder) list(t *table, f *words, check func(string) string) []string {
	if !f.ok() {
		return nil
	}
	seen := map[string]bool{}
	for i, w := range f.value {
		line := b.lines.of(t.at.key(f.key).index(i))
		switch wrong := check(w); {
		case wrong != "":
			f.bad = true
			b.add(line, t.dotted(f.key), "%s: %s holds %q: %s", t.subject, f.key, clip(w), wrong)
		case seen[w]:
			f.bad = true
			b.add(line, t.dotted(f.key), "%s: %s holds %q twice", t.subject, f.key, clip(w))
		}
		seen[w] = true
	}
	if f.bad {
		return nil
	}
	return f.value
}

func (b *builder) approval(t *approvalTable) {
	b.config.Approval = Approval{
		Channel:      b.oneOf(&t.table, &t.Channel, ChannelClient, ChannelConsole, ChannelClientThenConsole),
		Timeout:      b.span(&t.table, &t.Timeout, defaultApproval, time.Second, maxApproval),
		SecondPerson: t.SecondPerson.ok() && t.SecondPerson.value,
	}
}

func (b *builder) audit(t *auditTable) {
	b.config.Audit = Audit{
		Arguments: b.oneOf(&t.table, &t.Arguments, ArgumentsDigest, ArgumentsRedacted, ArgumentsFull),
		Retention: b.span(&t.table, &t.Retention, 0, minRetention, maxRetention),
		// The record must not need the vault, whose changes it records.
		SigningKey: b.secret(&t.table, &t.SigningKey),
	}
	if t.SigningKey.ok() && t.SigningKey.value.Scheme() == credential.Vault {
		b.wrong(&t.table, &t.SigningKey.field, `cannot be in the vault: the record is opened before it (want "env:NAME" or "file:/path")`)
	}
}

func (b *builder) vault(t *vaultTable) {
	b.config.Vault.Identity = b.secret(&t.table, &t.Identity)
	if t.Identity.ok() && t.Identity.value.Scheme() == credential.Vault {
		b.wrong(&t.table, &t.Identity.field, `cannot be in the vault that it opens (want "env:NAME" or "file:/path")`)
	}
}

// vaultNeeded reports what can never resolve because there is no vault.
func (b *builder) vaultNeeded() {
	if !b.config.Vault.Identity.IsZero() {
		return
	}
	for _, u := range b.config.uses {
		if u.key == "vault.identity" || u.key == "audit.signing_key" {
			continue // refused already, if they name the vault
		}
		if u.ref.Scheme() == credential.Vault {
			b.add(u.line, u.key, `%s: "%s" needs a vault; set [vault] identity`, u.where, u.ref)
		}
	}
	for _, s := range b.config.Servers {
		if s.Auth.Mode == credential.OAuth {
			b.add(s.Line, "server.auth.mode", `server %q: auth mode "oauth" keeps its logins in the vault; set [vault] identity`, s.ID)
		}
	}
}

// emptyDigest is the digest of no bytes: a caller with it would have no token.
var emptyDigest = fmt.Sprintf("%x", sha256.Sum256(nil))
