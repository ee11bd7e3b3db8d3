package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"gatehouse/upstream/credential"
)

func TestCheckSecrets(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	identity := filepath.Join(dir, "vault.key")
	for path, mode := range map[string]os.FileMode{open: 0o644, identity: 0o600} {
		if err := os.WriteFile(path, []byte("# made by hand\nhunter2\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	c := mustParse(t, `
[vault]
identity = "file:`+identity+`"
[[caller]]
name = "unset"
token = "env:UNSET"
[[caller]]
name = "good"
token = "env:GOOD"
[[server]]
id = "empty"
url = "https://docs.example.org/mcp"
data_class = "public_content"
auth = { mode = "bearer", credential = "env:EMPTY" }
[[server]]
id = "broken"
url = "https://docs.example.org/mcp"
data_class = "public_content"
auth = { mode = "header", header = "X-Key", credential = "env:BROKEN" }
[[server]]
id = "file"
url = "https://docs.example.org/mcp"
data_class = "public_content"
auth = { mode = "bearer", credential = "file:`+open+`" }
`)
	environment := map[string]string{"GOOD": "hunter2", "EMPTY": "", "BROKEN": "hunter2\nX: y"}
	secrets := &credential.Resolver{LookupEnv: func(name string) (string, bool) { v, ok := environment[name]; return v, ok }}
	got := c.CheckSecrets(t.Context(), secrets)
	want := `gatehouse.toml:6: caller "unset": token: env:UNSET: the variable UNSET is not set
gatehouse.toml:14: server "empty": auth: credential: env:EMPTY: the variable EMPTY is empty
gatehouse.toml:19: server "broken": auth: credential: env:BROKEN: holds a line end or another control character, which no header can carry
gatehouse.toml:24: server "file": auth: credential: file:` + open + `: has mode 0644, open to others; chmod 600 ` + open
	if got.Error() != want {
		t.Errorf("problems:\n got %s\nwant %s", got.Error(), want)
	}
	if strings.Contains(got.Error(), "hunter2") {
		t.Error("a secret is in the messages")
	}
	if n := len(c.References()); n != 6 {
		t.Errorf("%d references, want 6", n)
	}
}

// A Secret that ends up in a TOML file by mistake stays one.
func TestSecretInTOML(t *testing.T) {
	out, err := toml.Marshal(struct{ Token credential.Secret }{credential.SecretString("hunter2")})
	if err != nil || string(out) != "Token = \"[secret]\"\n" {
		t.Errorf("encoded as %s, %v", out, err)
	}
}

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, problems := Parse(filepath.Join(dir, "gatehouse.toml"), []byte(`
[[caller]]
name = "a"
token = "env:A"
[[server]]
id = "docs"
url = "https://docs.example.org/mcp"
data_class = "public_content"
ca_file = "ca.pem"
client_cert = "crt.pem"
client_key = "ca.pem"
`))
	if c == nil {
		t.Fatal(problems)
	}
	got := c.CheckFiles()
	want := `gatehouse.toml:5: server "docs": client_cert: ` + filepath.Join(dir, "crt.pem") + `: no such file or directory`
	if got.Error() != want {
		t.Errorf("problems:\n got %s\nwant %s", got.Error(), want)
	}
}
