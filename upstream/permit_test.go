package upstream_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/gate"
	"gatehouse/gate/gatetest"
	"gatehouse/upstream"
	"gatehouse/upstream/upstreamtest"
)

// play serves s and gives its url.
func play(t testing.TB, s *upstreamtest.Server) string {
	t.Helper()
	site := httptest.NewServer(s)
	site.Config.ErrorLog = silent
	t.Cleanup(site.Close)
	return site.URL + "/mcp"
}

// TestOnlyAPermitCalls holds every way into the client against what is meant
// to be there. Whoever adds a method that sends tools/call on the strength of
// anything but a permit has to change this test, and should not.
func TestOnlyAPermitCalls(t *testing.T) {
	want := map[string]string{
		"Test":      "func(*upstream.Client, context.Context, gate.ServerID) (upstream.Report, error)",
		"List":      "func(*upstream.Client, context.Context, gate.ServerID) (upstream.Listing, error)",
		"Call":      "func(*upstream.Client, context.Context, *gate.Permit, upstream.CallOptions) (upstream.Result, error)",
		"Configure": "func(*upstream.Client, []upstream.Server) error",
		"EndHolder": "func(*upstream.Client, string)",
		"Close":     "func(*upstream.Client, context.Context) error",
		"Fleet":     "func(*upstream.Client) upstream.Fleet",
	}
	client := reflect.TypeFor[*upstream.Client]()
	for m := range client.Methods() {
		if got := m.Type.String(); got != want[m.Name] {
			t.Errorf("method %s is %s, want %q", m.Name, got, want[m.Name])
		}
		delete(want, m.Name)
	}
	for name := range want {
		t.Errorf("there is no method %s", name)
	}
}

// TestOneWorkRequest finds every place in the sources that makes a request
// which is marked as the work request, and every one that spends a permit.
func TestOneWorkRequest(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Once" || s.Sel.Name == "Spend") {
					places[s.Sel.Name] = append(places[s.Sel.Name], f.Name.Name)
				}
				if l, ok := n.(*ast.BasicLit); ok && l.Value == `"tools/call"` {
					places[l.Value] = append(places[l.Value], f.Name.Name)
				}
				return true
			})
		}
	}
	for what, want := range map[string]string{
		"Spend":        "Call",
		"Once":         "send",
		`"tools/call"`: "await do modern modern send", // names of legs in errors included
	} {
		got := places[what]
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s stands in %q, want %q", what, got, want)
		}
	}
}

func TestPermitIsSpentOnce(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s), Protocol: upstream.Modern})
	permit := gatetest.Permit(t, toolOf("demo", "echo"), nil, `{}`)
	var ok, refused atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := c.Call(t.Context(), permit, upstream.CallOptions{})
			var failed *upstream.CallError
			switch {
			case err == nil:
				ok.Add(1)
			case errors.As(err, &failed) && failed.Verdict == gate.NotSent && failed.Reason == upstream.ReasonPermit:
				refused.Add(1)
			default:
				t.Errorf("unexpected error %v", err)
			}
		})
	}
	wg.Wait()
	if ok.Load() != 1 || refused.Load() != 19 || s.Count("tools/call") != 1 {
		t.Errorf("%d calls succeeded, %d were refused, tools/call was sent %d times", ok.Load(), refused.Load(), s.Count("tools/call"))
	}
}

func TestWhatIsNoPermit(t *testing.T) {
	s := upstreamtest.New(upstreamtest.Profile{Modern: true})
	c := newClient(t, &store{}, nil, upstream.Server{ID: "demo", URL: play(t, s)})
	for name, p := range map[string]*gate.Permit{"nil": nil, "zero": {}} {
		_, err := c.Call(t.Context(), p, upstream.CallOptions{})
		failed := failure(t, err)
		if failed.Verdict != gate.NotSent || failed.Reason != upstream.ReasonPermit {
			t.Errorf("%s: %+v", name, failed)
		}
	}
	if sent := s.Methods(); len(sent) != 0 {
		t.Errorf("the server saw %q", sent)
	}
}

// failure is the *CallError in err.
func failure(t testing.TB, err error) *upstream.CallError {
	t.Helper()
	var failed *upstream.CallError
	if !errors.As(err, &failed) {
		t.Fatalf("error %v of type %T is no *CallError", err, err)
	}
	return failed
}
