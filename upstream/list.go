package upstream

import (
	"context"
	"encoding/json"
	"strconv"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
	"gatehouse/upstream/credential"
	"gatehouse/upstream/wire"
)

// A walk ends in an error beyond these, so that a server cannot make it endless.
const (
	maxPages = 50
	maxTools = 5000
)

// A Listing is every page of tools/list. Tools are the bytes received.
type Listing struct {
	Tools []json.RawMessage
	Era   string // Legacy or Modern
	Legs  []gate.Leg
	Pages int
}

// List walks every page of a server's tools/list. It fails as a whole: a walk
// that does not come to its end gives no tools, only the legs that it took.
func (c *Client) List(ctx context.Context, id gate.ServerID) (Listing, error) {
	var listing Listing
	err := c.operate(ctx, id, credential.Discovery(), func(op *operation) *fault {
		f := op.inEra(func(era string) *fault {
			listing = Listing{Era: era}
			return op.list(&listing)
		})
		listing.Legs = op.legs
		return f
	})
	if err != nil {
		return Listing{Legs: listing.Legs}, err // what was sent was sent
	}
	return listing, nil
}

func (op *operation) list(listing *Listing) *fault {
	if listing.Era == Modern {
		return op.walk(listing, nil)
	}
	session, _, f := op.handshake()
	if f != nil {
		return f
	}
	op.part(session)
	return op.walk(listing, &session)
}

// walk follows the cursors from the first page to the last. Without a session
// it speaks the 2026 era.
func (op *operation) walk(listing *Listing, session *legacySession) *fault {
	seen := map[string]bool{}
	cursor := []byte(nil) // raw, exactly as the server wrote it
	for {
		if listing.Pages == maxPages {
			return op.refuse(pageName(maxPages+1), ReasonPages, "not asked for: the list goes on after %d pages, no server of ours may have more", maxPages)
		}
		name := pageName(listing.Pages + 1)
		reply, f := op.retried(name, op.page(session, cursor))
		if f != nil {
			return f
		}
		tools, next, f := op.readPage(name, reply.Result, session == nil)
		if f != nil {
			return f
		}
		op.settled = true
		listing.Pages++
		if len(listing.Tools)+len(tools) > maxTools {
			return op.refuse(name, ReasonPages, "the list has more than %d tools", maxTools)
		}
		for _, tool := range tools {
			listing.Tools = append(listing.Tools, tool)
		}
		if next == nil {
			break
		}
		text, err := rawjson.String(next)
		if err != nil {
			return op.refuse(name, ReasonMalformed, "nextCursor: %v", err)
		}
		if seen[text] {
			return op.refuse(name, ReasonPages, "the cursor %q was given before, the list would never end", wire.Clip(text))
		}
		seen[text] = true
		cursor = next
	}
	if session == nil {
		op.found(Modern)
	}
	return nil
}

func pageName(n int) string { return "page " + strconv.Itoa(n) }

// page is the request for one page; cursor is raw, nil for the first.
func (op *operation) page(session *legacySession, cursor []byte) wire.Request {
	params := [][]byte{opening}
	if cursor != nil {
		params = [][]byte{append(append([]byte(`{"cursor":`), cursor...), ',')}
	}
	if session == nil {
		return op.modernRequest("tools/list", params, "")
	}
	return wire.Request{Method: "tools/list", Params: op.legacyParams(params, ""), Header: session.header(op.trace)}
}

// readPage takes a page apart; next is nil at the end of the list. The eras
// differ in what an empty cursor means.
func (op *operation) readPage(name string, result []byte, modern bool) (tools [][]byte, next []byte, f *fault) {
	members, err := rawjson.Object(result)
	if err != nil {
		return nil, nil, op.refuse(name, ReasonMalformed, "%v", err)
	}
	raw, ok := rawjson.Get(members, "tools")
	if !ok || !rawjson.IsArray(raw) {
		return nil, nil, op.refuse(name, ReasonMalformed, "the result has no array of tools")
	}
	if tools, err = rawjson.Array(raw); err != nil {
		return nil, nil, op.refuse(name, ReasonMalformed, "%v", err)
	}
	next, ok = rawjson.Get(members, "nextCursor")
	switch {
	case !ok || rawjson.IsNull(next) || !modern && string(next) == `""`:
		return tools, nil, nil
	case !rawjson.IsString(next):
		return nil, nil, op.refuse(name, ReasonMalformed, "nextCursor is neither a string nor null")
	}
	return tools, next, nil
}
