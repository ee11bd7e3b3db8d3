package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// A differ notes the settings of one subject that differ.
type differ struct {
	plan    *Plan
	subject string
}

// note adds a setting when its two texts differ.
func (d differ) note(key, before, after string, e Effect) {
	if before != after {
		d.plan.Settings = append(d.plan.Settings, Setting{Subject: d.subject, Key: key, Before: before, After: after, Effect: e})
	}
}

// restart adds a setting that a reload leaves as it is, and which therefore
// opens nothing yet.
func (d differ) restart(key, before, after string) {
	if before != after {
		d.plan.Settings = append(d.plan.Settings, Setting{Subject: d.subject, Key: key, Before: before, After: after, Effect: Neutral, Restart: true})
	}
}

// rising is the effect of a value of which more opens more.
func rising[T cmp.Ordered](before, after T) Effect {
	if after > before {
		return Widens
	}
	return Narrows
}

// flag is rising for a switch whose true opens.
func flag(after bool) Effect {
	if after {
		return Widens
	}
	return Narrows
}

// limit is rising for a limit where 0 stands for none.
func limit(before, after int) Effect {
	if after == 0 || before != 0 && after > before {
		return Widens
	}
	return Narrows
}

func limitText(n int) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.Itoa(n)
}

// superset is the effect of a list that opens what it names.
func superset(before, after []string) Effect {
	for _, s := range after {
		if !slices.Contains(before, s) {
			return Widens
		}
	}
	return Narrows
}

func listText(l []string) string {
	if len(l) == 0 {
		return "none"
	}
	l = slices.Sorted(slices.Values(l))
	return strings.Join(l, " ")
}

// settings compares key by key. Servers and callers come in order of name, the
// rest in the order of the example file.
func (p *Plan) settings(from, to *config.Config) {
	p.general(from, to)
	p.oidc(&from.OIDC, &to.OIDC)
	before, after := subjects(from), subjects(to)
	for name := range both(before, after) {
		p.caller(name, before[name], after[name])
		p.token(name, from.Caller(gate.CallerName(name)), to.Caller(gate.CallerName(name)))
	}
	for name := range both(from.Delegation, to.Delegation) {
		p.delegation(name, from.Delegation, to.Delegation)
	}
	servers := map[gate.ServerID]bool{}
	for _, c := range []*config.Config{from, to} {
		for i := range c.Servers {
			servers[c.Servers[i].ID] = true
		}
	}
	for _, id := range slices.Sorted(maps.Keys(servers)) {
		p.server(id, from, to)
	}
}

// both iterates over the keys of two maps in order.
func both[V any](a, b map[string]V) func(yield func(string) bool) {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Values(slices.Sorted(maps.Keys(all)))
}

