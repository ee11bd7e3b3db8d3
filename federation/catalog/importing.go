package catalog

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"gatehouse/gate"
)

// maxVanished bounds how many tools are kept that a server stopped listing and
// nobody had enabled: a server that lists other names every time must not fill
// the store. Only tests change it.
var maxVanished = 2 * maxTools

// judgingLimit bounds the work that one listing can make. Five thousand honest
// tools take some seconds; as many of the most intricate schemas that fit the
// other bounds would take a quarter of an hour.
const judgingLimit = 2 * time.Minute

var errJudging = fmt.Errorf("its schemas take longer than %v to judge", judgingLimit)

// Import takes over what list returns for one server, or with dryRun says what
// it would take over. Imports of one server run one after the other. A refusal
// is a *RefusedError and changes nothing but the server's LastRefusal.
func (c *Catalog) Import(ctx context.Context, id gate.ServerID, list func(context.Context) (Listing, error), dryRun bool) (Report, error) {
	report := Report{Server: id, Time: c.now(), DryRun: dryRun}
	settings, ok := c.settingsOf(id)
	if !ok {
		return c.refuse(report, &RefusedError{Server: id, Reason: "no [[server]] has this id"})
	}
	unlock, err := c.lockServer(ctx, id)
	if err != nil {
		return c.refuse(report, &RefusedError{Server: id, Reason: "another import of it is still running", Cause: err})
	}
	defer unlock()
	if reason := unsupplied(&settings); reason != "" {
		return c.refuse(report, &RefusedError{Server: id, Reason: reason})
	}
	listing, err := list(ctx)
	report.Pages, report.Era, report.Legs = listing.Pages, listing.Era, listing.Legs
	if err != nil {
		return c.refuse(report, refusalOf(id, err))
	}
	if n := len(listing.Tools); n > maxTools {
		return c.refuse(report, &RefusedError{Server: id, Reason: fmt.Sprintf("it lists %d tools, the limit is %d; nothing is cut off, so nothing was imported", n, maxTools)})
	}
	judging, cancel := context.WithTimeoutCause(ctx, judgingLimit, errJudging)
	defer cancel()
	verdicts, err := c.judgeAll(judging, id, listing)
	if err != nil {
		return c.refuse(report, &RefusedError{Server: id, Reason: "the import was given up: " + err.Error(), Cause: err})
	}
	return c.take(report, settings, verdicts)
}

// refusalOf keeps a listing's error as the reason. Errors that name the server
// themselves would say it twice.
func refusalOf(id gate.ServerID, err error) *RefusedError {
	reason := strings.TrimPrefix(err.Error(), fmt.Sprintf("server %q: ", string(id)))
	return &RefusedError{Server: id, Reason: oneLine(reason, 500), Cause: err}
}

func unsupplied(s *ServerSettings) string {
	switch {
	case s.Class == gate.Unclassified:
		return "the server has no declared data class; set data_class under its [[server]]"
	case s.URL == "":
		return "no url is set; set url under its [[server]]"
	}
	return ""
}

