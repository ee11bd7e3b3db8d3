package clientfile

import (
	"bytes"
	"errors"
)

// plainJSON blanks out comments and trailing commas. Bytes keep their places, so
// that a mistake is told where it stands. What is within strings stays.
func plainJSON(data []byte) ([]byte, error) {
	data = bytes.Clone(bytes.TrimPrefix(data, []byte{0xef, 0xbb, 0xbf}))
	comma := -1 // a comma after which nothing but space and comments came
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			comma = -1
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(data[i:], []byte("//")):
			for ; i < len(data) && data[i] != '\n'; i++ {
				data[i] = ' '
			}
		case bytes.HasPrefix(data[i:], []byte("/*")):
			end := bytes.Index(data[i+2:], []byte("*/"))
			if end < 0 {
				return nil, errors.New("a comment is not closed")
			}
			for end += i + 4; i < end; i++ {
				if data[i] != '\n' {
					data[i] = ' '
				}
			}
			i--
		case c == ',':
			comma = i
		case c == '}' || c == ']':
			if comma >= 0 {
				data[comma] = ' '
			}
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
	}
	return data, nil
}
