package console

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"gatehouse/e2e/rig"
)

// patience bounds one step in the browser.
const patience = 30 * time.Second

// A browser is one window of a Chromium with a profile of its own.
type browser struct {
	ctx   context.Context
	base  string
	shots string
	axe   string

	mu         sync.Mutex
	complaints []string // of the page's console, uncaught errors and refusals of the policy
	dialogs    int
}

// open starts a browser that knows nobody.
func open(t *testing.T, base string) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium; apt-get install -y chromium")
	}
	axe, err := os.ReadFile(rig.Module("axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v; run npm ci in e2e", err)
	}
	b := &browser{base: base, axe: string(axe), shots: filepath.Join(rig.Root, "..", ".e2e", "console")}
	if err := os.MkdirAll(b.shots, 0o755); err != nil {
		t.Fatal(err)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(patience))
	ctx, leave := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		leave()
		stop()
	})
	b.ctx = ctx
	// The first call starts the browser, so it has no time limit of its own.
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.do(t, command(log.Enable, cdp.Empty{}), command(runtime.Enable, cdp.Empty{}), command(page.Enable, page.EnableParams{}))
	b.screen(t, false)
	return b
}

// command is one of the protocol's as a step.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, "uncaught: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		// What the pages answer with on purpose shows up as failed requests, too.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			b.complaints = append(b.complaints, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *page.EventJavascriptDialogOpening:
		b.dialogs++
	}
}

// do takes steps, which have a while to succeed.
func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.fail(t, err)
	}
}

// fail ends the test with what the page is at.
func (b *browser) fail(t *testing.T, cause any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	b.shoot(t, "failed")
	t.Fatalf("%v\nat %s, which says:\n%s", cause, at, text)
}

// evaluate is the value of an expression in the page.
func evaluate[T any](t *testing.T, b *browser, expression string, o ...chromedp.EvaluateOption) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, o...))
	if err != nil {
		b.fail(t, err)
	}
	return value
}

// until waits until an expression holds, whatever pages come and go meanwhile.
func (b *browser) until(t *testing.T, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if err == nil && holds {
			return
		}
		if ctx.Err() != nil {
			b.fail(t, "it never was so: "+expression)
		}
		time.Sleep(30 * time.Millisecond)
	}
}

func (b *browser) goTo(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.Navigate(b.base+path))
	b.until(t, `document.readyState === "complete" && !!document.querySelector("main")`)
}

// click clicks what a selector finds and waits for the page that follows.
func (b *browser) click(t *testing.T, selector string) {
	t.Helper()
	evaluate[bool](t, b, `window.left = true`)
	b.do(t, chromedp.Click(selector))
	b.until(t, `!window.left && document.readyState === "complete"`)
}

func (b *browser) text(t *testing.T, selector string) string {
	t.Helper()
	return evaluate[string](t, b, fmt.Sprintf(`(document.querySelector(%q) || {}).textContent || ""`, selector))
}

func (b *browser) says(t *testing.T, selector string, wants ...string) {
	t.Helper()
	got := b.text(t, selector)
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%s does not say %q but:\n%s", selector, want, got)
		}
	}
}

// screen is a desk's screen in a light room, or a phone in a dark one.
func (b *browser) screen(t *testing.T, phone bool) {
	t.Helper()
	width, height, scheme := int64(1280), int64(860), "light"
	if phone {
		width, height, scheme = 390, 844, "dark"
	}
	b.do(t, command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
}

// look keeps pictures of the page as it is, on a desk and on a phone, and holds
// both to axe and to their width.
func (b *browser) look(t *testing.T, name string) {
	t.Helper()
	for _, phone := range []bool{false, true} {
		where := "desk"
		if phone {
			where = "phone"
		}
		b.screen(t, phone)
		b.audit(t, name+" on a "+where)
		wide, window := evaluate[int](t, b, `document.documentElement.scrollWidth`), evaluate[int](t, b, `document.documentElement.clientWidth`)
		if wide > window {
			t.Errorf("%s on a %s is %d wide in a window of %d", name, where, wide, window)
		}
		b.shoot(t, name+"-"+where)
	}
	b.screen(t, false)
}

func (b *browser) shoot(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Errorf("picture %s: %v", name, err)
		return
	}
	if err := os.WriteFile(filepath.Join(b.shots, name+".png"), picture, 0o644); err != nil {
		t.Error(err)
	}
}

// audit runs axe over the page; what is serious or worse fails.
func (b *browser) audit(t *testing.T, what string) {
	t.Helper()
	if !evaluate[bool](t, b, `"axe" in window`) {
		evaluate[int](t, b, b.axe+"; 0")
	}
	raw := evaluate[string](t, b, `axe.run({resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact,
		help: v.help, nodes: v.nodes.map(n => n.html.slice(0, 200) + " " + ((n.any[0] || n.all[0] || {}).message || ""))}))))`, chromedp.EvalAwaitPromise)
	var violations []struct {
		ID, Impact, Help string
		Nodes            []string
	}
	if err := json.Unmarshal([]byte(raw), &violations); err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		report := t.Logf
		if v.Impact == "serious" || v.Impact == "critical" {
			report = t.Errorf
		}
		report("%s: axe: %s (%s): %s\n%s", what, v.ID, v.Impact, v.Help, strings.Join(v.Nodes[:min(3, len(v.Nodes))], "\n"))
	}
}

// quiet fails if a page complained or opened a dialog.
func (b *browser) quiet(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		t.Errorf("the browser complains: %s", c)
	}
	if b.dialogs > 0 {
		t.Errorf("%d dialogs were opened", b.dialogs)
	}
}
