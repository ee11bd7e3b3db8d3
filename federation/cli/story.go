package cli

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"gatehouse/gate"
	"gatehouse/gate/ledger"
)

// showEntry tells the story of the call that an entry belongs to.
func (a *app) showEntry(number uint64) error {
	cfg, err := a.load(false)
	if err != nil {
		return err
	}
	story, err := ledger.Story(cfg.LedgerDir(), number)
	if err != nil {
		return err
	}
	var entry []byte
	for _, line := range story {
		if line.Number == number {
			entry = line.Raw
		}
	}
	if a.json {
		a.printf("%s\n", withStory(entry, story))
		return nil
	}
	if len(story) > 1 {
		a.printStory(story)
	}
	a.lines(escape(pretty(entry)), "", "    ")
	return nil
}

// withStory adds the whole story to an entry, as a member that no entry has.
func withStory(entry []byte, story []ledger.Line) []byte {
	out := append(bytes.TrimSuffix(bytes.Clone(entry), []byte("}")), `,"story":[`...)
	for i, line := range story {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, line.Raw...)
	}
	return append(out, "]}"...)
}

func (a *app) printStory(story []ledger.Line) {
	began := story[0].Time
	for _, line := range story {
		words := chapter(&line.Entry)
		when := line.Time.Local().Format("2006-01-02 15:04:05")
		if after := line.Time.Sub(began); after > 0 {
			when = fmt.Sprintf("%19s", "+"+after.Round(time.Millisecond).String())
		}
		a.printf("%6d  %s  %-8s %s\n", line.Number, when, line.Kind, a.paint(verdictColour(line.Verdict), wrap(escape(words), 38)))
		for _, leg := range line.Legs {
			a.printf("%s%s\n", strings.Repeat(" ", 38), escape(legText(leg)))
		}
	}
	a.printf("\n")
}

// chapter says in words what one entry of a call says.
func chapter(e *gate.Entry) string {
	var b strings.Builder
	switch e.Kind {
	case gate.KindQuestion:
		fmt.Fprintf(&b, "%s asked to call %s, zone %s; open until %s", e.Caller, place(e), e.Zone, e.Until.Local().Format("15:04:05"))
	case gate.KindAnswer:
		fmt.Fprintf(&b, "%s", strings.ReplaceAll(e.Reason, "_", " "))
		if e.AnsweredBy != "" {
			fmt.Fprintf(&b, " by %s", e.AnsweredBy)
		}
	case gate.KindIntent:
		fmt.Fprintf(&b, "%s calls %s", e.Caller, place(e))
		if !e.ArgumentDigest.IsZero() {
			fmt.Fprintf(&b, ", arguments %s…", e.ArgumentDigest.String()[:12])
		}
	case gate.KindOutcome:
		b.WriteString(string(e.Verdict))
		if e.Reason != "" {
			fmt.Fprintf(&b, " (%s)", e.Reason)
		}
		if e.Status != 0 {
			fmt.Fprintf(&b, ", status %d", e.Status)
		}
		if e.BytesIn != 0 || e.BytesOut != 0 {
			fmt.Fprintf(&b, ", %d bytes out, %d in", e.BytesOut, e.BytesIn)
		}
	default:
		fmt.Fprintf(&b, "%s %s %s", e.Caller, e.Verdict, e.Reason)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	return b.String()
}

// place is the tool and where it is.
func place(e *gate.Entry) string {
	if e.Origin == "" {
		return string(e.Tool)
	}
	return fmt.Sprintf("%s, %q at %s", e.Tool, e.RemoteName, e.Origin)
}

func legText(leg gate.Leg) string {
	text := leg.Name + "  " + leg.Took.Round(10*time.Microsecond).String()
	if leg.Status != 0 {
		text += fmt.Sprintf("  status %d", leg.Status)
	}
	return text
}
