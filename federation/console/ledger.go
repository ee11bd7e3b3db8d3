package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/gate/ledger"
	"gatehouse/upstream/wire"
)

// pageEntries is how many entries one page lists.
const pageEntries = 100

type ledgerPage struct {
	Filter   filter
	Found    found
	Newest   bool // it begins with the last entry there is
	Callers  []string
	Servers  []string
	Verdicts []gate.Verdict
	Kinds    []gate.Kind
}

var (
	verdicts = []gate.Verdict{gate.OK, gate.ToolError, gate.Refused, gate.Declined, gate.NotSent, gate.UpstreamError, gate.OutcomeUnknown, gate.Cancelled}
	kinds    = []gate.Kind{gate.KindIntent, gate.KindOutcome, gate.KindDenied, gate.KindQuestion, gate.KindAnswer, gate.KindImport, gate.KindEnable,
		gate.KindDisable, gate.KindAcceptChange, gate.KindReload, gate.KindLogin, gate.KindAuthFailure, gate.KindSecret, gate.KindStart,
		gate.KindStop, gate.KindCheckpoint, gate.KindTest, gate.KindVerify, gate.KindExport}
)

func showLedger(v *visit) error {
	q := v.r.URL.Query()
	f, err := filterOf(q)
	if err != nil {
		return err
	}
	before, _ := strconv.ParseUint(q.Get("before"), 10, 64) // 0 is the end
	p := ledgerPage{Filter: f, Newest: before == 0, Verdicts: verdicts, Kinds: kinds}
	if p.Found, err = latest(v.api.LedgerDir(), f, before, pageEntries); err != nil {
		return err
	}
	for _, c := range v.api.Callers(v.r.Context()) {
		if !c.Rule { // on record is who came, not by what
			p.Callers = append(p.Callers, c.Name)
		}
	}
	servers, err := v.api.Servers(v.r.Context())
	if err != nil {
		return err
	}
	for _, s := range servers {
		p.Servers = append(p.Servers, s.ID)
	}
	v.render(http.StatusOK, "ledger", "Ledger", p)
	return nil
}

type storyPage struct {
	Number   uint64
	Call     gate.Entry // what the call is known by: the first entry that names it
	Verdict  gate.Verdict
	Chapters []chapter
	Bar      *bar
	Raw      string // the entry itself
}

// A chapter is one entry of a call.
type chapter struct {
	gate.Entry
	After time.Duration // since the first
	Text  string
}

func showStory(v *visit) error {
	number, err := strconv.ParseUint(v.r.PathValue("number"), 10, 64)
	if err != nil {
		return errNoPage
	}
	lines, err := ledger.Story(v.api.LedgerDir(), number)
	if err != nil {
		return err
	}
	p := storyPage{Number: number}
	for i, line := range lines {
		if i == 0 {
			p.Call = line.Entry
		}
		if line.Number == number {
			p.Raw = pretty(json.RawMessage(line.Raw))
		}
		if len(line.Legs) > 0 {
			p.Bar = newBar(line.Legs)
		}
		if line.Verdict != "" {
			p.Verdict = line.Verdict
		}
		p.Chapters = append(p.Chapters, chapter{line.Entry, line.Time.Sub(lines[0].Time), control.Visible(told(&line.Entry))})
	}
	v.render(http.StatusOK, "story", fmt.Sprintf("Record %d", number), p)
	return nil
}

// told says in words what one entry says.
func told(e *gate.Entry) string {
	var b strings.Builder
	switch e.Kind {
	case gate.KindQuestion:
		fmt.Fprintf(&b, "%s asked to call %s; the result would travel to zone %s; open until %s", e.Caller, place(e), e.Zone, e.Until.Local().Format("15:04:05"))
	case gate.KindAnswer:
		b.WriteString(strings.ReplaceAll(e.Reason, "_", " "))
		if e.AnsweredBy != "" {
			fmt.Fprintf(&b, " by %s", e.AnsweredBy)
		}
	case gate.KindIntent:
		fmt.Fprintf(&b, "%s calls %s", e.Caller, place(e))
	case gate.KindOutcome:
		b.WriteString(strings.ReplaceAll(string(e.Verdict), "_", " "))
		if e.Reason != "" {
			fmt.Fprintf(&b, " (%s)", e.Reason)
		}
		if e.Status != 0 {
			fmt.Fprintf(&b, ", HTTP status %d", e.Status)
		}
		if e.BytesIn != 0 || e.BytesOut != 0 {
			fmt.Fprintf(&b, ", %d bytes out, %d in", e.BytesOut, e.BytesIn)
		}
	default:
		b.WriteString(summary(e))
		return b.String()
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	return b.String()
}

// place is a tool and where it is.
func place(e *gate.Entry) string {
	if e.Origin == "" {
		return string(e.Tool)
	}
	return fmt.Sprintf("%s (%q at %s)", e.Tool, wire.Clip(string(e.RemoteName)), e.Origin)
}

// summary is one line about any entry: who, what, and why.
func summary(e *gate.Entry) string {
	var words []string
	add := func(s string) {
		if s != "" {
			words = append(words, wire.Clip(s))
		}
	}
	if e.Reason != string(e.Verdict) {
		add(strings.ReplaceAll(e.Reason, "_", " "))
	}
	if e.AnsweredBy != "" && e.Caller != "" { // otherwise it says who did this already
		add("by " + string(e.AnsweredBy))
	}
	if e.Count > 1 {
		add(fmt.Sprintf("%d times", e.Count))
	}
	text := strings.Join(words, ", ")
	if e.Detail != "" {
		if text != "" {
			text += ": "
		}
		// An import's own summary begins with the server, which stands before this.
		text += control.Visible(strings.TrimPrefix(e.Detail, string(e.Server)+": "))
	}
	return text
}

// verifyLedger walks the chain and puts on record who had it walked.
func verifyLedger(v *visit) error {
	report, err := ledger.Verify(v.api.LedgerDir())
	if err != nil {
		return err
	}
	entry := &gate.Entry{Kind: gate.KindVerify, Verdict: gate.OK, Detail: fmt.Sprintf("entries %d to %d", report.First, report.Last)}
	if report.Bad != nil {
		entry.Verdict, entry.Reason, entry.Detail = gate.Refused, "chain_broken", report.Bad.Error()
	}
	if err := v.api.Record(v.r.Context(), entry); err != nil {
		return err
	}
	v.render(http.StatusOK, "verify", "Verified", report)
	return nil
}

// exportLedger sends a copy of the record, or of the part that a filter wants.
func exportLedger(v *visit) error {
	f, err := filterOf(v.r.PostForm)
	if err != nil {
		return err
	}
	detail := "all entries"
	if f.Set() {
		detail = "entries with " + wire.Clip(f.values().Encode())
	}
	if err := v.api.Record(v.r.Context(), &gate.Entry{Kind: gate.KindExport, Verdict: gate.OK, Detail: detail}); err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/x-ndjson")
	v.w.Header().Set("Content-Disposition", `attachment; filename="gatehouse-ledger-`+v.now().Format("20060102-150405")+`.jsonl"`)
	err = export(v.api.LedgerDir(), f, func(b []byte) error {
		_, err := v.w.Write(b)
		return err
	})
	if err != nil {
		// The browser must not take half of it for the whole.
		if !errors.Is(err, v.r.Context().Err()) {
			v.g.Logger.Warn("an export of the ledger was cut short", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return nil
}
