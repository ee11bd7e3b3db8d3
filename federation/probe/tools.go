package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/wire"
)

// A walk ends beyond these.
const (
	maxPages = 50
	maxTools = 5000
)

// A pager makes the request for a page; cursor is raw, nil for the first.
type pager func(cursor []byte) wire.Request

// tools walks the listing twice and judges what it lists.
func (p *prober) tools(ctx context.Context, era string, page pager) error {
	first, pages, ok, err := p.walk(ctx, era, "tools/list", page)
	if err != nil || !ok {
		return err
	}
	p.report.Tools, p.report.Pages = len(first), pages
	p.look("tools/list", ruleCapability, p.declares, "it lists tools, and its capabilities do not name them", answer{})
	second, _, ok, err := p.walk(ctx, era, "tools/list, a second time", page)
	if err != nil {
		return err
	}
	if ok {
		p.compare(first, second)
	}
	p.names(first)
	if err := p.definitions(ctx, era, first); err != nil {
		return err
	}
	return p.badCursor(ctx, page)
}

// walk follows the cursors to the end of the list.
func (p *prober) walk(ctx context.Context, era, what string, page pager) (tools []json.RawMessage, pages int, ok bool, err error) {
	seen := map[string]bool{}
	var cursor []byte
	var scope string
	for {
		step := what
		if pages > 0 {
			step = fmt.Sprintf("%s, page %d", what, pages+1)
		}
		r := page(cursor)
		a, err := p.ask(ctx, r)
		if err != nil {
			return nil, 0, false, err
		}
		if code, _ := a.code(); code == -32601 && !p.declares {
			return nil, 0, false, nil // a server without tools
		}
		if !p.good(ctx, step, r, a) {
			return nil, 0, false, nil
		}
		pages++
		raw := a.member("tools")
		if raw == nil || !rawjson.IsArray(raw) {
			p.look(step, rulePage, false, "tools is "+show(raw), a)
			return nil, 0, false, nil
		}
		p.look(step, rulePage, true, "", a)
		list, _ := rawjson.Array(raw) // checked with the reply
		for _, t := range list {
			tools = append(tools, t)
		}
		if era == modern {
			before := scope
			if scope = p.cacheable(step, a); before != "" && before != scope {
				p.look(step, ruleScope, false, "cacheScope is "+show(a.member("cacheScope"))+" and was "+before, a)
			}
		}
		next := a.member("nextCursor")
		if next == nil || rawjson.IsNull(next) || era == legacy && string(next) == `""` {
			p.look(what, ruleEnd, true, "", a)
			return tools, pages, true, nil
		}
		if !p.look(step, ruleCursor, rawjson.IsString(next), "nextCursor is "+show(next), a) {
			return nil, 0, false, nil
		}
		if found := endless(seen, next, pages, len(tools)); found != "" {
			p.look(step, ruleEnd, false, found, a)
			return nil, 0, false, nil
		}
		seen[string(next)], cursor = true, next
	}
}

// endless says why a walk goes no further.
func endless(seen map[string]bool, next []byte, pages, tools int) string {
	switch {
	case seen[string(next)]:
		return "the cursor " + show(next) + " was given before"
	case pages >= maxPages:
		return fmt.Sprintf("the list goes on after %d pages", pages)
	case tools > maxTools:
		return fmt.Sprintf("the list goes on after %d tools", tools)
	}
	return ""
}

// compare holds two listings against each other. Nothing was asked of the server
// between them but the listing itself.
func (p *prober) compare(first, second []json.RawMessage) {
	const step = "tools/list, a second time"
	before, after := map[string][]byte{}, map[string][]byte{}
	order := true
	for i, raw := range first {
		before[toolName(raw)] = canonical(raw)
		order = order && i < len(second) && toolName(second[i]) == toolName(raw)
	}
	for _, raw := range second {
		after[toolName(raw)] = canonical(raw)
	}
	found := ""
	for _, raw := range append(append([]json.RawMessage{}, first...), second...) {
		name := toolName(raw)
		if found == "" && !bytes.Equal(before[name], after[name]) {
			found = fmt.Sprintf("%q is another tool now: %s", wire.Clip(name), show(after[name]))
		}
	}
	p.look(step, ruleStable, found == "", found, answer{})
	if found == "" {
		p.look(step, ruleOrder, order, "the tools come in another order", answer{})
	}
}