func (p *Plan) general(from, to *config.Config) {
	listen := differ{p, "listen"}
	listen.restart("address", from.Listen.Address, to.Listen.Address)
	listen.note("public_url", from.Listen.PublicURL, to.Listen.PublicURL, Widens)
	listen.restart("tls.cert", from.Listen.CertFile, to.Listen.CertFile)
	listen.restart("tls.key", from.Listen.KeyFile, to.Listen.KeyFile)
	listen.note("behind_proxy", strconv.FormatBool(from.Listen.BehindProxy), strconv.FormatBool(to.Listen.BehindProxy), Neutral)
	differ{p, "state"}.restart("path", from.State.Path, to.State.Path)
	differ{p, "operation"}.note("timeout", from.Operation.Timeout.String(), to.Operation.Timeout.String(), Neutral)

	network := differ{p, "network"}
	network.note("private_hosts", listText(from.Network.PrivateHosts), listText(to.Network.PrivateHosts),
		superset(from.Network.PrivateHosts, to.Network.PrivateHosts))
	network.note("allowed_hosts", allowedText(from.Network.AllowedHosts), allowedText(to.Network.AllowedHosts),
		allowedEffect(from.Network.AllowedHosts, to.Network.AllowedHosts))
	network.note("proxy", from.Network.Proxy, to.Network.Proxy, Widens)

	enforcement := map[bool]string{false: "enforce", true: "observe"}
	differ{p, "gate"}.note("data_class_enforcement", enforcement[from.Gate.Observe], enforcement[to.Gate.Observe], flag(to.Gate.Observe))

	approval := differ{p, "approval"}
	channel := Widens
	if to.Approval.Channel == config.ChannelConsole {
		channel = Narrows // whoever calls no longer answers at their own client
	}
	approval.note("channel", from.Approval.Channel, to.Approval.Channel, channel)
	approval.note("timeout", from.Approval.Timeout.String(), to.Approval.Timeout.String(), Neutral)
	approval.note("second_person", strconv.FormatBool(from.Approval.SecondPerson), strconv.FormatBool(to.Approval.SecondPerson),
		flag(!to.Approval.SecondPerson))

	audit := differ{p, "audit"}
	// Keeping more puts data where it was not, keeping less takes evidence away.
	audit.note("arguments", from.Audit.Arguments, to.Audit.Arguments, Widens)
	audit.restart("retention", retentionText(from.Audit.Retention), retentionText(to.Audit.Retention))
	audit.restart("signing_key", from.Audit.SigningKey.String(), to.Audit.SigningKey.String())
	differ{p, "metrics"}.restart("address", from.Metrics.Address, to.Metrics.Address)
	differ{p, "vault"}.restart("identity", from.Vault.Identity.String(), to.Vault.Identity.String())
}

func retentionText(d time.Duration) string {
	if d == 0 {
		return "for ever"
	}
	return d.String()
}

func allowedText(hosts []string) string {
	if hosts == nil {
		return "every public host"
	}
	return listText(hosts)
}

func allowedEffect(before, after []string) Effect {
	switch {
	case after == nil:
		return Widens
	case before == nil:
		return Narrows
	}
	return superset(before, after)
}

func (p *Plan) oidc(from, to *config.OIDC) {
	d := differ{p, "oidc"}
	d.note("issuer", from.Issuer, to.Issuer, flag(to.Enabled()))
	if !from.Enabled() || !to.Enabled() {
		return
	}
	d.note("audience", from.Audience, to.Audience, Widens)
	scope := Widens
	if from.RequiredScope == "" {
		scope = Narrows
	}
	d.note("required_scope", from.RequiredScope, to.RequiredScope, scope)
	d.note("jwks_url", printURL(from.JWKSURL), printURL(to.JWKSURL), Widens)
	client := Widens // another client is other people who may come
	if !to.Console.Enabled() {
		client = Narrows
	}
	d.note("console.client_id", from.Console.ClientID, to.Console.ClientID, client)
	d.note("console.client_secret", from.Console.ClientSecret.String(), to.Console.ClientSecret.String(), Neutral)
	d.note("console.scopes", strings.Join(from.Console.Scopes, " "), strings.Join(to.Console.Scopes, " "), Neutral)
	// The first rule that fits counts, so their order is a right as well.
	d.note("rule order", ruleOrder(from.Rules, to.Rules), ruleOrder(to.Rules, from.Rules), Widens)
}

// ruleOrder names the rules that other has too, in order.
func ruleOrder(rules, other []config.Rule) string {
	var names []string
	for i := range rules {
		if slices.ContainsFunc(other, func(r config.Rule) bool { return r.Name() == rules[i].Name() }) {
			names = append(names, rules[i].Name())
		}
	}
	return strings.Join(names, ", ")
}

