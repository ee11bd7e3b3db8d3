package upstreamtest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"gatehouse/gate/rawjson"
)

// A Request is one HTTP request that a played server saw.
type Request struct {
	HTTPMethod string
	Header     http.Header
	Body       []byte
	ID         []byte // raw JSON-RPC id, nil for a notification
	Method     string // JSON-RPC method, "" when the body holds none
	Params     []byte // raw, nil when absent
	At         time.Time
}

// Param gives one member of the request's params, raw.
func (r *Request) Param(key string) []byte {
	if !rawjson.IsObject(r.Params) {
		return nil
	}
	members, err := rawjson.Object(r.Params)
	if err != nil {
		return nil
	}
	value, _ := rawjson.Get(members, key)
	return value
}

// Text gives one member of the request's params that is a string.
func (r *Request) Text(key string) string {
	text, err := rawjson.String(r.Param(key))
	if err != nil {
		return ""
	}
	return text
}

// Meta gives one member of the request's _meta, raw.
func (r *Request) Meta(key string) []byte {
	return (&Request{Params: r.Param("_meta")}).Param(key)
}

// A Server is an http.Handler that plays one upstream. Its fields are set
// before it serves; its methods may be called at any time.
type Server struct {
	Profile  Profile
	Tools    []Tool
	PageSize int    // tools on a page of tools/list; 0: all on one
	Version  string // what initialize answers; "": what the client offered

	// OnRequest, when set, sees every request after it was recorded and before it
	// is answered. It may wait.
	OnRequest func(*Request)

	mu       sync.Mutex
	requests []Request
	scripts  map[string]Script
	sessions map[string]*session
	issued   int
}

// A Script answers one request.
type Script func(*Exchange)

// New returns a server of profile p with the usual tools.
func New(p Profile) *Server {
	return &Server{Profile: p, Tools: Tools()}
}

// On replaces the server's answer to a JSON-RPC method. For "DELETE" it
// replaces the answer to that HTTP method.
func (s *Server) On(method string, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts == nil {
		s.scripts = map[string]Script{}
	}
	s.scripts[method] = script
}

// Requests gives what was seen so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Methods gives the JSON-RPC methods seen so far, oldest first; requests
// without a body are named by their HTTP method.
func (s *Server) Methods() []string {
	var names []string
	for _, r := range s.Requests() {
		names = append(names, r.name())
	}
	return names
}

// Count says how many requests of that name Methods would list.
func (s *Server) Count(method string) (n int) {
	for _, name := range s.Methods() {
		if name == method {
			n++
		}
	}
	return n
}

// Last gives the newest request of that name.
func (s *Server) Last(method string) (Request, bool) {
	seen := s.Requests()
	for i := len(seen) - 1; i >= 0; i-- {
		if seen[i].name() == method {
			return seen[i], true
		}
	}
	return Request{}, false
}

// Forget empties the record of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (r *Request) name() string {
	if r.Method == "" {
		return r.HTTPMethod
	}
	return r.Method
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	r, ok := read(w, hr)
	if !ok {
		return
	}
	if hr.Header.Get("Origin") != "" {
		http.Error(w, "no page may call this", http.StatusForbidden)
		return
	}
	script := s.record(r)
	x := &Exchange{Request: r, Writer: w, server: s, http: hr}
	x.proper = func() { s.Answer(x) }
	if s.OnRequest != nil {
		s.OnRequest(&x.Request)
	}
	switch {
	case script != nil:
		script(x)
	default:
		s.Answer(x)
	}
}

func (s *Server) record(r Request) Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	return s.scripts[r.name()]
}

// Answer gives the answer that a server of this profile gives without a script.
func (s *Server) Answer(x *Exchange) {
	if s.Profile.Modern {
		s.answerModern(x)
		return
	}
	s.answerLegacy(x)
}

// maxRequest bounds what a played server reads of one request.
const maxRequest = 8 << 20

func read(w http.ResponseWriter, hr *http.Request) (Request, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, hr.Body, maxRequest))
	if err != nil {
		http.Error(w, "request too large", http.StatusRequestEntityTooLarge)
		return Request{}, false
	}
	r := Request{HTTPMethod: hr.Method, Header: hr.Header.Clone(), Body: body, At: time.Now()}
	if len(body) == 0 {
		return r, true
	}
	if complaint := r.parse(); complaint != "" {
		http.Error(w, complaint, http.StatusBadRequest)
		return r, false
	}
	return r, true
}

// parse finds the message in the body and says what keeps it from being one.
func (r *Request) parse() (complaint string) {
	if err := rawjson.Check(r.Body); err != nil || !rawjson.IsObject(r.Body) {
		return "not one JSON object"
	}
	members, err := rawjson.Object(r.Body)
	if err != nil {
		return "not one JSON object"
	}
	r.ID, _ = rawjson.Get(members, "id")
	r.Params, _ = rawjson.Get(members, "params")
	method, _ := rawjson.Get(members, "method")
	if r.Method, err = rawjson.String(method); err != nil || r.Method == "" {
		return "no method"
	}
	return ""
}

// list answers tools/list for both eras; extra goes in front of the members.
func (s *Server) list(x *Exchange, extra string) {
	start := 0
	if cursor := x.Text("cursor"); cursor != "" {
		n, err := strconv.Atoi(cursor)
		if err != nil || n <= 0 || n >= len(s.Tools) {
			x.Error(http.StatusOK, -32602, "invalid cursor")
			return
		}
		start = n
	}
	end := len(s.Tools)
	if s.PageSize > 0 {
		end = min(start+s.PageSize, end)
	}
	out := append([]byte("{"), extra...)
	out = append(out, `"tools":[`...)
	for i, tool := range s.Tools[start:end] {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, tool.Definition...)
	}
	out = append(out, ']')
	if end < len(s.Tools) {
		out = append(out, `,"nextCursor":"`...)
		out = strconv.AppendInt(out, int64(end), 10)
		out = append(out, '"')
	}
	x.Result(string(append(out, '}')))
}

// call answers tools/call for both eras.
func (s *Server) call(x *Exchange) {
	name := x.Text("name")
	for _, tool := range s.Tools {
		if tool.Name == name {
			result := tool.Run(x)
			if s.Profile.Modern {
				result = `{"resultType":"complete",` + result[1:]
			}
			x.Result(result)
			return
		}
	}
	x.Error(http.StatusOK, -32602, "unknown tool")
}