func toolName(raw []byte) string { return text(member(raw, "name")) }

func canonical(raw []byte) []byte {
	form, err := rawjson.Canonical(nil, raw)
	if err != nil {
		return raw
	}
	return form
}

// names looks at what tools are called.
func (p *prober) names(tools []json.RawMessage) {
	for _, raw := range tools {
		name := toolName(raw)
		step := fmt.Sprintf("tool %q", wire.Clip(name))
		hidden := strings.ContainsFunc(name, func(r rune) bool {
			return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError
		})
		if !p.look(step, ruleHiddenName, !hidden, fmt.Sprintf("its name is %+q", wire.Clip(strings.ToValidUTF8(name, "?"))), answer{}) {
			continue
		}
		plain := name != "" && len(name) <= 128 && !strings.ContainsFunc(name, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
		})
		p.look(step, ruleName, plain, fmt.Sprintf("its name has %d characters, %q", utf8.RuneCountInString(name), wire.Clip(name)), answer{})
	}
}

// definitions lets the catalogue judge each tool, as an import would. Every tool
// is given a short other name first: how ours are made is no rule of theirs.
func (p *prober) definitions(ctx context.Context, era string, tools []json.RawMessage) error {
	c, err := catalog.Open(catalog.Options{Store: nowhere{}, Version: p.options.Version})
	if err != nil {
		return err
	}
	alias := map[gate.RemoteName]string{}
	for i, raw := range tools {
		if name := gate.RemoteName(toolName(raw)); alias[name] == "" {
			alias[name] = fmt.Sprintf("t%d", i)
		}
	}
	c.Configure([]catalog.ServerSettings{{ID: "probe", URL: p.report.URL, Enabled: true, Class: gate.PublicContent, Alias: alias}}, nil, gate.Enforce)
	report, err := c.Import(ctx, "probe", func(context.Context) (catalog.Listing, error) {
		return catalog.Listing{Tools: tools, Era: era, Pages: 1}, nil
	}, true)
	if err != nil {
		p.look("tools/list", ruleEnd, false, err.Error(), answer{}) // too many of them
		return nil
	}
	faults := map[int]bool{}
	for _, line := range report.Lines {
		step := fmt.Sprintf("tool %q", line.Remote)
		if line.Remote == "" {
			step = fmt.Sprintf("tool number %d", line.Index+1)
		}
		switch line.What {
		case catalog.LineSkipped:
			faults[line.Index] = true
			p.look(step, ruleDefinition, false, line.Text, answer{quote: definition(tools, line.Index)})
		case catalog.LineWarning:
			p.look(step, ruleHint, false, line.Text, answer{})
		}
	}
	for i, raw := range tools {
		if !faults[i] {
			p.look(fmt.Sprintf("tool %q", wire.Clip(toolName(raw))), ruleDefinition, true, "", answer{})
		}
	}
	return nil
}

func definition(tools []json.RawMessage, i int) string {
	if i < 0 || i >= len(tools) {
		return ""
	}
	return show(tools[i])
}

// badCursor asks for a page that never was.
func (p *prober) badCursor(ctx context.Context, page pager) error {
	const step = "tools/list with a cursor of our own"
	r := page([]byte(`"gatehouse probe: no cursor of yours"`))
	a, err := p.ask(ctx, r)
	if err != nil || !p.sound(ctx, step, r, a) {
		return err
	}
	code, _ := a.code()
	p.look(step, ruleBadCursor, code == -32602, a.says(), a)
	return nil
}

// nowhere is a store that keeps nothing.
type nowhere struct{}

func (nowhere) Load() ([]catalog.StoredServer, []catalog.StoredTool, error) { return nil, nil, nil }

func (nowhere) Save(catalog.StoredServer, []catalog.StoredTool, []gate.RemoteName) error { return nil }