func (p *Plan) caller(name string, before, after *gate.Caller) {
	d := differ{p, fmt.Sprintf("caller %q", name)}
	if before == nil || after == nil {
		d.note("", presence(before != nil), presence(after != nil), flag(after != nil))
		return
	}
	d.note("admin", strconv.FormatBool(before.Admin), strconv.FormatBool(after.Admin), flag(after.Admin))
	d.note("trust_zone", before.Zone.String(), after.Zone.String(), rising(before.Zone, after.Zone))
	d.note("groups", groupsText(before.Groups), groupsText(after.Groups), groupsEffect(before.Groups, after.Groups))
	dialects, surfaces := [...]string{"full", "portable"}, [...]string{"full", "find"}
	d.note("schema_dialect", dialects[before.Dialect], dialects[after.Dialect], Neutral)
	d.note("name_budget", limitText(before.NameBudget), limitText(after.NameBudget), Neutral)
	d.note("name_prefix", strconv.Itoa(before.NamePrefix), strconv.Itoa(after.NamePrefix), Neutral)
	d.note("surface", surfaces[before.Surface], surfaces[after.Surface], Neutral)
	d.note("max_calls_per_minute", limitText(before.CallsPerMinute), limitText(after.CallsPerMinute), limit(before.CallsPerMinute, after.CallsPerMinute))
	d.note("max_concurrent_calls", limitText(before.ConcurrentCalls), limitText(after.ConcurrentCalls), limit(before.ConcurrentCalls, after.ConcurrentCalls))
}

func presence(there bool) string {
	if there {
		return "declared"
	}
	return "not declared"
}

func groupsText(g gate.Groups) string {
	if g.Every() {
		return "every group"
	}
	return listText(g.Names())
}

func groupsEffect(before, after gate.Groups) Effect {
	switch {
	case after.Every():
		return Widens
	case before.Every():
		return Narrows
	}
	return superset(before.Names(), after.Names())
}

// token compares how a caller is recognised. Whoever holds the new token comes
// in, so another token always opens.
func (p *Plan) token(name string, before, after *config.Caller) {
	if before != nil && after != nil {
		differ{p, fmt.Sprintf("caller %q", name)}.note("token", tokenText(before.Token), tokenText(after.Token), Widens)
	}
}

// tokenText is enough of a digest to tell two apart.
func tokenText(t config.Token) string {
	if !t.Reference.IsZero() {
		return t.Reference.String()
	}
	return "sha256:" + t.Digest.String()[:12] + "…"
}

func (p *Plan) delegation(name string, from, to map[string]credential.Profile) {
	d := differ{p, fmt.Sprintf("delegation %q", name)}
	before, was := from[name]
	after, is := to[name]
	if was != is {
		// A profile does nothing before a server names it, which is a change of its own.
		e := Narrows
		if is {
			e = Neutral
		}
		d.note("", presence(was), presence(is), e)
		return
	}
	d.note("token_endpoint", printURL(before.TokenEndpoint), printURL(after.TokenEndpoint), Widens)
	d.note("client_id", before.ClientID, after.ClientID, Widens)
	d.note("client_secret", before.ClientSecret.String(), after.ClientSecret.String(), Widens)
	d.note("allowed_audiences", listText(before.AllowedAudiences), listText(after.AllowedAudiences), superset(before.AllowedAudiences, after.AllowedAudiences))
	d.note("allowed_scopes", listText(before.AllowedScopes), listText(after.AllowedScopes), superset(before.AllowedScopes, after.AllowedScopes))
	for who := range both(before.Grants, after.Grants) {
		grant, granted := before.Grants[who], after.Grants[who]
		if !reflect.DeepEqual(grant, granted) {
			d.note("grant of "+who, grantText(grant), grantText(granted), flag(granted.Enabled))
		}
	}
}

func grantText(g credential.Grant) string {
	if !g.Enabled {
		return "none"
	}
	subject := g.Subject.String()
	if g.CallerToken {
		subject = "caller_token"
	}
	return fmt.Sprintf("%s for %s (%s)", subject, listText(g.AllowedAudiences), listText(g.AllowedScopes))
}

// printURL leaves out what may hold a secret: user, query and fragment.
func printURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
