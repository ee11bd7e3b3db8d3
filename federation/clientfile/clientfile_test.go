package clientfile_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"gatehouse/federation/clientfile"
	"gatehouse/federation/config"
)

var update = flag.Bool("update", false, "write what is printed into the files")

// vault is what a configuration needs beside the tables.
const vault = "[vault]\nidentity = \"env:IDENTITY\"\n"

// classified sets every data class, as an operator would.
func classified(toml string) string {
	return strings.ReplaceAll(toml, `# data_class = ""`, `data_class = "public_content"`)
}

// TestClients reads a file of each client. What is printed is valid with a data
// class, and holds no literal: in these files every literal has "s3cr3t" in it.
func TestClients(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: no files", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 2 {
				t.Fatalf("%v: want two files", err)
			}
			f, err := clientfile.Parse(archive.Files[0].Data)
			if err != nil {
				t.Fatal(err)
			}
			got := f.TOML()
			for _, s := range f.Servers {
				if value, ok := s.Auth.Secret.Value(); ok {
					got += fmt.Sprintf("# secret %s has %d bytes\n", s.Auth.Secret.Name, len(value))
				}
			}
			if printed := got + fmt.Sprintf("%v %+v %#v %q", f, f.Servers, f.Servers, fmt.Sprint(f.Servers)); strings.Contains(printed, "s3cr3t") {
				t.Errorf("a literal is printed:\n%s", printed)
			}
			if cfg, problems := config.Parse("gatehouse.toml", []byte(vault+classified(f.TOML()))); cfg == nil {
				t.Errorf("not valid: %v\n%s", problems, got)
			} else if len(cfg.Servers) != len(f.Servers) {
				t.Errorf("%d servers, want %d", len(cfg.Servers), len(f.Servers))
			}
			if want := string(archive.Files[1].Data); got != want {
				if *update {
					archive.Files[1].Data = []byte(got)
					if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func one(t *testing.T, entry string) *clientfile.File {
	t.Helper()
	f, err := clientfile.Parse([]byte(`{"mcpServers":{"a b":` + entry + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCredentials is the table of what becomes of headers.
func TestCredentials(t *testing.T) {
	for _, test := range []struct{ headers, header, reference, secret string }{
		{`{}`, "", "", ""},
		{`{"Authorization":"Bearer s3cr3t"}`, "", "vault:a-b-token", "s3cr3t"},
		{`{"authorization":"bearer  s3cr3t "}`, "", "vault:a-b-token", "s3cr3t"},
		{`{"Authorization":"Bearer ${TOKEN}"}`, "", "env:TOKEN", ""},
		{`{"Authorization":"Bearer ${env:TOKEN}"}`, "", "env:TOKEN", ""},
		{`{"Authorization":"Bearer ${TOKEN:-s3cr3t}"}`, "", "env:TOKEN", ""},
		{`{"Authorization":"Bearer ${input:key}"}`, "", "vault:a-b-token", ""},
		{`{"Authorization":"Bearer x${TOKEN}"}`, "", "vault:a-b-token", ""},
		{`{"Authorization":"Basic s3cr3t"}`, "", "", ""},
		{`{"Authorization":"Basic s3cr3t","X-Api-Key":"k"}`, "X-Api-Key", "vault:a-b-token", "k"},
		{`{"X-Region":"eu","X-Api-Key":"k"}`, "X-Api-Key", "vault:a-b-token", "k"},
		{`{"X-Api-Key":"k","Authorization":"Bearer s3cr3t"}`, "", "vault:a-b-token", "s3cr3t"},
		{`{"X-Api-Key":"${env:KEY}"}`, "X-Api-Key", "env:KEY", ""},
		{`{"Cookie":"s3cr3t"}`, "", "", ""},
		{`{"Mcp-Session-Id":"s3cr3t"}`, "", "", ""},
		{`{"not a header":"s3cr3t"}`, "", "", ""},
		{`{"X-Api-Key":""}`, "", "", ""},
		{`{"X-Api-Key":7}`, "", "", ""},
	} {
		f := one(t, `{"url":"https://a.example.org/mcp","headers":`+test.headers+`}`)
		if len(f.Servers) != 1 {
			t.Errorf("%s: not taken: %v", test.headers, f.Left)
			continue
		}
		a := f.Servers[0].Auth
		value, _ := a.Secret.Value()
		if a.Header != test.header || a.Reference != test.reference || value != test.secret {
			t.Errorf("%s: header %q, reference %q, secret %q", test.headers, a.Header, a.Reference, value)
		}
		if named, _ := f.SecretNamed("a-b-token"); named != test.secret {
			t.Errorf("%s: by name %q", test.headers, named)
		}
		if strings.Contains(f.TOML(), "s3cr3t") {
			t.Errorf("%s: printed\n%s", test.headers, f.TOML())
		}
		if cfg, problems := config.Parse("x", []byte(vault+classified(f.TOML()))); cfg == nil {
			t.Errorf("%s: %v", test.headers, problems)
		}
	}
}

// TestLeft is the table of what is not taken, and of words in the reason.
func TestLeft(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command":"npx","args":["s3cr3t"],"env":{"TOKEN":"s3cr3t"}}`: "stdio",
		`{"type":"stdio","command":"npx"}`:                             "stdio",
		`{"type":"sse","url":"https://a.example.org/mcp"}`:             "HTTP+SSE",
		`{"url":"https://a.example.org/sse"}`:                          "HTTP+SSE",
		`{"serverUrl":"https://a.example.org/v1/sse/"}`:                "HTTP+SSE",
		`{"type":"ws","url":"https://a.example.org/mcp"}`:              `"ws"`,
		`{}`:  "neither a url nor a command",
		`[]`:  "not an object",
		`"x"`: "not an object",
		`{"url":"https://a.example.org/mcp","url":"https://b.example.org/mcp"}`: "all different",
		`{"url":"https://${HOST}/mcp"}`:                                         "variables",
		`{"url":"https://me:s3cr3t@a.example.org/mcp"}`:                         "user name or password",
		`{"url":"https://a.example.org/mcp?api_key=s3cr3t"}`:                    "query",
		`{"url":"https://a.example.org/mcp?k=s3cr3ts3cr3ts3cr3t"}`:              "query",
		`{"url":"ftp://a.example.org/mcp"}`:                                     "http or https",
		`{"url":"https://a.example.org/m cp"}`:                                  "http or https",
		`{"url":"https:///mcp"}`:                                                "http or https",
	} {
		f := one(t, entry)
		if len(f.Servers) != 0 || len(f.Left) != 1 || !strings.Contains(f.Left[0].Reason, want) || f.Left[0].Name != "a b" {
			t.Errorf("%s: taken %d, left %+v", entry, len(f.Servers), f.Left)
		}
		if strings.Contains(f.TOML(), "s3cr3t") {
			t.Errorf("%s: printed\n%s", entry, f.TOML())
		}
	}
}

// TestIDs: whatever the client calls a server, its id is valid and its own.
func TestIDs(t *testing.T) {
	long := strings.Repeat("long-", 12)
	names := []string{"plain", "Plain", "pl_ain", "pl ain", "--x--", "ünïcode", "日本", "", "gatehouse", "Gatehouse", long, long + "er", "a\nb", `q"q`, "plain-2", "plain"}
	var entries []string
	for i, n := range names[:len(names)-1] {
		entries = append(entries, fmt.Sprintf(`%q:{"url":"https://h%d.example.org/mcp"}`, n, i))
	}
	file := `{"mcpServers":{` + strings.Join(entries, ",") + `},"projects":{"/p":{"mcpServers":{"plain":{"url":"https://p.example.org/mcp"}}}}}`
	f, err := clientfile.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range f.Servers {
		got = append(got, s.ID)
	}
	want := []string{"plain", "plain-2", "pl-ain", "pl-ain-2", "x", "n-code", "server", "server-2", "gatehouse-2", "gatehouse-3",
		"long-long-long-long-long-long-lo", "long-long-long-long-long-long-2", "a-b", "q-q", "plain-2-2", "plain-3"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if cfg, problems := config.Parse("x", []byte(classified(f.TOML()))); cfg == nil || len(cfg.Servers) != len(names) {
		t.Errorf("%v", problems)
	}
}

// TestComments: what clients tolerate in their files is tolerated, and nothing
// in a string is taken for a comment.
func TestComments(t *testing.T) {
	f, err := clientfile.Parse([]byte("\xef\xbb\xbf// first\n{ /* second */ \"servers\": { // third\n" +
		`"a": {"url": "https://a.example.org/mcp//x/*y*/", "headers": {"X-Key": "\"// s3cr3t,}"},},` + "\n}, /**/ }\n// last"))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Servers) != 1 || f.Servers[0].URL != "https://a.example.org/mcp//x/*y*/" {
		t.Fatalf("got %+v", f)
	}
	if value, _ := f.SecretNamed("a-token"); value != `"// s3cr3t,}` {
		t.Errorf("the header became %q", value)
	}
}

func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		``:                               "not valid JSON",
		`{"mcpServers":`:                 "not valid JSON at byte 14",
		`{"mcpServers":{"s3cr3t" 1}}`:    "not valid JSON at byte",
		`{"mcpServers":{"a":{},"a":{}}}`: "not valid JSON at byte",
		`{} /* s3cr3t`:                   "not closed",
		`[]`:                             "not valid JSON",
		`{"mcpServers":[]}`:              clientfile.ErrNoServers.Error(),
		`{"other":{}}`:                   clientfile.ErrNoServers.Error(),
	} {
		_, err := clientfile.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := clientfile.Parse([]byte(`{}`)); !errors.Is(err, clientfile.ErrNoServers) {
		t.Errorf("got %v", err)
	}
}

// FuzzParse: any file at all, and nothing panics, and what is taken is valid.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"url":"https://a.example.org/mcp","headers":{"Authorization":"Bearer x"}}}}`))
	f.Add([]byte(`{"servers":{"a":{"type":"http","url":"http://127.0.0.1/"}, // x` + "\n}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := clientfile.Parse(data)
		if err != nil {
			return
		}
		cfg, problems := config.Parse("x", []byte(vault+classified(file.TOML())))
		if cfg == nil {
			t.Errorf("%v\n%s", problems, file.TOML())
		}
	})
}
