package catalog_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

var update = flag.Bool("update", false, "rewrite the wanted half of golden files")

// Each file holds a definition that was enabled, the one that a server lists
// now, and what an operator is shown.
func TestDiffScreens(t *testing.T) {
	files, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := make(map[string]string)
			for _, f := range a.Files {
				parts[f.Name] = string(f.Data)
			}
			b := open(t, newMemory(), server("mail"))
			b.take("mail", parts["enabled.json"])
			b.enable("mcp_mail_send")
			if now := parts["now.json"]; now != "" {
				b.take("mail", now)
			} else {
				b.take("mail")
			}
			if url := strings.TrimSpace(parts["url"]); url != "" {
				b.Configure([]catalog.ServerSettings{server("mail", func(s *catalog.ServerSettings) { s.URL, s.AuthIdentity = url, "other" })}, nil, gate.Enforce)
			}
			d, err := b.Diff("mcp_mail_send")
			if err != nil {
				t.Fatal(err)
			}
			got := d.String()
			if *update {
				for i, f := range a.Files {
					if f.Name == "screen" {
						a.Files[i].Data = []byte(got)
					}
				}
				if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != parts["screen"] {
				t.Errorf("got:\n%s\nwant:\n%s", got, parts["screen"])
			}
			for _, l := range strings.Split(got, "\n") {
				if n := utf8.RuneCountInString(l); n > 80 {
					t.Errorf("a line has %d characters: %q", n, l)
				}
			}
		})
	}
}

func TestDiffWithoutAnythingToCompare(t *testing.T) {
	b := open(t, newMemory(), server("mail"))
	b.take("mail", tool("send", ""))
	for name, part := range map[gate.LocalName]string{"mcp_mail_send": "nobody enabled it", "gatehouse_find": "our own tool"} {
		if d, err := b.Diff(name); err != nil || !strings.Contains(d.String(), part) || d.Changes == nil {
			t.Errorf("%s: %q, %v", name, d, err)
		}
	}
	if _, err := b.Diff("mcp_mail_nope"); err == nil {
		t.Error("a tool that does not exist has a difference")
	}
}
