package wire

import (
	"encoding/base64"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"
)

func TestCheckHeaderName(t *testing.T) {
	for _, name := range strings.Fields("azAZ09 X-Api-Key x_api_key Api-Key Token Private-Token X-Mcp a !#$%&'*+-.^_`|~") {
		if err := CheckHeaderName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	bad := strings.Fields("Authorization AUTHORIZATION Host host Content-Length Cookie Connection Keep-Alive Proxy-Connection Proxy-Authorization " +
		"Proxy-Authenticate TE Trailer Transfer-Encoding Upgrade Mcp-Session-Id mcp-name MCP-Protocol-Version Mcp- Content-Type Accept Accept-Encoding " +
		"Content-Encoding Expect X:Y X(Y X/Y X@Y X[Y X]Y X{Y X}Y Ä X\x7f")
	for _, name := range append(bad, "", " X", "X ", "X\r\nY", "X\x00") {
		if err := CheckHeaderName(name); err == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

func TestCheckHeaderValue(t *testing.T) {
	for _, value := range []string{"K", "a b", "a\tb", "é", strings.Repeat("a", 8192)} {
		if err := CheckHeaderValue(value); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
	for _, value := range []string{"", "SECRET\r\nX: y", "SECRET\n", "SECRET\x00", "SECRET\x7f", "\x1bSECRET", "SECRET\x1f"} {
		if err := CheckHeaderValue(value); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v, want an error that does not quote it", value, err)
		}
	}
}

func TestEncodeHeaderValue(t *testing.T) {
	for value, want := range map[string]string{
		"search":        "search",
		"~":             "~",
		"two words":     "two words",
		"a\tb":          "a\tb",
		"":              "",
		"=?base64?":     "=?base64?",
		"?=":            "?=",
		" leading":      "=?base64?IGxlYWRpbmc=?=",
		"trailing\t":    "=?base64?dHJhaWxpbmcJ?=",
		"größe":         "=?base64?Z3LDtsOfZQ==?=",
		"a\nb":          "=?base64?YQpi?=",
		"x":             "x",
		"\x1f":          "=?base64?Hw==?=",
		"\x7f":          "=?base64?fw==?=",
		"=?base64?eA?=": "=?base64?PT9iYXNlNjQ/ZUE/PQ==?=",
		"=?base64??=":   "=?base64?PT9iYXNlNjQ/Pz0=?=",
		"=?BASE64?eA?=": "=?BASE64?eA?=",
		"\ta":           "=?base64?CWE=?=",
		"a ":            "=?base64?YSA=?=",
	} {
		if got := EncodeHeaderValue(value); got != want {
			t.Errorf("EncodeHeaderValue(%q) = %q, want %q", value, got, want)
		}
	}
}

// FuzzEncodeHeaderValue: what is sent is visible ASCII, space and tab, has no
// outer white space, and says the value to a server that decodes it by the
// specification, mcp-go's among them.
func FuzzEncodeHeaderValue(f *testing.F) {
	for _, seed := range []string{"search", "größe", " x", "x\t", "=?base64?eA?=", "=?base64?", "a\r\nb", "\xff", "", "\x7f", "=?BASE64?eA?="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		sent := EncodeHeaderValue(value)
		for i := range len(sent) {
			if c := sent[i]; c != '\t' && (c < ' ' || c > '~') {
				t.Fatalf("%q is sent as %q", value, sent)
			}
		}
		if sent != strings.Trim(sent, " \t") {
			t.Fatalf("%q is sent as %q", value, sent)
		}
		got := sent
		if in, ok := strings.CutPrefix(sent, "=?base64?"); ok {
			if in, ok = strings.CutSuffix(in, "?="); ok {
				decoded, err := base64.StdEncoding.DecodeString(in)
				if err != nil {
					t.Fatalf("%q is sent as %q: %v", value, sent, err)
				}
				got = string(decoded)
			}
		}
		if got != value {
			t.Fatalf("%q is sent as %q, which says %q", value, sent, got)
		}
		if theirs, ok := mcp.DecodeHeaderValue(sent); !ok || theirs != value {
			t.Fatalf("%q is sent as %q, which mcp-go reads as %q, %t", value, sent, theirs, ok)
		}
	})
}

func TestClip(t *testing.T) {
	long := strings.Repeat("ä", 300)
	for text, want := range map[string]string{
		"":                               "",
		"plain text":                     "plain text",
		"a  b":                           "a  b",
		"a\r\nb\x00\x1b[31mc":            "a b [31mc",
		"\n a \t":                        "a",
		"a\u202eb\u2066c\u200bd":         "a b c d",
		"a\u0085b\u2028c\u2029d":         "a b c d",
		"a\xffb":                         "a\ufffdb",
		long:                             strings.Repeat("ä", 200),
		strings.Repeat("a", 199) + "\nb": strings.Repeat("a", 199) + "b",
		strings.Repeat("a", 198) + "\nb": strings.Repeat("a", 198) + " b",
		strings.Repeat("a", 120) + "\nb": strings.Repeat("a", 120) + " b",
		strings.Repeat("\n", 100000):     "",
		"\U000E0041tag":                  "tag",
	} {
		if got := Clip(text); got != want {
			t.Errorf("Clip(%.40q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("a\nb\u202e\xff ")
	f.Fuzz(func(t *testing.T, text string) {
		got := Clip(text)
		if utf8.RuneCountInString(got) > clipLength || got != strings.TrimSpace(got) || !utf8.ValidString(got) {
			t.Fatalf("%q is clipped to %q", text, got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Fatalf("%q is clipped to %q", text, got)
		}
		if again := Clip(got); again != got {
			t.Fatalf("%q is clipped to %q and then to %q", text, got, again)
		}
	})
}
