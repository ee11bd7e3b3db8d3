package wire

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents reads a stream to its end.
func readEvents(src io.Reader) ([]string, error) {
	r := &eventReader{}
	r.reset(src)
	var events []string
	for {
		data, err := r.next()
		if err != nil {
			return events, err
		}
		events = append(events, string(data))
	}
}

// eventsSlowly reads a whole stream by the rules of the specification, line by
// line over normalised line ends.
func eventsSlowly(text string) []string {
	text = strings.TrimPrefix(text, "\xEF\xBB\xBF")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	var events, data []string
	kind := ""
	dispatch := func() {
		if joined := strings.Join(data, "\n"); joined != "" && (kind == "" || kind == "message") {
			events = append(events, joined)
		}
		data, kind = nil, ""
	}
	for _, line := range strings.Split(text, "\n") {
		if line == "" {
			dispatch()
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			data = append(data, value)
		case "event":
			kind = value
		}
	}
	dispatch() // the last event counts without its blank line
	return events
}

var streamSeeds = []string{
	"data: a\n\n", "data: a\r\n\r\ndata:b\r\rdata:  c\n\n", "\xEF\xBB\xBFdata: a\n\n", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", "\xEF\xBB", "",
	"data\n\ndata:\n\ndata:\ndata:\n\n", ": comment\nevent: ping\ndata: x\n\nevent: message\ndata: y\n\nevent\ndata: z", "data: a\ndata: b\n", "\r\n\r\r\n\n",
	"data: a\r", "data: a\r\n\rdata: b\r\n", "id: 1\nretry: 5\nData: x\n data: y\ndata : z\ndata: w\n\n", "event: a\nevent: message\ndata: x\n\n",
}

// FuzzEvents: any cut of the same bytes gives the same events, and they are the
// ones of the slow reading.
func FuzzEvents(f *testing.F) {
	for _, seed := range streamSeeds {
		f.Add(seed, []byte{1})
		f.Add(seed, []byte{2, 1, 5})
	}
	f.Fuzz(func(t *testing.T, text string, cuts []byte) {
		want := eventsSlowly(text)
		for name, src := range map[string]io.Reader{
			"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
			"with its end": iotest.DataErrReader(strings.NewReader(text)), "in pieces": &pieces{text: text, cuts: cuts},
		} {
			got, err := readEvents(src)
			if err != io.EOF || !slices.Equal(got, want) {
				t.Errorf("%q %s: %q, %v; want %q", text, name, got, err, want)
			}
		}
	})
}

// pieces hands out a text in pieces of the given lengths, over and over.
type pieces struct {
	text string
	cuts []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	size := 1
	if len(p.cuts) > 0 {
		size = int(p.cuts[p.n%len(p.cuts)]) // an empty read is a read
		p.n++
		if p.n > 4*len(p.cuts) {
			size = max(size, 1)
		}
	}
	n := copy(b, p.text[:min(size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

// An event that the end of the source has cut does not count when the end is a
// broken one.
func TestBrokenStreamDropsTheLastEvent(t *testing.T) {
	broken := errors.New("reset")
	got, err := readEvents(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !slices.Equal(got, []string{"a"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// Long lines cost time in proportion to their length, whatever the chunks.
func TestC05_LongLineIsScannedOnce(t *testing.T) {
	text := "data: " + strings.Repeat("a", 1<<20) + "\n\n"
	got, err := readEvents(&pieces{text: text, cuts: []byte{64}})
	if err != io.EOF || len(got) != 1 || len(got[0]) != 1<<20 {
		t.Errorf("got %d events, %v", len(got), err)
	}
}

// A reader that has grown large is not kept.
func TestLargeReadersAreNotKept(t *testing.T) {
	r := &eventReader{buf: make([]byte, 0, keptEventBytes+1)}
	r.src = strings.NewReader("")
	r.release()
	if r.src == nil {
		t.Error("a reader with a large buffer was made ready for reuse")
	}
	r = &eventReader{src: strings.NewReader(""), data: make([]byte, 0, keptEventBytes+1)}
	r.release()
	if r.src == nil {
		t.Error("a reader with large data was made ready for reuse")
	}
	r = &eventReader{src: strings.NewReader("")}
	r.release()
	if r.src != nil {
		t.Error("a small reader was not made ready for reuse")
	}
}
