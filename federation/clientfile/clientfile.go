// Package clientfile reads the file in which an MCP client keeps its servers
// (Claude Desktop, Claude Code, Cursor, VS Code, Windsurf) and writes the same
// servers as TOML tables of ours.
//
// What is not ours to run is named with its reason. A literal secret goes
// nowhere but to whoever asks for it by name: it is in no table, comment, note
// or error.
package clientfile

import (
	"errors"
	"fmt"
	"strings"

	"gatehouse/gate/rawjson"
)

// A File is what a client's file holds.
type File struct {
	Servers []Server
	Left    []Left
}

// A Server is one entry that was taken over.
type Server struct {
	ID      string // valid, and unique in the file
	Name    string // what the client calls it
	URL     string
	Enabled bool
	Auth    Auth
	Notes   []string // what somebody should know
}

// An Auth says how the client authenticates. The zero value: not at all, or by
// a login of its own.
type Auth struct {
	Header    string // "" with a bearer token
	Reference string // "env:NAME" or "vault:name"; "" with no credential
	Secret    Secret // what belongs into the vault under that name, when the file has it
}

// A Left is one entry that was not taken, and why.
type Left struct{ Name, Reason string }

// A Secret is a literal that the file holds. It does not print.
type Secret struct {
	Name  string // in the vault; "" is no secret
	value string // "" when the client asks a person for it
}

// Value is the literal, for whoever puts it into the vault; ok is false when the
// file does not have it.
func (s Secret) Value() (value string, ok bool) { return s.value, s.value != "" }

// String implements fmt.Stringer, so that a secret that is printed by mistake is not.
func (s Secret) String() string { return "[secret]" }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return "[secret]" }

// Format implements fmt.Formatter: no verb shows the value.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// ErrNoServers says that a file is JSON without a list of servers that we know.
var ErrNoServers = errors.New(`no "mcpServers" and no "servers" in it; is this a client's MCP configuration?`)

// Parse reads a client's file. Comments and trailing commas are taken in all of
// them, since several of these clients take them.
func Parse(data []byte) (*File, error) {
	data, err := plainJSON(data)
	if err != nil {
		return nil, err
	}
	root, err := rawjson.Object(data)
	if err != nil {
		return nil, fault(err)
	}
	lists, err := serverLists(root)
	if err != nil {
		return nil, err
	}
	f := &File{}
	ids := map[string]bool{}
	for _, list := range lists {
		entries, err := rawjson.Object(list)
		if err != nil {
			return nil, fault(err)
		}
		for _, e := range entries {
			f.add(e.Key, e.Value, ids)
		}
	}
	return f, nil
}

// fault keeps the place of a mistake and not what is written there.
func fault(err error) error {
	if where, ok := errors.AsType[*rawjson.Error](err); ok {
		return fmt.Errorf("not valid JSON at byte %d", where.Offset)
	}
	return errors.New("not valid JSON")
}

// serverLists finds the objects that list servers: mcpServers (Claude, Cursor,
// Windsurf, and in Claude Code's own file once more for each project), servers
// (VS Code's mcp.json) or mcp.servers (VS Code's settings).
func serverLists(root []rawjson.Member) (lists [][]byte, err error) {
	add := func(members []rawjson.Member, key string) {
		if list, ok := rawjson.Get(members, key); ok && rawjson.IsObject(list) {
			lists = append(lists, list)
		}
	}
	add(root, "mcpServers")
	add(root, "servers")
	add(rawjson.GetObject(root, "mcp"), "servers")
	for _, project := range rawjson.GetObject(root, "projects") {
		if members, err := rawjson.Object(project.Value); err == nil {
			add(members, "mcpServers")
		}
	}
	if lists == nil {
		return nil, ErrNoServers
	}
	return lists, nil
}

func flag(members []rawjson.Member, key string) bool {
	raw, _ := rawjson.Get(members, key)
	return string(raw) == "true"
}

// SecretNamed returns the literal that belongs into the vault under name.
func (f *File) SecretNamed(name string) (string, bool) {
	for i := range f.Servers {
		if s := f.Servers[i].Auth.Secret; s.Name == name && name != "" {
			return s.Value()
		}
	}
	return "", false
}

// clean keeps foreign text on one line of a terminal or of a comment.
func clean(s string) string {
	s = strings.Join(strings.FieldsFunc(s, unprintable), " ")
	if r := []rune(s); len(r) > 160 {
		s = string(r[:160]) + "…"
	}
	return s
}
