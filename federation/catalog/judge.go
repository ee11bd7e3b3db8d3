package catalog

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// A verdict is what the rules make of one element of a listing, whatever its
// local name.
type verdict struct {
	index    int
	remote   gate.RemoteName // empty: it has none that it could be kept under
	raw      []byte          // compacted; nil when it cannot be kept
	digest   gate.Digest
	refusal  string
	warnings []string
	ready    *prepared // nil when refused
}

// era2026 reports whether a protocol version is of the era with x-mcp-header.
// Versions are dates, so they compare as text.
func era2026(version string) bool { return version >= "2026" }

// judge applies the rules to one element. known is what the last import kept
// under the same remote name, so that an unchanged schema need not be compiled
// again.
func judge(raw []byte, index int, era string, known func(gate.RemoteName) *record) verdict {
	v := verdict{index: index}
	remote, err := remoteName(raw)
	if v.remote = remote; err != nil {
		v.refusal = err.Error()
		return v
	}
	if v.raw, err = compact(raw); err != nil {
		v.refusal = err.Error()
		return v
	}
	if v.digest, err = digestOf(v.raw); err != nil {
		v.refusal = fmt.Sprintf("its definition is not strict JSON: %v", err)
		return v
	}
	if k := known(remote); k != nil && k.ready != nil && k.Digest == v.digest && len(k.ready.headers) == 0 && !hasHeaders(v.raw) {
		v.raw, v.ready, v.warnings = k.Definition, k.ready, k.Warnings
		return v
	}
	v.ready, v.warnings, err = admit(v.raw, era)
	if err != nil {
		v.ready, v.refusal = nil, err.Error()
	}
	return v
}

// admit reads a definition and judges its schemas.
func admit(raw []byte, era string) (*prepared, []string, error) {
	d, err := readDefinition(raw)
	if err != nil {
		return nil, nil, err
	}
	warnings := hints(d)
	unchecked, err := checkInputSchema(d.input)
	if err != nil {
		return nil, nil, fmt.Errorf("its input schema cannot be used: %v", err)
	}
	if len(unchecked) > 0 {
		warnings = append(warnings, fmt.Sprintf("a pattern in its input schema is left to the server to check: %s", quoteAll(unchecked)))
	}
	if d.output != nil {
		if _, err := checkSchema(d.output); err != nil {
			return nil, nil, fmt.Errorf("its output schema cannot be used: %v", err)
		}
	}
	p := prepare(d)
	if p.headerFault != "" {
		if era2026(era) {
			return nil, nil, fmt.Errorf("its input schema cannot be used: %s", p.headerFault)
		}
		warnings = append(warnings, "callers of the 2026 era leave it out: "+p.headerFault)
	}
	return p, warnings, nil
}

// hints says what an operator may want to know about an acceptable definition.
func hints(d *definition) []string {
	var out []string
	if len(d.dropped) > 0 {
		out = append(out, "left out, as it is not what the protocol says: "+strings.Join(d.dropped, ", "))
	}
	_, inTitle := visible(d.title)
	_, inDescription := visible(d.description)
	if n := inTitle + inDescription; n > 0 {
		out = append(out, fmt.Sprintf("%s in its title or description, shown escaped", count(n, "hidden character")))
	}
	if n := hiddenIn(d.input) + hiddenIn(d.output); n > 0 {
		out = append(out, fmt.Sprintf("%s in its schemas, which are passed on as they are", count(n, "hidden character")))
	}
	if booleanProperty(d.input) || booleanProperty(d.output) {
		out = append(out, "a property in its schemas is true or false instead of an object; strict clients of the 2025 era refuse a whole listing over that")
	}
	return out
}

// booleanProperty reports whether a property at the root of a schema is a
// boolean schema, which the 2025 revisions did not allow.
func booleanProperty(schema []byte) bool {
	members, err := rawjson.Object(schema)
	if err != nil {
		return false
	}
	named, _ := rawjson.Get(members, "properties")
	properties, err := rawjson.Object(named)
	if err != nil {
		return false
	}
	for _, p := range properties {
		if !rawjson.IsObject(p.Value) {
			return true
		}
	}
	return false
}

// hiddenIn counts the hidden characters in the texts of a schema. Line breaks
// between tokens were taken away; those in texts are escapes.
func hiddenIn(raw []byte) int {
	_, n := visible(string(raw))
	for _, escape := range []string{`\u200`, `\u202`, `\u206`, `\u001b`, `\ufeff`, `\udb40`} {
		n += strings.Count(strings.ToLower(string(raw)), escape)
	}
	return n
}

func quoteAll(texts []string) string {
	var b strings.Builder
	for i, t := range texts {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(texts)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quote(t))
	}
	return b.String()
}

func hasHeaders(raw []byte) bool { return bytes.Contains(raw, []byte(headerKeyword)) }

// prepared is what the snapshot needs of a definition that the rules allow.
type prepared struct {
	raw         []byte
	input       []byte // a part of raw
	arguments   *checker
	headers     []gate.ParamHeader
	headerFault string // why its x-mcp-header bindings cannot be used
	unportable  string
	structured  bool // it has an output schema

	// How it was last written, by dialect and era, so that a snapshot in which
	// only another tool differs need not write it again.
	written [2][2]atomic.Pointer[written]
}

// A written definition is a form under the name and the server it was made for.
type written struct {
	form   *form
	name   gate.LocalName
	server string
}

// prepare works out what a readable definition with usable schemas gives.
func prepare(d *definition) *prepared {
	p := &prepared{raw: d.raw, input: d.input, arguments: newChecker(d.input)}
	if hasHeaders(d.input) {
		doc, err := decodeNumbers(d.input)
		if err == nil {
			p.headers, err = paramHeaders(doc)
		}
		if err != nil {
			p.headers, p.headerFault = nil, err.Error()
		}
	}
	_, p.unportable = portable(d.input)
	p.structured = d.output != nil
	return p
}

// restore is prepare for a stored definition. What was stored was admitted
// once, so it is not compiled again.
func restore(t StoredTool) *prepared {
	if t.Refusal != "" || len(t.Definition) == 0 {
		return nil
	}
	d, err := readDefinition(t.Definition)
	if err != nil || !rawjson.IsObject(d.input) {
		return nil
	}
	return prepare(d)
}

// restoreAll restores on every processor: it is most of what a start takes.
func restoreAll(tools []StoredTool) []*record {
	records := make([]*record, len(tools))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() { // waited for below
			for i := int(next.Add(1)) - 1; i < len(tools); i = int(next.Add(1)) - 1 {
				records[i] = &record{StoredTool: tools[i], ready: restore(tools[i])}
			}
		})
	}
	workers.Wait()
	return records
}

// A record is a stored tool and what was worked out from it. Both are
// immutable; a change makes a new record.
type record struct {
	StoredTool
	ready *prepared
}
