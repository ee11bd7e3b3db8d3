package federation

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A response in pieces is one body of known length, however it is cut, and
// nothing follows it.
func TestFinishInPieces(t *testing.T) {
	const whole = `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`
	for _, pieces := range [][]string{{whole}, {whole[:10], "", whole[10:]}, strings.Split(whole, ""), {}} {
		want := strings.Join(pieces, "")
		got := httptest.NewRecorder()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, w := range []http.ResponseWriter{w, got} {
				var raw [][]byte
				for _, p := range pieces {
					raw = append(raw, []byte(p))
				}
				a := &answer{w: w}
				a.finish(http.StatusOK, raw...)
				a.finish(http.StatusOK, []byte("again"))
				a.abandon()
			}
		}))
		res, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(res.Body); err != nil {
			t.Errorf("%d pieces: %v", len(pieces), err)
		}
		res.Body.Close()
		server.Close()
		if body.String() != want || res.ContentLength != int64(len(want)) || got.Body.String() != want {
			t.Errorf("%d pieces: got %q of length %d, want %q", len(pieces), body.String(), res.ContentLength, want)
		}
		if h := res.Header; h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%d pieces: header %v", len(pieces), h)
		}
	}
}

// On a stream the pieces are one event, and what an upstream wrote over several
// lines stays one message.
func TestFinishOnAStream(t *testing.T) {
	for _, message := range []string{"{}", "{\n  \"a\": 1\r\n}", "{\r\"a\":\r[\n\n]}", "{\n\n\n}"} {
		w := httptest.NewRecorder()
		a := &answer{w: w, streams: true}
		if err := a.event([]byte(`{"method":"notifications/progress"}`)); err != nil {
			t.Fatal(err)
		}
		before := w.Body.Len()
		half := len(message) / 2
		a.finish(http.StatusOK, []byte(message[:half]), []byte(message[half:]))
		event := w.Body.String()[before:]
		if want := "event: message\ndata: " + strings.NewReplacer("\n", " ", "\r", " ").Replace(message) + "\n\n"; event != want {
			t.Errorf("%q became the event %q, want %q", message, event, want)
		}
		if err := a.event([]byte("{}")); err == nil {
			t.Error("an event came after the end")
		}
	}
}
