package plan

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// screen is the width that String keeps to.
const screen = 80

// shown is how many names of tools String lists before it counts the rest.
const shown = 8

// Summary is the plan in one line, for records and logs.
func (p *Plan) Summary() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, count(n, what))
		}
	}
	gains, losses, stops, starts, settings := 0, 0, 0, 0, 0
	for _, a := range p.Access {
		if a.Gains {
			gains++
		} else {
			losses++
		}
	}
	for _, a := range p.Approvals {
		if a.Effect == Widens {
			stops++
		} else {
			starts++
		}
	}
	for _, s := range p.Settings {
		if !s.Restart {
			settings++
		}
	}
	add(gains, "access gained")
	add(losses, "access lost")
	add(stops, "approval loosened")
	add(starts, "approval tightened")
	add(len(p.Tools), "tool changed")
	add(settings, "setting changed")
	if len(parts) == 0 {
		parts = append(parts, "nothing changes")
	}
	text := p.Effect.String() + ": " + strings.Join(parts, ", ")
	if restart := p.Restart(); len(restart) > 0 {
		var keys []string
		for _, s := range restart {
			keys = append(keys, s.Subject+"."+s.Key)
		}
		text += "; needs a restart: " + strings.Join(keys, ", ")
	}
	return text
}

// count puts a number before a noun whose participle follows it.
func count(n int, what string) string {
	if noun, rest, ok := strings.Cut(what, " "); ok && n != 1 && noun != "access" {
		return fmt.Sprintf("%d %ss %s", n, noun, rest)
	}
	return fmt.Sprintf("%d %s", n, what)
}

// String is the plan for a terminal of 80 columns. "+" opens, "-" closes, "~"
// is neither.
func (p *Plan) String() string {
	w := &writer{}
	fmt.Fprintf(w, "%s %.8s -> %s %.8s\n", base(p.From.Path), p.From.Digest, base(p.To.Path), p.To.Digest)
	verdict := map[Effect]string{Widens: "this opens something", Narrows: "this only closes", Neutral: "this opens and closes nothing"}[p.Effect]
	if p.Empty() {
		verdict = "nothing changes"
	}
	w.WriteString(verdict + "\n")
	w.access(p.Access)
	w.approvals(p.Approvals)
	w.tools(p.Tools)
	w.settings(p.Settings)
	w.replay(p.Replay)
	return w.String()
}

func base(path string) string {
	if path == "" {
		return "-"
	}
	return printable(filepath.Base(path))
}

type writer struct{ strings.Builder }

func (w *writer) head(text string) { w.WriteString("\n" + text + "\n") }

// line writes s behind an indent, broken between words so that it fits.
func (w *writer) line(indent int, s string) {
	margin := strings.Repeat(" ", indent)
	column := 0
	for word := range strings.FieldsSeq(printable(s)) {
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			w.WriteString(margin)
			column = indent
		case column+1+width > screen:
			w.WriteString("\n" + margin + "  ")
			column = indent + 2
		default:
			w.WriteByte(' ')
			column++
		}
		w.WriteString(word)
		column += width
	}
	w.WriteByte('\n')
}

// names writes some names and how many there are beyond them.
func (w *writer) names(indent int, names []string) {
	text := strings.Join(names[:min(len(names), shown)], ", ")
	if n := len(names) - shown; n > 0 {
		text += fmt.Sprintf(" and %d more (--json has all)", n)
	}
	w.line(indent, text)
}

func tools(n int) string {
	if n == 1 {
		return "1 tool"
	}
	return fmt.Sprintf("%d tools", n)
}

// runs iterates over the items of list that belong together, in the order of
// the first of each; they need not stand together.
func runs[T any, K comparable](list []T, key func(T) K) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		var order []K
		groups := map[K][]T{}
		for _, item := range list {
			k := key(item)
			if groups[k] == nil {
				order = append(order, k)
			}
			groups[k] = append(groups[k], item)
		}
		for _, k := range order {
			if !yield(groups[k]) {
				return
			}
		}
	}
}

func mapped[T any](list []T, f func(T) string) []string {
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = f(item)
	}
	return out
}

