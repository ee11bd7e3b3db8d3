package clientfile

import (
	"fmt"
	"strings"
	"unicode"
)

// TOML is the servers as tables for our configuration. The data class of each is
// left for the operator: it has no default, and without it nothing is supplied.
func (f *File) TOML() string {
	var b strings.Builder
	for i := range f.Servers {
		if i > 0 {
			b.WriteByte('\n')
		}
		f.Servers[i].write(&b)
	}
	for i, l := range f.Left {
		if i == 0 && len(f.Servers) > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "# not taken: %q: %s\n", l.Name, l.Reason)
	}
	return b.String()
}

func (s *Server) write(b *strings.Builder) {
	for _, note := range s.Notes {
		fmt.Fprintf(b, "# %s: %s\n", s.ID, note)
	}
	b.WriteString("[[server]]\n")
	fmt.Fprintf(b, "id         = %s\n", quote(s.ID))
	if s.Name != s.ID && nameFits(s.Name) {
		fmt.Fprintf(b, "name       = %s\n", quote(s.Name))
	}
	fmt.Fprintf(b, "url        = %s\n", quote(s.URL))
	if !s.Enabled {
		b.WriteString("enabled    = false\n")
	}
	b.WriteString("# data_class = \"\"   # how sensitive its data is; see config.example.toml\n")
	if s.Auth.Reference == "" {
		return
	}
	b.WriteString("[server.auth]\n")
	if s.Auth.Header == "" {
		b.WriteString("mode       = \"bearer\"\n")
	} else {
		fmt.Fprintf(b, "mode       = \"header\"\nheader     = %s\n", quote(s.Auth.Header))
	}
	fmt.Fprintf(b, "credential = %s\n", quote(s.Auth.Reference))
}

// nameFits reports whether our configuration takes s as a server's name.
func nameFits(s string) bool {
	return strings.TrimSpace(s) != "" && len(s) <= 128 &&
		!strings.ContainsFunc(s, func(r rune) bool { return r == '"' || !unicode.IsPrint(r) })
}

// quote writes a basic string of TOML. Everything it is given is printable.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