// refuse notes the refusal beside the server's record.
func (c *Catalog) refuse(r Report, refusal *RefusedError) (Report, error) {
	r.Refusal = refusal.Reason
	if r.DryRun {
		return r, refusal
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.settings[r.Server]; !known {
		return r, refusal
	}
	server := c.serverRecord(r.Server)
	server.LastRefusal, server.Refusal = r.Time, refusal.Reason
	if err := c.store.Save(server, nil, nil); err != nil {
		// The catalogue is as it was; only the note about it is missing.
		c.log.Error("cannot note a refused import", "server", r.Server, "error", err)
		return r, refusal
	}
	c.servers[r.Server] = server
	return r, refusal
}

// lockServer waits for other imports of the same server.
func (c *Catalog) lockServer(ctx context.Context, id gate.ServerID) (unlock func(), err error) {
	c.mu.Lock()
	lock := c.importing[id]
	if lock == nil {
		lock = make(chan struct{}, 1)
		c.importing[id] = lock
	}
	c.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// judgeAll judges each element on its own. Elements that share a remote name
// are all refused: which of them a call would reach is the server's secret.
func (c *Catalog) judgeAll(ctx context.Context, id gate.ServerID, l Listing) ([]verdict, error) {
	c.mu.Lock()
	tools := c.tools[id]
	c.mu.Unlock()
	known := func(name gate.RemoteName) *record { return tools[name] }
	verdicts := make([]verdict, len(l.Tools))
	places := make(map[gate.RemoteName][]int)
	for i, raw := range l.Tools {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		verdicts[i] = judge(raw, i, l.Era, known)
		if name := verdicts[i].remote; name != "" {
			places[name] = append(places[name], i)
		}
	}
	for name, at := range places {
		if len(at) < 2 {
			continue
		}
		for _, i := range at {
			verdicts[i].ready, verdicts[i].warnings = nil, nil
			verdicts[i].refusal = fmt.Sprintf("the server lists %q %d times; all of them are left out", oneLine(string(name), 80), len(at))
		}
	}
	return verdicts, nil
}

// take compares the verdicts with what is kept, writes the difference in one
// transaction and swaps the snapshot.
func (c *Catalog) take(r Report, seen ServerSettings, verdicts []verdict) (Report, error) {
	c.mu.Lock()
	locked := true
	unlock := func() {
		if locked {
			locked = false
			c.mu.Unlock()
		}
	}
	defer unlock()
	refuse := func(reason string, cause error) (Report, error) {
		unlock()
		return c.refuse(r, &RefusedError{Server: r.Server, Reason: reason, Cause: cause})
	}
	settings, ok := c.settings[r.Server]
	if !ok || settings.URL != seen.URL || settings.identity() != seen.identity() {
		return refuse("its configuration changed while it was being listed; import again", nil)
	}
	d := c.reconcile(&r, settings, verdicts)
	if r.DryRun {
		return r, nil
	}
	if err := c.store.Save(d.server, d.put, d.drop); err != nil {
		return refuse("the state could not be written", err)
	}
	c.servers[r.Server] = d.server
	c.tools[r.Server] = d.tools
	c.swap()
	return r, nil
}

// A delta is what an import makes of a server's records.
type delta struct {
	server StoredServer
	tools  map[gate.RemoteName]*record
	put    []StoredTool
	drop   []gate.RemoteName
}

func (c *Catalog) reconcile(r *Report, settings *ServerSettings, verdicts []verdict) delta {
	old := c.tools[r.Server]
	d := delta{server: c.serverRecord(r.Server), tools: make(map[gate.RemoteName]*record, len(verdicts))}
	d.server.LastImport, d.server.Era, d.server.Nameless = r.Time, r.Era, nil
	d.server.LastRefusal, d.server.Refusal = time.Time{}, ""
	// One that is listed twice is named once: it does not collide with itself.
	once := make(map[gate.RemoteName]bool, len(verdicts))
	keys := make([]toolKey, 0, len(verdicts))
	for _, v := range verdicts {
		if v.remote != "" && !once[v.remote] {
			once[v.remote] = true
			keys = append(keys, toolKey{r.Server, v.remote})
		}
	}
	names := nameTools(keys, c.settings)
	for _, v := range verdicts {
		if v.remote == "" {
			d.server.Nameless = append(d.server.Nameless, StoredSkip{Index: v.index, Reason: v.refusal})
			r.skip(v, "", v.refusal)
			continue
		}
		next := following(r.Server, old[v.remote], v, r.Time)
		d.tools[v.remote] = next
		named := names[toolKey{r.Server, v.remote}]
		if v.refusal != "" || named.reason != "" {
			r.skip(v, named.name, firstOf(v.refusal, named.reason))
		} else {
			c.account(r, old[v.remote], next, v, named.name)
		}
	}
	vanish(r, old, &d, settings)
	for name, rec := range d.tools {
		if o := old[name]; o == nil || !sameStored(o.StoredTool, rec.StoredTool) {
			d.put = append(d.put, rec.StoredTool)
		}
	}
	slices.SortFunc(d.put, func(a, b StoredTool) int { return strings.Compare(string(a.Remote), string(b.Remote)) })
	return d
}

// following is the record that follows old when the server lists v.
func following(id gate.ServerID, old *record, v verdict, now time.Time) *record {
	next := &record{StoredTool: StoredTool{Server: id, Remote: v.remote, Definition: v.raw, Digest: v.digest, Refusal: v.refusal,
		Warnings: v.warnings, FirstSeen: now, LastSeen: now}, ready: v.ready}
	if old == nil {
		return next
	}
	next.FirstSeen = old.FirstSeen
	if old.Pin == nil {
		return next
	}
	pin := *old.Pin
	switch {
	case pin.Digest == next.Digest:
		pin.Definition = nil
	case pin.Definition == nil && old.Digest == pin.Digest:
		pin.Definition = old.Definition
	}
	next.Pin = &pin
	return next
}

// account counts a tool that is served, and writes its lines.
func (c *Catalog) account(r *Report, old, next *record, v verdict, name gate.LocalName) {
	r.Imported++
	line := ReportLine{Name: name, Remote: oneLine(string(v.remote), 128), Index: v.index}
	switch {
	case old == nil || old.ready == nil && old.Pin == nil:
		r.New++
		line.What = LineNew
		r.Lines = append(r.Lines, line)
	case old.Digest != next.Digest:
		r.Changed++
		line.What, line.Text = LineChanged, briefly(changes(old.Definition, next.Definition))
		r.Lines = append(r.Lines, line)
	default:
		r.Unchanged++
	}
	line.What = LineWarning
	for _, w := range append(slices.Clone(v.warnings), c.nameWarnings(name)...) {
		line.Text = w
		r.Lines = append(r.Lines, line)
	}
}

// nameWarnings says which hosts would cut or refuse a name.
func (c *Catalog) nameWarnings(name gate.LocalName) []string {
	var out, tight []string
	for _, caller := range c.callers {
		if caller.NameBudget > 0 && caller.NamePrefix+len(name) > caller.NameBudget {
			tight = append(tight, string(caller.Name))
		}
	}
	switch {
	case len(tight) > 0:
		sort.Strings(tight)
		out = append(out, fmt.Sprintf("its name has %d characters, too many for the host of %s; give it an alias", len(name), quoteAll(tight)))
	case len(name) > roomyName:
		out = append(out, fmt.Sprintf("its name has %d characters; hosts that add a prefix may cut it", len(name)))
	}
	return out
}

func (r *Report) skip(v verdict, name gate.LocalName, reason string) {
	r.Skipped++
	r.Lines = append(r.Lines, ReportLine{What: LineSkipped, Name: name, Remote: oneLine(string(v.remote), 128), Index: v.index, Text: oneLine(reason, 500)})
}

// vanish keeps what the server did not list this time, except what was never
// usable and nobody enabled.
func vanish(r *Report, old map[gate.RemoteName]*record, d *delta, settings *ServerSettings) {
	var idle []*record
	for _, name := range sortedKeys(old) {
		if d.tools[name] != nil {
			continue
		}
		gone := *old[name]
		local, unfit := localName(settings.ID, name, settings.Alias)
		if gone.Pin == nil && (gone.ready == nil || unfit != nil) {
			d.drop = append(d.drop, name)
			continue
		}
		if !gone.Vanished {
			gone.Vanished = true
			r.Vanished++
			r.Lines = append(r.Lines, ReportLine{What: LineVanished, Name: local, Remote: oneLine(string(name), 128), Index: -1,
				Text: "last seen " + gone.LastSeen.UTC().Format("2006-01-02 15:04")})
		}
		d.tools[name] = &gone
		if gone.Pin == nil {
			idle = append(idle, &gone)
		}
	}
	slices.SortStableFunc(idle, func(a, b *record) int { return b.LastSeen.Compare(a.LastSeen) })
	for _, rec := range idle[min(len(idle), maxVanished):] {
		delete(d.tools, rec.Remote)
		d.drop = append(d.drop, rec.Remote)
	}
}

func sameStored(a, b StoredTool) bool {
	return a.Digest == b.Digest && a.Refusal == b.Refusal && a.Vanished == b.Vanished && a.LastSeen.Equal(b.LastSeen) &&
		slices.Equal(a.Warnings, b.Warnings) && samePin(a.Pin, b.Pin)
}

func samePin(a, b *StoredPin) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.URL == b.URL && a.Identity == b.Identity && (a.Definition == nil) == (b.Definition == nil)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func sortedKeys[V any](m map[gate.RemoteName]V) []gate.RemoteName {
	keys := make([]gate.RemoteName, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
