package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"gatehouse/gate"
	"gatehouse/gate/rawjson"
)

// What may be listed, and how large it may be. The published servers looked at
// stay below all of it: 84 KiB the largest schema, 13 KB the longest
// description, 71 characters the longest name.
const (
	maxTools       = 5000
	maxDefinition  = 256 << 10
	maxDescription = 32 << 10
	maxTitle       = 4 << 10
	maxRemoteName  = 256
)

// A definition is what a server said about one tool, as far as we look into it.
// Everything else is passed on as it is.
type definition struct {
	raw     []byte // one JSON object without white space between tokens
	members []rawjson.Member

	title, description string   // as received
	input, output      []byte   // schemas; output is nil when there is none
	dropped            []string // members that are not passed on
}

// remoteName reads the name of a listed tool and nothing else of it. It returns
// a name beside an error when the tool cannot be used and can be named all the
// same, so that what is known under that name is known to be skipped.
func remoteName(raw []byte) (gate.RemoteName, error) {
	if !rawjson.IsObject(raw) {
		return "", fmt.Errorf("it is %s, not an object", rawjson.Describe(raw))
	}
	members, err := rawjson.Object(raw)
	if err != nil {
		return looseName(raw), fmt.Errorf("its definition is not strict JSON: %v", err)
	}
	value, ok := rawjson.Get(members, "name")
	if !ok {
		return "", fmt.Errorf("it has no name")
	}
	if !rawjson.IsString(value) {
		return "", fmt.Errorf("its name is %s, not a string", rawjson.Describe(value))
	}
	name, err := rawjson.String(value)
	switch {
	case err != nil:
		return "", fmt.Errorf("its name is not well-formed text: %v", err)
	case name == "":
		return "", fmt.Errorf("its name is empty")
	case len(name) > maxRemoteName:
		return "", fmt.Errorf("its name %q has %d bytes, more than any local name can carry", oneLine(name, 40), len(name))
	}
	return gate.RemoteName(name), nil
}

// looseName finds the name in JSON that is not strict: nested too deep, say, or
// with a member twice.
func looseName(raw []byte) gate.RemoteName {
	var members map[string]json.RawMessage
	var name string
	if json.Unmarshal(raw, &members) != nil || json.Unmarshal(members["name"], &name) != nil || len(name) > maxRemoteName {
		return ""
	}
	return gate.RemoteName(name)
}

// compact checks that raw is one strict JSON value and takes the white space
// between its tokens away. Tokens stay byte for byte; without line breaks the
// value also fits on one line of an event stream.
func compact(raw []byte) ([]byte, error) {
	if len(raw) > maxDefinition {
		return nil, fmt.Errorf("its definition has %d bytes, the limit is %d", len(raw), maxDefinition)
	}
	if err := rawjson.Check(raw); err != nil {
		return nil, fmt.Errorf("its definition is not strict JSON: %v", err)
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("its definition is not strict JSON: %v", err)
	}
	return bytes.Clone(b.Bytes()), nil
}

// digestOf is what a pin binds to: everything the server said, in the canonical
// form that knows no order of members.
func digestOf(raw []byte) (gate.Digest, error) {
	form, err := rawjson.Canonical(make([]byte, 0, len(raw)), raw)
	if err != nil {
		return gate.Digest{}, err
	}
	return gate.DigestOf(form), nil
}

// readDefinition reads a compacted definition. The error is the reason why the
// tool is skipped.
//
// A member that only decorates a tool and has the wrong shape is left out, not
// a reason: clients that decode a listing strictly would otherwise lose the
// whole of it over an icon.
func readDefinition(raw []byte) (*definition, error) {
	members, err := rawjson.Object(raw)
	if err != nil {
		return nil, fmt.Errorf("its definition is not strict JSON: %v", err)
	}
	d := &definition{raw: raw, members: members}
	for _, m := range members {
		keep := true
		switch m.Key {
		case "description":
			d.description, keep, err = optionalText(m, maxDescription)
		case "title":
			d.title, keep, err = optionalText(m, maxTitle)
		case "inputSchema":
			d.input = m.Value
		case "outputSchema":
			if keep = !rawjson.IsNull(m.Value); keep {
				d.output = m.Value
			}
		case "annotations":
			keep = wellFormedAnnotations(m.Value)
		case "icons":
			keep = wellFormedIcons(m.Value)
		case "execution":
			keep = wellFormedExecution(m.Value)
		case "_meta":
			keep = rawjson.IsObject(m.Value)
		}
		if err != nil {
			return nil, err
		}
		if !keep {
			d.dropped = append(d.dropped, m.Key)
		}
	}
	if d.input == nil {
		return nil, fmt.Errorf("it has no inputSchema")
	}
	return d, nil
}

func optionalText(m rawjson.Member, limit int) (text string, keep bool, err error) {
	if rawjson.IsNull(m.Value) {
		return "", false, nil
	}
	if !rawjson.IsString(m.Value) {
		return "", false, fmt.Errorf("its %s is %s, not a string", m.Key, rawjson.Describe(m.Value))
	}
	text, err = rawjson.String(rawjson.FixSurrogates(m.Value))
	if err != nil {
		return "", false, fmt.Errorf("its %s is not well-formed text: %v", m.Key, err)
	}
	if len(text) > limit {
		return "", false, fmt.Errorf("its %s has %d bytes, the limit is %d", m.Key, len(text), limit)
	}
	return text, true, nil
}

func wellFormedAnnotations(raw []byte) bool {
	members, err := rawjson.Object(raw)
	if err != nil {
		return false
	}
	for _, m := range members {
		switch m.Key {
		case "title":
			if !rawjson.IsString(m.Value) {
				return false
			}
		case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
			if string(m.Value) != "true" && string(m.Value) != "false" {
				return false
			}
		}
	}
	return true
}

func wellFormedIcons(raw []byte) bool {
	icons, err := rawjson.Array(raw)
	if err != nil {
		return false
	}
	for _, icon := range icons {
		members, err := rawjson.Object(icon)
		if err != nil {
			return false
		}
		if src, ok := rawjson.Get(members, "src"); !ok || !rawjson.IsString(src) {
			return false
		}
		for _, m := range members {
			switch m.Key {
			case "mimeType":
				if !rawjson.IsString(m.Value) {
					return false
				}
			case "theme":
				if !oneOf(m.Value, "light", "dark") {
					return false
				}
			case "sizes":
				if !stringArray(m.Value) {
					return false
				}
			}
		}
	}
	return true
}

func wellFormedExecution(raw []byte) bool {
	members, err := rawjson.Object(raw)
	if err != nil {
		return false
	}
	support, ok := rawjson.Get(members, "taskSupport")
	return !ok || oneOf(support, "required", "optional", "forbidden")
}

func oneOf(raw []byte, texts ...string) bool {
	s, err := rawjson.String(raw)
	return err == nil && slices.Contains(texts, s)
}

func stringArray(raw []byte) bool {
	values, err := rawjson.Array(raw)
	if err != nil {
		return false
	}
	for _, v := range values {
		if !rawjson.IsString(v) {
			return false
		}
	}
	return true
}
