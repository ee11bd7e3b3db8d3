package probe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/federation/demo"
	"gatehouse/federation/probe"
	"gatehouse/upstream/upstreamtest"
)

// patience is what a request may take when hanging is the fault that is looked
// for, and when it is not.
func patience(rule string) time.Duration {
	if rule == "time" {
		return 300 * time.Millisecond
	}
	return 10 * time.Second
}

func run(t *testing.T, url string) *probe.Report { return runFor(t, url, "") }

// runFor probes a server that breaks a rule.
func runFor(t *testing.T, url, rule string) *probe.Report {
	t.Helper()
	report, err := probe.Run(t.Context(), probe.Options{URL: url, Timeout: patience(rule), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func rules(points []probe.Point) (ids []string) {
	for _, p := range points {
		if !slices.Contains(ids, p.Rule.ID) {
			ids = append(ids, p.Rule.ID)
		}
	}
	return ids
}

func describe(t *testing.T, points []probe.Point) {
	t.Helper()
	for _, p := range points {
		t.Logf("%s: %s: %s | %s", p.Step, p.Rule.ID, p.Found, p.Reply)
	}
}

func TestWellBehavedServersAreClean(t *testing.T) {
	for _, profile := range upstreamtest.Profiles() {
		t.Run(profile.Name, func(t *testing.T) {
			t.Parallel()
			server := upstreamtest.New(profile)
			server.PageSize = 2
			played := httptest.NewServer(server)
			t.Cleanup(played.Close)
			report := run(t, played.URL)
			if bad := append(report.Departures(), report.Remarks()...); len(bad) > 0 {
				describe(t, bad)
				t.Errorf("%d points of a server that behaves", len(bad))
			}
			want := "2025-11-25"
			if profile.Modern {
				want = "2026-07-28"
			}
			if !slices.Equal(report.Eras, []string{want}) || report.Server != "played" || report.Tools != len(server.Tools) || report.Pages != 3 {
				t.Errorf("got eras %v, server %q, %d tools on %d pages", report.Eras, report.Server, report.Tools, report.Pages)
			}
			if len(report.Points) < 30 {
				t.Errorf("only %d points were looked at", len(report.Points))
			}
			if n := server.Count("tools/call"); n > 0 {
				t.Errorf("tools/call was sent %d times", n)
			}
			if n := server.Sessions(); n > 0 {
				t.Errorf("%d sessions are left open", n)
			}
		})
	}
}

// TestKindsAreFoundInEitherEra sees that what the demo spoils is found in the
// requests of both eras.
func TestKindsAreFoundInEitherEra(t *testing.T) {
	behaved := rules(run(t, start(t, "")).Departures())
	for kind, want := range map[string]string{"both-branches": "result_or_error", "duplicate-key": "duplicate_keys",
		"redirect-foreign": "redirect", "rug-pull": "same_list", "escapes": "tool_name_hidden"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			report := run(t, start(t, kind))
			found := rules(report.Departures())
			if !slices.Contains(found, want) || slices.Contains(behaved, want) {
				describe(t, report.Departures())
				t.Errorf("broken rules %v, want %q among them", found, want)
			}
		})
	}
}

func start(t *testing.T, kind string) string {
	t.Helper()
	s, err := demo.Start("127.0.0.1:0", "1", kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s.URL
}

// TestTheDemoItselfIsClean: what the first minute shows should not be a list of
// faults.
func TestTheDemoItselfIsClean(t *testing.T) {
	report := run(t, start(t, ""))
	describe(t, append(report.Departures(), report.Remarks()...))
	if len(report.Departures()) > 0 || len(report.Eras) != 2 {
		t.Errorf("eras %v, %d departures", report.Eras, len(report.Departures()))
	}
}

func TestPlayedKindsAreFound(t *testing.T) {
	want := map[string]string{
		"accepted-only": "response", "array-result": "result", "asks-back": "time", "away": "status", "batch": "object",
		"batch-event": "object", "both-branches": "result_or_error", "broken": "status", "busy": "status", "byte-order-mark": "json",
		"cursor-cycle": "list_ends", "deep-nesting": "depth", "duplicate-inside": "duplicate_keys", "duplicate-key": "duplicate_keys",
		"empty-body": "response", "endless-cursor": "list_ends", "endless-line": "size", "ends-early": "response", "error-string": "error",
		"flood": "list_ends", "folded-key": "key_case", "forbidden": "status", "foreign-event": "id", "foreign-id": "id",
		"gzip-bomb": "content_type", "half-body": "answer", "hang-up": "answer", "initialized-endless": "accepted",
		"initialized-refused": "accepted", "input-required": "result_type", "invented-version": "version", "keep-alive": "time",
		"late-failure": "status", "method-beside": "kind", "missing-id": "id", "missing-jsonrpc": "jsonrpc", "no-branch": "result_or_error",
		"not-json": "json", "null-id": "id", "null-result": "result", "number-cursor": "cursor", "number-version": "version",
		"numeric-id": "id", "over-cap": "size", "oversize-header": "header_size", "progress-for-ever": "time", "redirect-foreign": "redirect",
		"redirect-slash": "redirect", "repeated-cursor": "list_ends", "scalar-result": "result", "session-high-byte": "session_id",
		"session-long": "session_id", "session-space": "session_id", "session-twice": "session_id", "silent": "time",
		"tools-missing": "page", "tools-object": "page", "trailing-bytes": "json", "trickling-body": "time", "two-responses": "one_response",
		"unknown-encoding": "content_type", "unknown-version": "version", "unpaired-escapes": "", "wrong-jsonrpc": "jsonrpc", "wrong-type": "content_type",
		// What only a call shows, and what is allowed.
		"content-object": "", "content-null": "", "unauthorized": "",
		// These are allowed; but such a server looks at no header.
		"stays-open": "version_header", "changed-flood": "version_header",
		"invalid-utf8": "utf8", "rug-pull": "same_list", "escapes": "tool_name_hidden",
	}
	for _, kind := range upstreamtest.HostileKinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rule, listed := want[kind]
			if !listed {
				t.Fatal("a new kind: say which rule it breaks")
			}
			played := httptest.NewServer(upstreamtest.Hostile(kind))
			t.Cleanup(played.Close)
			report, err := probe.Run(t.Context(), probe.Options{URL: played.URL, Timeout: patience(rule), Version: "test"})
			if (err != nil) != (kind == "unauthorized") {
				t.Fatal(err)
			}
			found := rules(report.Departures())
			if rule != "" && !slices.Contains(found, rule) {
				describe(t, report.Departures())
				t.Errorf("broken rules %v, want %q among them", found, rule)
			}
			if rule == "" && kind != "unpaired-escapes" && len(found) > 0 {
				describe(t, report.Departures())
				t.Errorf("broken rules %v, want none", found)
			}
		})
	}
}

