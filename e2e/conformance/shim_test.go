package conformance

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

// prefix is what the catalogue puts before the names of the upstream "conf".
const prefix = "mcp_conf_"

// shim stands between suite and gateway: it adds the caller's token, and gives
// the suite's tools the names that the catalogue gave them, in tools/call, in
// Mcp-Name and, the other way round, in tools/list. It returns its url.
func shim(t *testing.T, gateway, token string) string {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	var own string // the address the suite knows
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			// A foreign Host or Origin is the suite's business and stays.
			r.Out.Host = strings.Replace(r.In.Host, own, target.Host, 1)
			if origin := r.In.Header.Get("Origin"); origin != "" {
				r.Out.Header.Set("Origin", strings.Replace(origin, own, target.Host, 1))
			}
			r.Out.Header.Set("Authorization", "Bearer "+token)
			r.Out.Header.Del("Accept-Encoding")
			outward(r.Out)
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &renamer{ReadCloser: r.Body, lines: bufio.NewReader(r.Body)}
			r.Header.Del("Content-Length")
			r.ContentLength = -1
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	own = strings.TrimPrefix(server.URL, "http://")
	return server.URL + target.Path
}

// outward renames the tool of a tools/call, in the body and in its header, each
// as it is, so that a disagreement between the two stays one.
func outward(r *http.Request) {
	if r.Body == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = nil
	}
	var message struct {
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal(body, &message) == nil && message.Method == "tools/call" {
		name, _ := json.Marshal(message.Params.Name)
		renamed, _ := json.Marshal(local(message.Params.Name))
		body = bytes.Replace(body, append([]byte(`"name":`), name...), append([]byte(`"name":`), renamed...), 1)
		if values := r.Header.Values("Mcp-Name"); len(values) == 1 {
			r.Header.Set("Mcp-Name", renamedHeader(values[0]))
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
}

// local is what the catalogue calls a tool: the gateway's own keep their names.
func local(name string) string {
	if strings.HasPrefix(strings.TrimSpace(name), "gatehouse_") {
		return name
	}
	return prefix + name
}

func renamedHeader(value string) string {
	encoded, marked := strings.CutPrefix(value, "=?base64?")
	encoded, ended := strings.CutSuffix(encoded, "?=")
	if !marked || !ended {
		return local(value)
	}
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return value // the suite tries bad encodings on purpose
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(local(string(plain)))) + "?="
}

// renamer takes the prefix off the names in a response, a line at a time, so that
// an event stream keeps flowing.
type renamer struct {
	io.ReadCloser
	lines *bufio.Reader
	rest  []byte
}

func (r *renamer) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		line, err := r.lines.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		r.rest = bytes.ReplaceAll(line, []byte(`"name":"`+prefix), []byte(`"name":"`))
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
