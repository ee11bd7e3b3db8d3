package wire

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite what the transcripts in testdata/wire expect")

// A transcript is one exchange as bytes. Its comment states the rule. The files:
//
//	call   what is asked of Do, a word and its value a line: method, params,
//	       notification, once, token, header, limit, timeout
//	reply  what the server answers: status line and header, a blank line, the
//	       body. The lines of the body are joined without anything between;
//	       \r \n \t \\ and \xNN stand for those bytes, <ID> for the id of the
//	       request, <PAD n> for n letters. With Transfer-Encoding: chunked each
//	       line is a chunk, and a last line (open) leaves the body unfinished
//	       until the client hangs up, (cut) drops the connection.
//	sent   the request as the server got it
//	want   what Do made of it
//
// -update rewrites sent and want.
type transcript struct {
	file    string
	archive *txtar.Archive
}

func (t *transcript) section(name string) string {
	for _, f := range t.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func (t *transcript) set(name, text string) {
	for i := range t.archive.Files {
		if t.archive.Files[i].Name == name {
			t.archive.Files[i].Data = []byte(text)
			return
		}
	}
	t.archive.Files = append(t.archive.Files, txtar.File{Name: name, Data: []byte(text)})
}

const transcripts = "../../testdata/wire/*.txtar"

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(transcripts)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts at %s (%v)", transcripts, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Errorf("%s does not state its rule", file)
			}
			tr := &transcript{file, archive}
			sent, want := tr.play(t, false)
			if *update {
				tr.set("sent", sent)
				tr.set("want", want)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if old := tr.section("sent"); sent != old {
				t.Errorf("sent:\n%s\nwant:\n%s", sent, old)
			}
			if old := tr.section("want"); want != old {
				t.Errorf("got:\n%s\nwant:\n%s", want, old)
			}
			if strings.Contains(tr.section("reply"), "Transfer-Encoding: chunked") {
				if _, again := tr.play(t, true); again != want {
					t.Errorf("byte by byte:\n%s\nat once:\n%s", again, want)
				}
			}
		})
	}
}

// play makes the exchange; in single bytes when asked to.
func (tr *transcript) play(t *testing.T, single bool) (sentText, want string) {
	call := tr.call(t)
	var progress []string
	call.request.Progress = func(params []byte) { progress = append(progress, string(params)) }
	head, lines := tr.reply(t)
	server := serveBytes(t, func(w net.Conn, _ int, r sent) bool {
		return playReply(w, strings.ReplaceAll(head, "<ID>", r.id), lines, r.id, single)
	})
	ctx, cancel := context.WithTimeout(t.Context(), call.timeout)
	defer cancel()
	e := endpoint(t, EndpointOptions{URL: server.url, MaxResponse: call.limit})
	reply, failure := doIn(t, ctx, e, call.request)
	requests := server.requests()
	if len(requests) != 1 {
		t.Fatalf("the server got %d requests, want 1", len(requests))
	}
	return showSent(requests[0]), hide(showOutcome(reply, failure, progress), server, requests[0].id)
}

var offset = regexp.MustCompile(`at byte \d+`)

// hide takes out what differs from run to run.
func hide(text string, s *bytesServer, id string) string {
	if id != "" {
		text = strings.ReplaceAll(text, id, "<ID>")
	}
	text = offset.ReplaceAllString(text, "at byte <N>") // ids have more digits in a longer run
	return strings.ReplaceAll(text, strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp"), "<HOST>")
}

type transcriptCall struct {
	request Request
	limit   int64
	timeout time.Duration
}

func (tr *transcript) call(t *testing.T) transcriptCall {
	c := transcriptCall{timeout: 5 * time.Second, request: Request{Header: http.Header{}}}
	for line := range strings.Lines(tr.section("call")) {
		word, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var err error
		switch word {
		case "method":
			c.request.Method = value
		case "params":
			c.request.Params = [][]byte{[]byte(value)}
		case "notification":
			c.request.Notification = true
		case "once":
			c.request.Once = true
		case "token":
			c.request.Token = value
		case "header":
			name, v, _ := strings.Cut(value, ": ")
			c.request.Header.Add(name, v)
		case "limit":
			c.limit, err = strconv.ParseInt(value, 10, 64)
		case "timeout":
			c.timeout, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("unknown word")
		}
		if err != nil {
			t.Fatalf("%s: call: %q: %v", tr.file, word, err)
		}
	}
	return c
}

func (tr *transcript) reply(t *testing.T) (head string, lines []string) {
	head, body, _ := strings.Cut(tr.section("reply"), "\n\n")
	head = strings.ReplaceAll(strings.TrimSuffix(head, "\n"), "\n", "\r\n")
	for line := range strings.Lines(body) {
		lines = append(lines, unescape(t, strings.TrimSuffix(line, "\n")))
	}
	return head, lines
}

func unescape(t *testing.T, s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'r':
			b.WriteByte('\r')
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\':
			b.WriteByte('\\')
		case 'x':
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				t.Fatalf("escape in %q: %v", s, err)
			}
			b.WriteByte(byte(n))
			i += 2
		default:
			t.Fatalf("unknown escape in %q", s)
		}
	}
	return b.String()
}

