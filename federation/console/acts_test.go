package console

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"gatehouse/federation"
	"gatehouse/federation/catalog"
	"gatehouse/federation/control"
	"gatehouse/gate"
)

func fileDigest(t *testing.T, path string) gate.Digest {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return gate.DigestOf(b)
}

// list has the catalogue take over tools as if the demo server had listed them.
func (r *rig) list(tools ...string) {
	r.t.Helper()
	_, err := r.g.Catalog.Import(r.t.Context(), "demo", func(context.Context) (catalog.Listing, error) {
		var l catalog.Listing
		for _, tool := range tools {
			l.Tools = append(l.Tools, json.RawMessage(tool))
		}
		return l, nil
	}, false)
	if err != nil {
		r.t.Fatal(err)
	}
}

// by checks that the last entry of a kind is an act of olga at the console.
func (r *rig) by(kind gate.Kind) gate.Entry {
	r.t.Helper()
	all := r.entries(kind)
	if len(all) == 0 {
		r.t.Fatalf("no %s is on record", kind)
	}
	e := all[len(all)-1]
	if e.Caller != "olga" && e.AnsweredBy != "olga" || e.Via != federation.Console {
		r.t.Errorf("%s is on record as %q by %q via %q", kind, e.Caller, e.AnsweredBy, e.Via)
	}
	return e
}

func TestServersAreTestedAndImported(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	if body := v.follow("/console/servers/demo/test", nil); !strings.Contains(body, "It answers:") {
		t.Errorf("the test's report is missing:\n%s", body)
	}
	r.by(gate.KindTest)
	imports := len(r.entries(gate.KindImport))
	if body := v.follow("/console/servers/demo/import", url.Values{"preview": {"yes"}}); !strings.Contains(body, "Nothing was written") {
		t.Errorf("the preview's report is missing:\n%s", body)
	}
	if n := len(r.entries(gate.KindImport)); n != imports {
		t.Error("a preview is on record as an import")
	}
	if e := r.by(gate.KindTest); e.Reason != "import_preview" {
		t.Errorf("the preview is on record as %+v", e)
	}
	if body := v.follow("/console/servers/demo/import", nil); !strings.Contains(body, "unchanged") {
		t.Errorf("the import's report is missing:\n%s", body)
	}
	r.by(gate.KindImport)
	if body := v.follow("/console/servers/bare/import", nil); !strings.Contains(body, "Refused, and nothing changed") {
		t.Errorf("a refusal is not shown:\n%s", body)
	}
	if body := v.follow("/console/servers/import", nil); !strings.Contains(body, "1 refused") {
		t.Errorf("the import of all is not told:\n%s", body)
	}
	if status, _, _ := v.post("/console/servers/nothing/test", nil); status != http.StatusNotFound {
		t.Errorf("an unknown server: status %d", status)
	}
}

const (
	first  = `{"name":"pay","description":"Pays.","inputSchema":{"type":"object"}}`
	second = `{"name":"pay","description":"Pays somebody else.","inputSchema":{"type":"object"}}`
	other  = `{"name":"look","description":"Looks.","inputSchema":{"type":"object"}}`
)

func TestNobodyAgreesToWhatTheyDidNotSee(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	r.list(first)
	state := func() string { return r.g.Catalog.Snapshot().Tool("mcp_demo_pay").Availability.String() }
	pick := func() string {
		return "mcp_demo_pay " + r.g.Catalog.Snapshot().Tool("mcp_demo_pay").Definition.String()
	}
	generation := func() string { return strconv.FormatUint(r.g.Catalog.Snapshot().Generation(), 10) }

	seen, then := pick(), generation()
	r.list(second, other)
	v.follow("/console/tools", url.Values{"action": {"enable"}, "tool": {seen}, "back": {"/console/tools"}})
	if state() != "disabled" {
		t.Errorf("a definition nobody saw is %s", state())
	}
	if body := v.follow("/console/tools", url.Values{"action": {"enable:mcp_demo"}, "generation": {then}, "back": {"/console/tools"}}); state() != "disabled" || !strings.Contains(body, "look again") {
		t.Errorf("a group nobody saw so is %s", state())
	}
	v.follow("/console/tools", url.Values{"action": {"enable"}, "tool": {pick()}, "back": {"/console/tools"}})
	if state() != "enabled" {
		t.Fatalf("the tool is %s", state())
	}
	r.by(gate.KindEnable)

	r.list(first, other) // it changes
	if state() != "changed" {
		t.Fatalf("the tool is %s", state())
	}
	v.follow("/console/tools", url.Values{"action": {"enable"}, "tool": {pick()}, "back": {"/console/tools"}})
	v.follow("/console/tools", url.Values{"action": {"enable:mcp_demo"}, "generation": {generation()}, "back": {"/console/tools"}})
	if state() != "changed" {
		t.Errorf("a change is %s without anybody having looked at it", state())
	}
	if _, body, _ := v.get("/console/tools/mcp_demo_pay"); !strings.Contains(body, "<del>Pays somebody else.</del>") {
		t.Errorf("the page does not show the difference:\n%s", body)
	}
	v.follow("/console/tools", url.Values{"action": {"accept"}, "tool": {pick()}, "back": {"/console/tools/mcp_demo_pay"}})
	if state() != "enabled" {
		t.Errorf("the accepted change is %s", state())
	}
	r.by(gate.KindAcceptChange)
	v.follow("/console/tools", url.Values{"action": {"disable:mcp_demo"}, "generation": {generation()}, "back": {"/console/tools"}})
	if state() != "disabled" {
		t.Errorf("after disabling the group it is %s", state())
	}
	r.by(gate.KindDisable)
	if status, _, _ := v.post("/console/tools", url.Values{"action": {"erase"}, "tool": {pick()}}); status != http.StatusBadRequest {
		t.Errorf("an action that there is not: status %d", status)
	}
}

