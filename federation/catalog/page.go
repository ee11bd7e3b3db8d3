package catalog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// An Era is the family of protocol revisions that a result is written for.
type Era uint8

// The eras: with an initialize handshake, and with self-describing requests.
const (
	Era2025 Era = iota
	Era2026
)

// PageSize is how many tools one page of tools/list holds.
const PageSize = 500

// ttlMillis is how long a 2026 caller may rely on a page. What it says can
// change at any time and takes effect at once, whatever a caller still holds.
const ttlMillis = 30_000

// ErrStaleCursor says that a cursor is not one of this view's, or of an earlier
// state of it.
var ErrStaleCursor = errors.New("the cursor is not valid any more; list again from the start")

// pages are all pages of a view for one era, as whole result objects.
type pages struct {
	first    []byte
	byCursor map[string][]byte
}

// Page returns a whole result object of tools/list for c, encoded beforehand.
// The empty cursor asks for the first page. The bytes must not be changed. A
// cursor that is not of this view and content gives ErrStaleCursor.
func (s *Snapshot) Page(c *gate.Caller, era Era, cursor string) ([]byte, error) {
	v := s.view(c)
	v.once[era].Do(func() { v.pages[era] = s.encode(v, era) })
	p := v.pages[era]
	if cursor == "" {
		return p.first, nil
	}
	page, ok := p.byCursor[cursor]
	if !ok {
		return nil, ErrStaleCursor
	}
	return page, nil
}

func (s *Snapshot) encode(v *view, era Era) *pages {
	p := &pages{byCursor: make(map[string][]byte)}
	for i, at := 0, ""; ; i++ {
		tools := v.listed[i*PageSize : min(len(v.listed), (i+1)*PageSize)]
		next := ""
		if (i+1)*PageSize < len(v.listed) {
			next = v.cursor(era, i+1)
		}
		page := s.encodePage(tools, v.key.dialect, era, next)
		s.views.bytes.Add(int64(len(page)))
		if i == 0 {
			p.first = page
		} else {
			p.byCursor[at] = page
		}
		if next == "" {
			return p
		}
		at = next
	}
}

func (s *Snapshot) encodePage(tools []*entry, d gate.Dialect, era Era, next string) []byte {
	head, tail := `{"tools":[`, `]`
	if next != "" {
		tail += `,"nextCursor":"` + next + `"`
	}
	if era == Era2026 {
		head = `{"resultType":"complete","tools":[`
		tail += fmt.Sprintf(`,"ttlMs":%d,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":%s}`, ttlMillis, s.info)
	}
	tail += `}`
	size := len(head) + len(tail)
	for _, e := range tools {
		size += e.form(d, era).size() + 1
	}
	b := append(make([]byte, 0, size), head...)
	for i, e := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.form(d, era).appendTo(b)
	}
	return append(b, tail...)
}

// cursor is the opaque name of a view's page. It is bound to who sees what: a
// caller with another view has other cursors, and so has this view once it
// changed. It needs no key: a caller who made one up could only read a page of
// their own view. Replicas that hold the same catalogue agree on it.
func (v *view) cursor(era Era, page int) string {
	text := fmt.Sprintf("%x %+v %d %d", v.content, v.key, era, page)
	sum := sha256.Sum256([]byte(text))
	b := binary.BigEndian.AppendUint16(nil, uint16(page))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:16]...))
}

func serverInfo(version string) []byte {
	if version == "" {
		version = "dev"
	}
	b := rawjson.AppendString([]byte(`{"name":"gatehouse","title":"Gatehouse","version":`), version)
	return append(b, '}')
}