func (w *writer) access(list []Access) {
	if len(list) == 0 {
		return
	}
	w.head("access")
	type group struct {
		caller, reason, detail string
		gains                  bool
	}
	for run := range runs(list, func(a Access) group { return group{a.Caller, string(a.Reason), a.Detail, a.Gains} }) {
		a := run[0]
		if a.Gains {
			w.line(2, fmt.Sprintf("+ %s gains %s", a.Caller, tools(len(run))))
			w.line(6, fmt.Sprintf("until now %s: %s", a.Reason, a.Detail))
		} else {
			w.line(2, fmt.Sprintf("- %s loses %s", a.Caller, tools(len(run))))
			w.line(6, fmt.Sprintf("from now on %s: %s", a.Reason, a.Detail))
		}
		w.names(6, mapped(run, func(a Access) string { return a.Tool }))
	}
}

// mark is the sign of an effect.
func (e Effect) mark() string { return [...]string{"+", "-", "~"}[e] }

func (w *writer) approvals(list []Approval) {
	if len(list) == 0 {
		return
	}
	w.head("approval by a person")
	type group struct{ server, before, after string }
	for run := range runs(list, func(a Approval) group { return group{a.Server, a.Before, a.After} }) {
		a := run[0]
		w.line(2, fmt.Sprintf("%s %s, %s: %s -> %s", a.Effect.mark(), a.Server, tools(len(run)), a.Before, a.After))
		w.names(6, mapped(run, func(a Approval) string { return a.Tool }))
	}
}

func (w *writer) tools(list []Tool) {
	if len(list) == 0 {
		return
	}
	w.head("tools")
	type group struct {
		server, before, after, detail string
	}
	for run := range runs(list, func(t Tool) group { return group{t.Server, t.Before, t.After, t.Detail} }) {
		t := run[0]
		if t.Renamed {
			w.line(2, fmt.Sprintf("~ %s -> %s", t.Before, t.After))
			continue
		}
		text := fmt.Sprintf("~ %s, %s: %s -> %s", t.Server, tools(len(run)), t.Before, t.After)
		if t.Detail != "" {
			text += ": " + t.Detail
		}
		w.line(2, text)
		w.names(6, mapped(run, func(t Tool) string { return t.Tool }))
	}
}

func (w *writer) settings(list []Setting) {
	for _, part := range []struct {
		head    string
		restart bool
	}{{"settings", false}, {"needs a restart; a reload leaves it as it is", true}} {
		first := true
		for _, s := range list {
			if s.Restart != part.restart {
				continue
			}
			if first {
				w.head(part.head)
				first = false
			}
			w.line(2, s.text())
		}
	}
}

func (s Setting) text() string {
	subject := s.Subject
	if s.Key != "" {
		subject += " " + s.Key
	}
	return fmt.Sprintf("%s %s: %s -> %s", s.Effect.mark(), subject, quoteEmpty(s.Before), quoteEmpty(s.After))
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

func (w *writer) replay(r *Replay) {
	if r == nil {
		return
	}
	w.head(fmt.Sprintf("recorded calls: %d judged, %d would end otherwise", r.Calls, len(r.Differ)))
	type group struct {
		caller, tool  string
		before, after Judgement
	}
	for run := range runs(r.Differ, func(c Replayed) group { return group{string(c.Caller), string(c.Tool), c.Before, c.After} }) {
		c := run[0]
		mark := "+"
		if c.After.Outcome == refused || c.Before.Outcome == permitted {
			mark = "-"
		}
		times := ""
		if len(run) > 1 {
			times = fmt.Sprintf(", %d times", len(run))
		}
		w.line(2, fmt.Sprintf("%s %s, %s%s: %s -> %s", mark, c.Caller, c.Tool, times, c.Before.text(), c.After.text()))
	}
	if r.Partly > 0 {
		w.line(2, fmt.Sprintf("%d without arguments on record: judged by everything but the schema", r.Partly))
	}
	if r.Unjudged > 0 {
		w.line(2, fmt.Sprintf("%d more by callers that neither file declares: not judged", r.Unjudged))
	}
}

func (j Judgement) text() string {
	if j.Reason == "" {
		return j.Outcome
	}
	return fmt.Sprintf("%s by %s (%s)", j.Outcome, j.Reason, j.Detail)
}

// printable keeps what a file or a server says from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
