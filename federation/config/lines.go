package config

import (
	"strconv"
	"strings"
)

// lines tells on which line the value of a path begins. The TOML library gives
// positions for syntax errors only, and an operator with forty servers needs
// one for every other mistake as well.
type lines map[string]int

// A path joins keys and, for elements of arrays, their index.
type path string

func (p path) key(k string) path { return p + path("\x00"+k) }
func (p path) index(i int) path  { return p + path("\x00#"+strconv.Itoa(i)) }

// of returns the line of p, or of the nearest table around it.
func (l lines) of(p path) int {
	for {
		if n, ok := l[string(p)]; ok {
			return n
		}
		i := strings.LastIndexByte(string(p), 0)
		if i < 0 {
			return 0
		}
		p = p[:i]
	}
}

// indexLines walks text that the TOML parser has accepted, so it may be lenient
// about everything but where keys, strings and brackets begin and end.
func indexLines(text []byte) lines {
	s := &scanner{text: text, line: 1, at: lines{}, elements: map[path]int{}}
	var table path
	for s.blank(true); s.pos < len(s.text); s.blank(true) {
		if s.peek() == '[' {
			table = s.header()
			continue
		}
		s.pair(table)
	}
	return s.at
}

type scanner struct {
	text     []byte
	pos      int
	line     int
	at       lines
	elements map[path]int // array of tables -> how many elements so far
}

func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) next() byte {
	c := s.peek()
	if c == '\n' {
		s.line++
	}
	s.pos++
	return c
}

// blank skips spaces and, when lineEnds is set, line ends and comments.
func (s *scanner) blank(lineEnds bool) {
	for s.pos < len(s.text) {
		switch c := s.peek(); {
		case c == ' ', c == '\t', lineEnds && (c == '\n' || c == '\r'):
			s.next()
		case lineEnds && c == '#':
			for s.pos < len(s.text) && s.peek() != '\n' {
				s.next()
			}
		default:
			return
		}
	}
}

// header reads [a.b] or [[a.b]] and returns the table that it opens.
func (s *scanner) header() path {
	line := s.line
	s.next()
	array := s.peek() == '['
	if array {
		s.next()
	}
	keys := s.keys()
	for s.peek() == ']' {
		s.next()
	}
	var p path
	for i, k := range keys {
		p = p.key(k)
		n, isArray := s.elements[p]
		switch {
		case array && i == len(keys)-1:
			s.elements[p] = n + 1
			s.mark(p, line)
			p = p.index(n)
		case isArray:
			p = p.index(n - 1)
		}
		s.mark(p, line)
	}
	return p
}

func (s *scanner) mark(p path, line int) {
	if _, known := s.at[string(p)]; !known {
		s.at[string(p)] = line
	}
}

// pair reads one key = value inside table.
func (s *scanner) pair(table path) {
	line := s.line
	p := table
	for _, k := range s.keys() {
		p = p.key(k)
		s.mark(p, line)
	}
	if s.peek() == '=' {
		s.next()
	}
	s.blank(false)
	s.value(p)
}

// keys reads a dotted key and the space behind it.
func (s *scanner) keys() []string {
	var keys []string
	for {
		s.blank(false)
		switch c := s.peek(); c {
		case '"', '\'':
			keys = append(keys, s.quoted())
		default:
			from := s.pos
			for s.pos < len(s.text) && !strings.ContainsRune(" \t\r\n.=]#", rune(s.peek())) {
				s.next()
			}
			keys = append(keys, string(s.text[from:s.pos]))
		}
		s.blank(false)
		if s.peek() != '.' {
			if s.pos < len(s.text) && s.peek() != '=' && s.peek() != ']' {
				s.next() // whatever it is, do not stand still
			}
			return keys
		}
		s.next()
	}
}

func (s *scanner) value(p path) {
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.next()
		for i := 0; ; i++ {
			if !s.another(']') {
				return
			}
			s.mark(p.index(i), s.line)
			s.value(p.index(i))
		}
	case '{':
		s.next()
		for s.another('}') {
			s.pair(p)
		}
	default:
		for s.pos < len(s.text) && !strings.ContainsRune(",]}\n#", rune(s.peek())) {
			s.next()
		}
	}
}

// another moves to the next element of a bracket, or past its end.
func (s *scanner) another(end byte) bool {
	for s.blank(true); s.peek() == ','; s.blank(true) {
		s.next()
	}
	if s.pos >= len(s.text) || s.peek() == end {
		s.next()
		return false
	}
	return true
}

// quoted reads a string of any of the four kinds and returns what it says, as
// far as a key can need it.
func (s *scanner) quoted() string {
	from := s.pos
	quote := s.next()
	long := string([]byte{quote, quote, quote})
	if strings.HasPrefix(string(s.text[from:min(from+3, len(s.text))]), long) {
		s.next()
		s.next()
		for s.pos < len(s.text) && !strings.HasPrefix(string(s.text[s.pos:min(s.pos+3, len(s.text))]), long) {
			if s.next() == '\\' && quote == '"' {
				s.next()
			}
		}
		for s.peek() == quote { // up to two quotes may stand before the closing three
			s.next()
		}
		return ""
	}
	for s.pos < len(s.text) && s.peek() != quote {
		if s.next() == '\\' && quote == '"' {
			s.next()
		}
	}
	s.next()
	raw := string(s.text[from:min(s.pos, len(s.text))])
	if quote == '"' {
		if text, err := strconv.Unquote(raw); err == nil {
			return text
		}
	}
	return strings.Trim(raw, string(quote))
}
