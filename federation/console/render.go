package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"gatehouse/federation/control"
	"gatehouse/gate"
	"gatehouse/upstream/wire"
)

// A page is what the layout needs, and the page's own data.
type page struct {
	Title     string
	Section   string // which entry of the navigation is current
	Who       string // who is signed in, "" on the sign-in page
	Questions int    // open ones
	Notice    *notice
	Zone      string // the time zone that times are written in
	Version   string
	Data      any
}

// render writes one page for whoever is signed in.
func (v *visit) render(status int, name, title string, data any) {
	section, _, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, Root), "/")
	switch section {
	case "":
		section = "now"
	case "whatif":
		section = "callers"
	}
	zone, _ := v.now().Zone()
	v.write(v.w, status, name, page{Title: title, Section: section, Who: string(v.who.Name), Questions: len(v.g.Gate.Questions()),
		Notice: v.session.told(), Zone: zone, Version: v.g.Version, Data: data})
}

func (c *Console) write(w http.ResponseWriter, status int, name string, p page) {
	var out bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&out, "layout", p); err != nil {
		// Nothing of the page is sent: half a page could hide what is missing.
		c.g.Logger.Error("a console page could not be rendered", "page", name, "error", err)
		http.Error(w, "the page could not be rendered; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the browser may be gone; nothing depends on it
}

// parsePages makes one template a page, each with the layout around it.
func parsePages(assets map[string]asset) map[string]*template.Template {
	base := template.Must(template.New("").Funcs(functions(assets)).ParseFS(files, "templates/layout.html", "templates/parts.html"))
	pages := map[string]*template.Template{}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		panic("unreachable: the pattern is well formed")
	}
	for _, name := range names {
		switch page := strings.TrimSuffix(path.Base(name), ".html"); page {
		case "layout", "parts":
		default:
			pages[page] = template.Must(template.Must(base.Clone()).ParseFS(files, name))
		}
	}
	return pages
}

func functions(assets map[string]asset) template.FuncMap {
	return template.FuncMap{
		"asset":   func(name string) string { return "/console/static/" + name + "?" + assets[name].version },
		"clip":    wire.Clip,
		"visible": control.Visible,
		"ago":     ago,
		"clock":   func(t time.Time) string { return t.Local().Format("15:04:05") },
		"date":    func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"took":    took,
		"millis":  func(ms float64) string { return took(time.Duration(ms * float64(time.Millisecond))) },
		"many":    many,
		"words":   func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
		"short":   short,
		"segment": url.PathEscape,
		"tone":    tone,
		"deref":   func(t *time.Time) time.Time { return *t },
		"gist":    func(e gate.Entry) string { return summary(&e) },
		"entry":   entryOf,
	}
}

// An entry is one of the navigation's.
type entry struct {
	Path, Label string
	Current     bool
	Badge       int
}

func entryOf(p page, section, path, label string) entry {
	e := entry{Path: path, Label: label, Current: p.Section == section}
	if section == "questions" {
		e.Badge = p.Questions
	}
	return e
}

// ago says how long ago something was, for reading.
func ago(t time.Time) string {
	switch d := time.Since(t); {
	case d < -time.Minute:
		return "in " + span(-d)
	case d < 5*time.Second:
		return "just now"
	default:
		return span(d) + " ago"
	}
}

func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// took is a duration as it is read beside others.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// many is a number and its noun.
func many(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// short is enough of a digest to tell two apart by eye.
func short(digest any) string {
	s := fmt.Sprint(digest)
	return s[:min(len(s), 12)]
}

// tone is how good a state, verdict or credential is: good, warn, bad, or "" for
// neither.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "enabled", "ok", "passed", "new", "unchanged":
		return "good"
	case "changed", "expired", "login needed", "unsupplied", "declined", "refused", "tool_error", "not_sent", "cancelled", "skipped", "warning", "vanished":
		return "warn"
	case "upstream_error", "outcome_unknown", "failed":
		return "bad"
	}
	return ""
}

// An asset is a file that pages load.
type asset struct {
	body    []byte
	kind    string
	version string // changes with the body, so that a browser may keep it for good
}

func loadAssets() map[string]asset {
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	assets := map[string]asset{}
	entries, err := files.ReadDir("static")
	if err != nil {
		panic("unreachable: the directory is embedded")
	}
	for _, e := range entries {
		body, err := files.ReadFile("static/" + e.Name())
		if err != nil {
			panic("unreachable: the file is embedded")
		}
		sum := sha256.Sum256(body)
		assets[e.Name()] = asset{body, kinds[path.Ext(e.Name())], hex.EncodeToString(sum[:6])}
	}
	return assets
}

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets[r.PathValue("file")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	if r.URL.RawQuery == a.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(a.body) // the browser may be gone; nothing depends on it
}
