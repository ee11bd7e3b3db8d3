package upstream_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"

	"gatehouse/gate/gatetest"
	"gatehouse/upstream"
)

var update = flag.Bool("update", false, "rewrite what the transcripts in testdata/wire/operations expect")

// TestOperations plays whole operations. The parts of a file:
//
//	ask    what is asked for, a word and its value a line: test, list or call
//	       (tool, then arguments), protocol
//	reply  what the server answers to the next request, one part for each: the
//	       status, headers, a blank line, the body; <ID> stands for the request's id
//	sent   the requests as the server got them
//	want   what became of it
//
// -update rewrites sent and want.
func TestOperations(t *testing.T) {
	files, err := filepath.Glob("../testdata/wire/operations/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Error("it does not state its rule")
			}
			sent, want := playOperation(t, archive)
			if *update {
				archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "sent" || f.Name == "want" })
				archive.Files = append(archive.Files, txtar.File{Name: "sent", Data: []byte(sent)}, txtar.File{Name: "want", Data: []byte(want)})
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if old := strings.Join(parts(archive, "sent"), ""); sent != old {
				t.Errorf("sent:\n%s\nwant:\n%s", sent, old)
			}
			if old := strings.Join(parts(archive, "want"), ""); want != old {
				t.Errorf("got:\n%s\nwant:\n%s", want, old)
			}
		})
	}
}

func parts(a *txtar.Archive, name string) (texts []string) {
	for _, f := range a.Files {
		if f.Name == name {
			texts = append(texts, string(f.Data))
		}
	}
	return texts
}

var (
	requestID = regexp.MustCompile(`"id":"([^"]*)"`)
	seconds   = regexp.MustCompile(`\d+\.\ds`)
)

// playOperation runs one operation against the replies of the archive.
func playOperation(t *testing.T, archive *txtar.Archive) (sent, want string) {
	var mu sync.Mutex
	var got strings.Builder
	replies := parts(archive, "reply")
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		id := requestID.FindStringSubmatch(string(body))
		writeRequest(&got, r, string(body))
		if len(replies) == 0 {
			got.WriteString("(not foreseen)\n")
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		next := replies[0]
		replies = replies[1:]
		if id != nil {
			next = strings.ReplaceAll(next, "<ID>", id[1])
		}
		writeReply(w, next)
	}))
	t.Cleanup(site.Close)
	server := upstream.Server{ID: "crm", URL: site.URL + "/mcp"}
	var verb, value string
	for line := range strings.Lines(strings.Join(parts(archive, "ask"), "")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "protocol" {
			server.Protocol = rest
			continue
		}
		verb, value = word, rest
	}
	st := &store{}
	contacts := 0
	st.contact = func() { contacts++ }
	c := newClient(t, st, nil, server)
	want = perform(t, c, verb, value)
	if err := c.Close(t.Context()); err != nil { // the closing request is sent by then
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(replies) > 0 {
		fmt.Fprintf(&got, "(%d replies were not asked for)\n", len(replies))
	}
	era, _ := st.Era("crm")
	return got.String(), want + fmt.Sprintf("contacts %d, remembered era %q\n", contacts, era)
}

func perform(t *testing.T, c *upstream.Client, verb, value string) string {
	var line string
	var err error
	switch verb {
	case "test":
		var r upstream.Report
		r, err = c.Test(t.Context(), "crm")
		line = fmt.Sprintf("era %s, version %s, server %q", r.Era, r.Version, r.ServerName)
	case "list":
		var l upstream.Listing
		l, err = c.List(t.Context(), "crm")
		line = fmt.Sprintf("era %s, %d pages, tools %s", l.Era, l.Pages, l.Tools)
	case "call":
		name, arguments, _ := strings.Cut(value, " ")
		var r upstream.Result
		permit := gatetest.Permit(t, toolOf("crm", name), nil, arguments)
		r, err = c.Call(t.Context(), permit, upstream.CallOptions{})
		line = fmt.Sprintf("era %s, verdict %s, result %s", r.Era, r.Verdict, r.Raw)
	default:
		t.Fatalf("ask: unknown word %q", verb)
	}
	if err != nil {
		failed := failure(t, err)
		line = fmt.Sprintf("verdict %s, reason %s\n%s", failed.Verdict, failed.Reason, seconds.ReplaceAllString(err.Error(), "<TIME>"))
	}
	return line + "\n"
}

// writeRequest shows what decides: how, in which session and revision, and the
// message.
func writeRequest(b *strings.Builder, r *http.Request, body string) {
	b.WriteString(r.Method)
	for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		for _, v := range r.Header.Values(name) {
			fmt.Fprintf(b, " %s=%s", name, v)
		}
	}
	b.WriteByte('\n')
	if body != "" {
		b.WriteString(requestID.ReplaceAllString(body, `"id":"<ID>"`) + "\n")
	}
}

func writeReply(w http.ResponseWriter, text string) {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	status, _ := strconv.Atoi(lines[0])
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		w.Header()[http.CanonicalHeaderKey(name)] = append(w.Header()[http.CanonicalHeaderKey(name)], value)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, strings.TrimSuffix(body, "\n"))
}