// fill puts the id and the padding into one line of a body.
func fill(line, id string) string {
	line = strings.ReplaceAll(line, "<ID>", id)
	before, rest, ok := strings.Cut(line, "<PAD ")
	if !ok {
		return line
	}
	number, after, _ := strings.Cut(rest, ">")
	n, _ := strconv.Atoi(number)
	return before + strings.Repeat("a", n) + after
}

// playReply writes a response and reports whether the connection stays open.
func playReply(w net.Conn, head string, lines []string, id string, single bool) bool {
	end := ""
	if n := len(lines); n > 0 && (lines[n-1] == "(open)" || lines[n-1] == "(cut)") {
		end, lines = lines[n-1], lines[:n-1]
	}
	var body []string
	for _, line := range lines {
		body = append(body, fill(line, id))
	}
	if !strings.Contains(head, "Transfer-Encoding: chunked") {
		text := strings.Join(body, "")
		if !strings.Contains(head, "Content-Length") {
			head += fmt.Sprintf("\r\nContent-Length: %d", len(text))
		}
		io.WriteString(w, head+"\r\n\r\n"+text)
		return end == ""
	}
	io.WriteString(w, head+"\r\n\r\n")
	for _, line := range body {
		if !single {
			chunk(w, line)
			continue
		}
		var b bytes.Buffer
		for _, c := range []byte(line) {
			chunk(&b, string([]byte{c}))
		}
		w.Write(b.Bytes())
	}
	switch end {
	case "(open)":
		return !untilClosed(w)
	case "(cut)":
		return false
	}
	io.WriteString(w, "0\r\n\r\n")
	return true
}

func showSent(r sent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.method, r.path)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		for _, v := range r.header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, v)
		}
	}
	text := r.body
	if r.id != "" {
		text = strings.ReplaceAll(text, r.id, "<ID>")
	}
	// The length differs with the number of digits in the id.
	return strings.Replace(b.String(), "Content-Length: "+strconv.Itoa(len(r.body)), "Content-Length: <LENGTH>", 1) +
		"\n" + text + "\n"
}

func showOutcome(reply *Reply, failure *Error, progress []string) string {
	var b strings.Builder
	for _, p := range progress {
		fmt.Fprintf(&b, "progress %s\n", p)
	}
	if failure == nil {
		fmt.Fprintf(&b, "accepted with status %d\n", reply.Status)
		if reply.Result != nil {
			fmt.Fprintf(&b, "result %s\n", reply.Result)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "refused as %s\n%s\n", failure.Kind, failure)
	if failure.Rule != "" {
		fmt.Fprintf(&b, "breaks the rule %s\n", failure.Rule)
	}
	if failure.Status != 0 {
		fmt.Fprintf(&b, "status %d\n", failure.Status)
	}
	fmt.Fprintf(&b, "may have arrived: %t\n", failure.Wrote)
	if failure.HasCode {
		fmt.Fprintf(&b, "code %d message %q data %s\n", failure.Code, failure.Message, failure.Data)
	}
	if failure.RetryAfter != 0 {
		fmt.Fprintf(&b, "retry after %s\n", failure.RetryAfter)
	}
	if failure.Challenge != "" {
		fmt.Fprintf(&b, "challenge %q\n", failure.Challenge)
	}
	if failure.Unanswered != "" {
		fmt.Fprintf(&b, "unanswered %q\n", failure.Unanswered)
	}
	return b.String()
}
