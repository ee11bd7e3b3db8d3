package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every attack in SECURITY.md names tests, and every test that it names exists:
// one that is renamed or removed takes the promise with it.
func TestSecurityNamesTestsThatExist(t *testing.T) {
	paper, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllSubmatch(source, -1) {
			there[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(paper), "## Known attacks")
	table, _, ended := strings.Cut(table, "\n## ")
	if !found || !ended {
		t.Fatal("there is no section on known attacks")
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	rows := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| attack ") {
			continue
		}
		rows++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("no test is named: %s", line)
		}
		for _, test := range tests {
			if !there[test[1]] {
				t.Errorf("%s does not exist: %s", test[1], line)
			}
		}
	}
	if rows < 13 {
		t.Errorf("%d attacks are listed", rows)
	}
}
