package gate

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What of the arguments is shown. Bytes and lines are both bounded, so that
// nothing can push the rest of the question out of sight; lines are broken before
// a window would break them, so that every line begins with our own mark.
const (
	shownBytes  = 4096
	shownLines  = 160
	lineWidth   = 88
	lineMark    = "| "
	brokenMark  = "\\ " // goes on from the line above
	deepest     = 16    // levels of indentation
	combiningAt = 2     // combining marks in a row before they are escaped
)

// message is the text of a question. Everything that is not ours is quoted and
// escaped: names from the server and the configuration in double quotes, the
// arguments in lines that each begin with a mark.
func (r *request) message(s sealed) string {
	t, c := r.Tool, r.caller
	var b strings.Builder
	fmt.Fprintf(&b, "Approve this tool call? Nothing is sent unless the decision is \"approve\".\n\n")
	if t.Own {
		fmt.Fprintf(&b, "Tool: %s, of Gatehouse itself\n", t.Name)
	} else {
		fmt.Fprintf(&b, "Tool: %s\n", t.Name)
		fmt.Fprintf(&b, "Name on its server: %s\n", quote(string(t.Remote), 200))
		fmt.Fprintf(&b, "Server: %s at %s\n", quote(t.ServerName, 100), plainOrigin(t.Origin))
	}
	fmt.Fprintf(&b, "Data class: %s\n", t.Class)
	fmt.Fprintf(&b, "Caller: %s; the result travels to zone %s\n", quote(string(c.Name), 200), c.Zone)
	fmt.Fprintf(&b, "Question %d, to be answered by %s\n\n", s.question, clockText(s.until))
	text, shown := renderArguments(r.raw)
	left := len(r.raw) - shown
	if left > 0 {
		fmt.Fprintf(&b, "Arguments, the first %d of %d bytes; %d BYTES ARE NOT SHOWN. SHA-256 of all: %s\n",
			shown, len(r.raw), left, DigestOf(r.raw))
	} else {
		fmt.Fprintf(&b, "Arguments, all %d bytes. SHA-256: %s\n", len(r.raw), DigestOf(r.raw))
	}
	b.WriteString(text)
	if left > 0 {
		fmt.Fprintf(&b, "End of the arguments, of which %d BYTES ARE NOT SHOWN.\n", left)
	} else {
		b.WriteString("End of the arguments.\n")
	}
	return b.String()
}

// plainOrigin shows where the call goes. It comes from a parsed url, so quoting
// is for the case that somebody made it otherwise.
func plainOrigin(origin string) string {
	if origin == "" {
		return "an unknown address"
	}
	return quote(origin, 300)
}

// quote writes s in double quotes on one line, with everything escaped that
// does not show as itself. What is left out is counted outside the quotes.
func quote(s string, limit int) string {
	var b strings.Builder
	b.WriteByte('"')
	marks, cut := 0, len(s)
	for i := 0; i < len(s); {
		if i >= limit {
			cut = i
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		marks = countMarks(marks, r)
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteString(showRune(s[i:i+size], r, marks))
		}
		i += size
	}
	b.WriteByte('"')
	if cut < len(s) {
		fmt.Fprintf(&b, " and %d more bytes", len(s)-cut)
	}
	return b.String()
}

// showRune returns what stands for r on a page, given how many combining marks
// stand in a row up to it. raw is how r is written.
func showRune(raw string, r rune, marks int) string {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Sprintf(`\x%02x`, raw[0])
	case visible(r) && marks <= combiningAt:
		return raw
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
	return fmt.Sprintf(`\u%04x\u%04x`, high, low)
}

func countMarks(before int, r rune) int {
	if unicode.Is(unicode.M, r) {
		return before + 1
	}
	return 0
}

// A page is arguments being laid out. It works on the bytes that are sent, so
// numbers keep their digits, keys their order, and escapes stay as they are.
type page struct {
	strings.Builder
	bytes, lines, column int
}

// renderArguments lays out raw and returns how many of its bytes that shows.
func renderArguments(raw []byte) (text string, shown int) {
	p := &page{}
	p.newLine(0)
	depth, marks, inString := 0, 0, false
	for i := skipSpace(raw, 0); i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		token := string(raw[i : i+size])
		if inString {
			marks = countMarks(marks, r)
			if r == '\\' && i+1 < len(raw) && raw[i+1] < utf8.RuneSelf && visible(rune(raw[i+1])) {
				size = escapeSize(raw[i:])
				token = string(raw[i : i+size])
			} else {
				inString = r != '"'
				token = showRune(token, r, marks)
			}
			if !p.add(token) {
				return p.close(), i
			}
			i += size
			continue
		}
		next := skipSpace(raw, i+size)
		ok := true
		switch r {
		case '{', '[':
			ok = p.add(token)
			if next < len(raw) && (raw[next] == '}' || raw[next] == ']') {
				ok = ok && p.add(string(raw[next]))
				next = skipSpace(raw, next+1)
			} else {
				depth++
				ok = ok && p.newLine(depth)
			}
		case '}', ']':
			depth--
			ok = p.newLine(depth) && p.add(token)
		case ',':
			ok = p.add(token) && p.newLine(depth)
		case ':':
			ok = p.add(": ")
		default:
			inString, marks = r == '"', 0
			if inString {
				next = i + size // white space inside belongs to the string
			}
			ok = p.add(showRune(token, r, countMarks(0, r)))
		}
		if !ok {
			return p.close(), i
		}
		i = next
	}
	return p.close(), len(raw)
}

// escapeSize is the length of the escape sequence at the start of b.
func escapeSize(b []byte) int {
	if len(b) >= 6 && b[1] == 'u' {
		if _, err := strconv.ParseUint(string(b[2:6]), 16, 16); err == nil {
			return 6
		}
	}
	return 2
}

// add puts a token on the page, on the next line if this one is full. It
// reports false, and adds nothing, when the page is full.
func (p *page) add(token string) bool {
	width := 0
	for _, r := range token {
		width += runeWidth(r)
	}
	if p.bytes+len(token) > shownBytes {
		return false
	}
	if p.column+width > lineWidth {
		if p.lines >= shownLines {
			return false
		}
		p.WriteString("\n" + brokenMark)
		p.lines++
		p.column = 0
	}
	p.bytes += len(token)
	p.column += width
	p.WriteString(token)
	return true
}

// newLine begins a line of the layout.
func (p *page) newLine(depth int) bool {
	if p.lines >= shownLines {
		return false
	}
	if p.lines > 0 {
		p.WriteByte('\n')
	}
	p.lines++
	indent := 2 * max(0, min(depth, deepest))
	p.WriteString(lineMark + strings.Repeat(" ", indent))
	p.column = indent
	return true
}

func (p *page) close() string {
	p.WriteByte('\n')
	return p.String()
}

// runeWidth counts what may be as wide as two letters as two.
func runeWidth(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}
