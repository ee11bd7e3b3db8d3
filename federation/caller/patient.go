package caller

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// patience is how long an answer of the issuer is used before it is asked
	// again. Every token under an unknown key makes the verifier ask, so without
	// it anybody could have us flood the issuer. A new key counts after that time.
	patience = 5 * time.Second
	// staleLife is how long the last good answer stands in for an issuer that
	// does not answer: its outage should not be ours at once.
	staleLife = time.Hour
	// maxDocument bounds what is read of an issuer's document.
	maxDocument = 1 << 20
	// maxDocuments bounds how many are kept: a description and a set of keys.
	maxDocuments = 8
)

var errDocument = errors.New("the issuer's document could not be fetched")

// patient asks for the same document at most once in a while, whatever came
// back. It is for GET only.
type patient struct {
	next http.RoundTripper // nil: the default
	now  func() time.Time

	mu   sync.Mutex // held while asking: those who come meanwhile get the same answer
	kept map[string]document
}

type document struct {
	asked  time.Time // when the issuer was last asked for it
	at     time.Time // when this answer was given
	status int
	header http.Header
	body   []byte
	err    error
}

// RoundTrip implements http.RoundTripper.
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	url := req.URL.String()
	d, ok := p.kept[url]
	if !ok || p.now().Sub(d.asked) >= patience {
		fresh := p.fetch(req)
		if fresh.good() || !ok || !d.good() || p.now().Sub(d.at) >= staleLife {
			d = fresh
		}
		d.asked = p.now()
		if p.kept == nil || len(p.kept) >= maxDocuments {
			p.kept = map[string]document{}
		}
		p.kept[url] = d
	}
	if d.err != nil {
		return nil, d.err
	}
	return &http.Response{
		Status: http.StatusText(d.status), StatusCode: d.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header.Clone(), Body: io.NopCloser(bytes.NewReader(d.body)), ContentLength: int64(len(d.body)), Request: req,
	}, nil
}

func (d document) good() bool { return d.err == nil && d.status == http.StatusOK }

func (p *patient) fetch(req *http.Request) document {
	next := p.next
	if next == nil {
		next = http.DefaultTransport
	}
	d := document{at: p.now()}
	resp, err := next.RoundTrip(req)
	if err != nil {
		d.err = err
		return d
	}
	defer resp.Body.Close()
	d.status, d.header = resp.StatusCode, resp.Header
	d.body, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil || len(d.body) > maxDocument {
		d.err = errDocument
	}
	return d
}