func TestWhoCannotBeProbed(t *testing.T) {
	if _, err := probe.Run(t.Context(), probe.Options{URL: "nonsense"}); err == nil {
		t.Error("nonsense was probed")
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := probe.Run(t.Context(), probe.Options{URL: gone.URL}); err == nil || !strings.Contains(err.Error(), "connection") {
		t.Errorf("nobody listens there: got %v", err)
	}
	for _, url := range []string{"http://127.1/", "ftp://127.0.0.1/", "http://user:password@127.0.0.1/", "http://127.0.0.1/#part"} {
		if _, err := probe.Run(t.Context(), probe.Options{URL: url}); err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

// TestOnlyTheNamedHostMayBePrivate: the server's word opens nothing.
func TestOnlyTheNamedHostMayBePrivate(t *testing.T) {
	server := upstreamtest.New(upstreamtest.Profiles()[0])
	met := false
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { met = true }))
	t.Cleanup(private.Close)
	server.On("tools/list", func(x *upstreamtest.Exchange) {
		x.Writer.Header().Set("Location", private.URL)
		x.Raw(http.StatusTemporaryRedirect, "", "")
	})
	played := httptest.NewServer(server)
	t.Cleanup(played.Close)
	if found := rules(run(t, played.URL).Departures()); !slices.Contains(found, "redirect") || met {
		t.Errorf("broken rules %v; the other host was met: %v", found, met)
	}
}