func TestQuestions(t *testing.T) {
	r := newRig(t)
	ask := func() *gate.Question {
		t.Helper()
		ruling := r.g.Gate.Submit(t.Context(), r.g.Catalog.Snapshot(), r.g.Caller("alice"),
			gate.Call{Tool: "mcp_demo_notes_add", Arguments: []byte(`{"title":"<b>milk</b>"}`)})
		if ruling.Question == nil {
			t.Fatalf("no question but %+v", ruling)
		}
		return ruling.Question
	}
	q := ask()
	path := "/console/questions/" + strconv.FormatUint(q.Number, 10)
	v := r.signedIn(olga)
	_, body, _ := v.get("/console/questions")
	from := strings.Index(body, `<pre class="code asked"`)
	to := strings.Index(body, "</pre>")
	if from < 0 || to < from {
		t.Fatalf("no question is shown:\n%s", body)
	}
	if got := plain(body[from:to]); got != q.Message {
		t.Errorf("the page shows %q, the question is %q", got, q.Message)
	}

	asker := r.signedIn(alice)
	if _, body, _ := asker.get("/console/questions"); !strings.Contains(body, "You asked this") {
		t.Error("whoever asked is not told that they cannot decide")
	}
	asker.follow(path, url.Values{"decision": {"approve"}})
	for _, decision := range []string{"", "yes", "Approve"} {
		if status, _, _ := v.post(path, url.Values{"decision": {decision}}); status != http.StatusBadRequest {
			t.Errorf("decision %q: status %d", decision, status)
		}
	}
	if n := len(r.entries(gate.KindAnswer)); n != 0 {
		t.Fatalf("%d answers by nobody who may answer", n)
	}
	v.follow(path, url.Values{"decision": {"approve"}})
	answers := r.entries(gate.KindAnswer)
	if len(answers) != 1 || answers[0].AnsweredBy != "olga" || answers[0].Reason != "approved" {
		t.Errorf("on record are %+v", answers)
	}
	if body := v.follow(path, url.Values{"decision": {"deny"}}); !strings.Contains(body, "not found") {
		t.Error("a question is decided twice")
	}
	q = ask()
	v.follow("/console/questions/"+strconv.FormatUint(q.Number, 10), url.Values{"decision": {"deny"}})
	if answers := r.entries(gate.KindAnswer); len(answers) != 2 || answers[1].Verdict != gate.Declined {
		t.Errorf("on record are %+v", answers)
	}
}

// plain is the text of a piece of a page.
func plain(markup string) string {
	var b strings.Builder
	for piece := range strings.SplitSeq(markup, "<") {
		_, text, _ := strings.Cut(piece, ">")
		b.WriteString(text)
	}
	return html.UnescapeString(b.String())
}

func TestWhatIf(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	last, err := lastEntry(r.g.Config().LedgerDir())
	if err != nil {
		t.Fatal(err)
	}
	for want, form := range map[string]url.Values{
		"It would be let through":                {"caller": {"alice"}, "tool": {"mcp_demo_notes_add"}, "arguments": {`{"title":"milk"}`}},
		"It would be refused: invalid arguments": {"caller": {"alice"}, "tool": {"mcp_demo_notes_add"}, "arguments": {`{"title":1}`}},
		"It would be refused: requires admin":    {"caller": {"guest"}, "tool": {"mcp_demo_notes_add"}},
		"It would be refused: not registered":    {"caller": {"alice"}, "tool": {"<b>nothing</b>"}},
		"caller &#34;nobody&#34;: not found":     {"caller": {"nobody"}, "tool": {"mcp_demo_notes_add"}},
	} {
		if _, body, _ := v.post("/console/whatif", form); !strings.Contains(body, want) || strings.Contains(body, "<b>nothing") {
			t.Errorf("%v does not give %q", form, want)
		}
	}
	if now, _ := lastEntry(r.g.Config().LedgerDir()); now != last {
		t.Error("judging a call left something on record")
	}
}

