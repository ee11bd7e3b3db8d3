package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatehouse/federation/config"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// server compares one [[server]]. A new server opens nothing by itself: its
// tools have to be imported and enabled first, and where that was done before
// it shows as access.
func (p *Plan) server(id gate.ServerID, from, to *config.Config) {
	d := differ{p, fmt.Sprintf("server %q", id)}
	before, after := from.Server(id), to.Server(id)
	switch {
	case before == nil:
		d.note("", presence(false), presence(true), Neutral)
		return
	case after == nil:
		d.note("", presence(true), presence(false), Narrows)
		return
	}
	d.note("name", before.Name, after.Name, Neutral)
	// Arguments and credentials go elsewhere, which somebody should have wanted.
	d.note("url", urlText(before.URL, ""), urlText(after.URL, before.URL), Widens)
	d.note("enabled", strconv.FormatBool(before.Enabled), strconv.FormatBool(after.Enabled), flag(after.Enabled))
	d.note("data_class", before.Class.String(), after.Class.String(), classEffect(before.Class, after.Class))
	d.note("requires_approval", strconv.FormatBool(!before.ApprovalWaived), strconv.FormatBool(!after.ApprovalWaived), flag(after.ApprovalWaived))
	d.note("approval_memory", before.ApprovalMemory.String(), after.ApprovalMemory.String(), rising(before.ApprovalMemory, after.ApprovalMemory))
	if before.Timeout != from.Operation.Timeout || after.Timeout != to.Operation.Timeout {
		d.note("timeout", before.Timeout.String(), after.Timeout.String(), Neutral)
	}
	d.note("protocol", before.Protocol, after.Protocol, Neutral)
	d.note("session", before.Session, after.Session, Neutral)
	d.note("session_idle", before.SessionIdle.String(), after.SessionIdle.String(), Neutral)
	d.note("max_sessions", strconv.Itoa(before.MaxSessions), strconv.Itoa(after.MaxSessions), Neutral)
	d.note("max_response", strconv.FormatInt(before.MaxResponse, 10), strconv.FormatInt(after.MaxResponse, 10), Neutral)
	d.note("result_limit", limitText(int(before.ResultLimit)), limitText(int(after.ResultLimit)), Neutral)
	d.note("max_calls_per_minute", limitText(before.CallsPerMinute), limitText(after.CallsPerMinute), limit(before.CallsPerMinute, after.CallsPerMinute))
	d.note("alias", aliasText(before.Alias), aliasText(after.Alias), Neutral)
	d.note("ca_file", before.CAFile, after.CAFile, Widens)
	d.note("client_cert", before.ClientCert, after.ClientCert, Widens)
	d.note("client_key", before.ClientKey, after.ClientKey, Widens)
	d.auth(&before.Auth, &after.Auth)
}

// auth compares as whom we come and with what.
func (d differ) auth(before, after *credential.Auth) {
	mode := func(a *credential.Auth) string { return cmp.Or(string(a.Mode), string(credential.None)) }
	d.note("auth.mode", mode(before), mode(after), Widens)
	for _, field := range []struct{ key, before, after string }{
		{"credential", before.Credential.String(), after.Credential.String()},
		{"header", before.Header, after.Header},
		{"token_endpoint", printURL(before.TokenEndpoint), printURL(after.TokenEndpoint)},
		{"issuer", printURL(before.Issuer), printURL(after.Issuer)},
		{"client_id", before.ClientID, after.ClientID},
		{"client_secret", before.ClientSecret.String(), after.ClientSecret.String()},
		{"resource", printURL(before.Resource), printURL(after.Resource)},
		{"profile", before.Profile, after.Profile},
		{"audience", before.Audience, after.Audience},
		{"scopes", listText(before.Scopes), listText(after.Scopes)},
		{"discovery_credential", before.DiscoveryCredential.String(), after.DiscoveryCredential.String()},
	} {
		d.note("auth."+field.key, field.before, field.after, Widens)
	}
}

// classEffect: data of a lower class may travel further. No class at all
// supplies nothing.
func classEffect(before, after gate.Class) Effect {
	if after == gate.Unclassified || before != gate.Unclassified && after > before {
		return Narrows
	}
	return Widens
}

// urlText shows a url without its query, which may say more than a screen
// should. Where only that differs from other, it says so.
func urlText(raw, other string) string {
	text := printURL(raw)
	if other != "" && raw != other && text == printURL(other) {
		text += " (another query)"
	}
	return text
}

func aliasText(alias map[gate.RemoteName]string) string {
	var out []string
	for _, remote := range slices.Sorted(maps.Keys(alias)) {
		out = append(out, fmt.Sprintf("%q=%s", remote, alias[remote]))
	}
	return strings.Join(out, " ")
}
