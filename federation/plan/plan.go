// Package plan says what a new configuration would change before it does: who
// gains or loses which tool and why, where a person stops or starts being asked,
// which servers are reached elsewhere or as somebody else, and what only a
// restart can change.
//
// Everything here is a pure function of two configurations and of what each
// makes of the same stored catalogue. A plan knows whether it opens anything,
// because a change that opens nothing may be applied without anybody looking.
package plan

import (
	"cmp"
	"iter"
	"slices"

	"gatehouse/federation/config"
	"gatehouse/gate"
)

// A Catalogue is what one configuration makes of the stored tools.
// *catalog.Snapshot is one.
type Catalogue interface {
	gate.Snapshot
	Tools() iter.Seq[*gate.Tool]
	Detail(gate.LocalName) string
}

// A Side is one configuration with its catalogue. Both are required.
type Side struct {
	Config    *config.Config
	Catalogue Catalogue
}

func (s Side) enforcement() gate.Enforcement {
	if s.Config.Gate.Observe {
		return gate.Observe
	}
	return gate.Enforce
}

// An Effect says in which direction a change goes. The zero value is Widens: a
// change that nobody thought about has to be looked at.
type Effect uint8

// The effects. A change that is neither more nor less, such as another url, is
// Widens: it opens something that was not open.
const (
	Widens Effect = iota
	Narrows
	Neutral
)

var effectNames = [...]string{"widens", "narrows", "neutral"}

func (e Effect) String() string {
	if int(e) >= len(effectNames) {
		return effectNames[Widens]
	}
	return effectNames[e]
}

// MarshalText implements encoding.TextMarshaler.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. What it does not know is Widens.
func (e *Effect) UnmarshalText(text []byte) error {
	*e = Effect(max(0, slices.Index(effectNames[:], string(text))))
	return nil
}

// A File is one of the two configurations.
type File struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
}

// A Plan is everything that differs. It is in a fixed order.
type Plan struct {
	From      File       `json:"from"`
	To        File       `json:"to"`
	Effect    Effect     `json:"effect"`
	Access    []Access   `json:"access"`
	Approvals []Approval `json:"approvals"`
	Tools     []Tool     `json:"tools"`
	Settings  []Setting  `json:"settings"`
	Replay    *Replay    `json:"replay,omitempty"`
}

// An Access is one tool that one caller gains or loses.
type Access struct {
	Caller string      `json:"caller"`
	Tool   string      `json:"tool"` // its local name where it is offered
	Server string      `json:"server"`
	Gains  bool        `json:"gains"`
	Reason gate.Reason `json:"reason"` // why not, on the side where it is not offered
	Detail string      `json:"detail"` // the values behind the reason
}

// NoCaller is the reason of the side that does not know the caller.
const NoCaller gate.Reason = "no_caller"

// An Approval is one enabled tool whose calls a person stops or starts being
// asked about, or is asked about more or less often.
type Approval struct {
	Tool   string `json:"tool"`
	Server string `json:"server"`
	Before string `json:"before"` // "each call", "once in 10m0s", "not asked"
	After  string `json:"after"`
	Effect Effect `json:"effect"`
}

// A Tool is one tool that becomes something else for every caller.
type Tool struct {
	Tool   string `json:"tool"`
	Server string `json:"server"`
	Before string `json:"before"` // its state, or its name when that changes
	After  string `json:"after"`
	Detail string `json:"detail"`

	Renamed bool `json:"renamed"` // Before and After are names
}

// A Setting is one key whose value differs. Values are safe to print: no secret,
// no query of a url.
type Setting struct {
	Subject string `json:"subject"` // `server "crm"`, `caller "alice"`, "approval"
	Key     string `json:"key"`     // "" when the subject as a whole comes or goes
	Before  string `json:"before"`
	After   string `json:"after"`
	Effect  Effect `json:"effect"`
	Restart bool   `json:"restart"` // a reload leaves it as it is
}

// Compare makes the plan for going from one side to the other.
func Compare(from, to Side) *Plan {
	p := &Plan{
		From:   File{from.Config.Path, from.Config.Digest.String()},
		To:     File{to.Config.Path, to.Config.Digest.String()},
		Access: []Access{}, Approvals: []Approval{}, Tools: []Tool{}, Settings: []Setting{},
	}
	pairs := pair(from, to)
	p.access(from, to, pairs)
	p.approvals(pairs)
	p.tools(from, to, pairs)
	p.settings(from.Config, to.Config)
	p.Effect = p.effect()
	return p
}

// Safe reports whether the plan opens nothing, so that it may be applied
// without anybody looking.
func (p *Plan) Safe() bool { return p.Effect != Widens }

// Empty reports whether the two sides come to the same.
func (p *Plan) Empty() bool {
	return len(p.Access) == 0 && len(p.Approvals) == 0 && len(p.Tools) == 0 && len(p.Settings) == 0
}

// Restart lists what differs and what only a restart can change.
func (p *Plan) Restart() []Setting {
	var out []Setting
	for _, s := range p.Settings {
		if s.Restart {
			out = append(out, s)
		}
	}
	return out
}

// effect is the widest of all effects: one opening is not made good by any
// number of closings.
func (p *Plan) effect() Effect {
	all := Neutral
	for _, a := range p.Access {
		if a.Gains {
			return Widens
		}
		all = Narrows
	}
	for _, a := range p.Approvals {
		all = min(all, a.Effect)
	}
	for _, s := range p.Settings {
		all = min(all, s.Effect)
	}
	return all
}

// A place is what a tool is known by whatever its local name.
type place struct {
	server gate.ServerID
	remote gate.RemoteName
}

// A toolPair is one tool on both sides; nil where it is not.
type toolPair struct{ before, after *gate.Tool }

// name is the local name on the side that counts: the new one if there is one.
func (t toolPair) name() string {
	if t.after != nil {
		return string(t.after.Name)
	}
	return string(t.before.Name)
}

func (t toolPair) server() string {
	if t.after != nil {
		return string(t.after.Server)
	}
	return string(t.before.Server)
}

// pair brings remote tools together by their place, in order of name. Our own
// tools are the same everywhere.
func pair(from, to Side) []toolPair {
	at := map[place]int{}
	var pairs []toolPair
	for t := range from.Catalogue.Tools() {
		if !t.Own {
			at[place{t.Server, t.Remote}] = len(pairs)
			pairs = append(pairs, toolPair{before: t})
		}
	}
	for t := range to.Catalogue.Tools() {
		if t.Own {
			continue
		}
		if i, known := at[place{t.Server, t.Remote}]; known {
			pairs[i].after = t
		} else {
			pairs = append(pairs, toolPair{after: t})
		}
	}
	slices.SortStableFunc(pairs, func(a, b toolPair) int { return cmp.Compare(a.name(), b.name()) })
	return pairs
}