func TestTheRecordIsVerifiedAndExported(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	if _, body, _ := v.post("/console/ledger/verify", nil); !strings.Contains(body, "The chain is whole") {
		t.Errorf("verifying says:\n%s", body)
	}
	r.by(gate.KindVerify)
	_, body, header := v.post("/console/ledger/export", nil)
	if !strings.HasPrefix(header.Get("Content-Disposition"), "attachment;") {
		t.Errorf("the export is %v", header)
	}
	r.by(gate.KindExport)
	whole, err := os.ReadDir(r.g.Config().LedgerDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range whole {
		if strings.HasSuffix(file.Name(), ".jsonl") {
			if kept, err := os.ReadFile(r.g.Config().LedgerDir() + "/" + file.Name()); err != nil || strings.TrimRight(string(kept), " ") != body {
				t.Errorf("the export is not what is kept (%v)", err)
			}
		}
	}
	_, body, _ = v.post("/console/ledger/export", url.Values{"kind": {"login"}})
	if lines := strings.Count(body, "\n"); lines != 1 || !strings.Contains(body, `"kind":"login"`) {
		t.Errorf("an export of logins has %d lines", lines)
	}
	if e := r.by(gate.KindExport); !strings.Contains(e.Detail, "kind=login") {
		t.Errorf("what was exported is on record as %q", e.Detail)
	}
}

func TestHostileCatalogueIsText(t *testing.T) {
	r := newRig(t)
	v := r.signedIn(olga)
	r.list(`{"name":"lookup","title":"<img src=x onerror=alert(1)>","description":"</pre><script>alert(1)</script>{{.Who}} \u001b[2J \u202eesrever",
		"inputSchema":{"type":"object","properties":{"</pre><script>alert(2)</script>":{"type":"string"}}},"annotations":{"title":"\"><style>*{}</style>"}}`,
		`{"name":"<script>alert(3)</script>","inputSchema":{"type":"object"}}`, `{"name":"na\u200bme","inputSchema":{"type":"object"}}`)
	r.g.Gate.Submit(t.Context(), r.g.Catalog.Snapshot(), r.g.Caller("alice"), gate.Call{Tool: "<script>alert(4)</script>\u202e"})
	seen := 0
	for _, path := range append(paths, "/console/tools/mcp_demo_lookup", "/console/ledger?tool=%3Cscript%3Ealert(5)%3C/script%3E") {
		if strings.Contains(path, "notes_add") {
			continue // it is no longer listed
		}
		_, body, _ := v.get(path)
		for _, bad := range []string{"<script>alert", "<img", "<style>", "\x1b", "\u202e", "\u200b"} {
			if strings.Contains(body, bad) {
				t.Errorf("GET %s shows %q", path, bad)
			}
		}
		seen += strings.Count(body, "&lt;script&gt;alert")
	}
	if seen < 5 {
		t.Errorf("hostile text is shown %d times only; the test looks at the wrong pages", seen)
	}
}

// Whoever comes with a token of the issuer is looked at by the rule that admits them.
func TestRulesAreCallersToo(t *testing.T) {
	r, _ := newOIDCRig(t)
	v := r.signedIn(olga)
	_, body, _ := v.get("/console/callers")
	for _, want := range []string{`href="/console/callers/oidc%20groups=admins"`, `href="/console/callers/oidc%20groups=staff"`, `href="/console/callers/olga"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the callers lack %s:\n%s", want, body)
		}
	}
	if status, body, _ := v.get("/console/callers/oidc%20groups=staff"); status != http.StatusOK || !strings.Contains(body, "requires admin") {
		t.Errorf("why they see nothing: status %d\n%s", status, body)
	}
	if _, body, _ := v.post("/console/whatif", url.Values{"caller": {"oidc groups=staff"}, "tool": {"mcp_demo_notes_add"}}); !strings.Contains(body, "It would be refused: requires admin") {
		t.Errorf("what if they called:\n%s", body)
	}
	if _, body, _ := v.get("/console/ledger"); strings.Contains(body, "oidc groups=") {
		t.Error("the record's filter offers a rule, which calls nobody")
	}
	if _, err := control.NewLocal(r.g, true).Call(t.Context(), control.CallRequest{Caller: "oidc groups=admins", Tool: "mcp_demo_notes_add"}, nil, nil); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("a call in the name of a rule: %v", err)
	}
}
