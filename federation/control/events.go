package control

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one event of our own daemon: a result of the largest
// allowed size and its envelope.
const maxEvent = 32 << 20

// Events passes the data of each event in an event stream to f, until the
// stream ends or f returns an error, which is returned. It reads what our own
// daemon writes; the strict reading of other people's streams is elsewhere.
func Events(stream io.Reader, f func(data []byte) error) error {
	r := bufio.NewReader(stream)
	var data []byte
	for {
		line, err := line(r, maxEvent)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch value, isData := bytes.CutPrefix(line, []byte("data:")); {
		case len(line) == 0:
			if data != nil {
				if err := f(data); err != nil {
					return err
				}
			}
			data = nil
		case isData:
			value = bytes.TrimPrefix(value, []byte(" "))
			if data != nil {
				data = append(data, '\n')
			}
			if len(data)+len(value) > maxEvent {
				return errTooLong
			}
			data = append(data, value...)
		}
	}
}

var errTooLong = errors.New("a line is too long")

// line reads up to the next line feed, without it and a carriage return before
// it. What the stream ends with counts as a line.
func line(r *bufio.Reader, limit int) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case len(out) > limit:
			return nil, errTooLong
		case err == nil:
			return bytes.TrimSuffix(out[:len(out)-1], []byte("\r")), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out, nil
		default:
			return nil, err
		}
	}
}
