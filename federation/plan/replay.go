package plan

import (
	"time"

	"gatehouse/federation/config"
	"gatehouse/gate"
)

// A Call is one call as the ledger remembers it.
type Call struct {
	Number    uint64          `json:"number"`
	Time      time.Time       `json:"time"`
	Caller    gate.CallerName `json:"caller"`
	Tool      gate.LocalName  `json:"tool"`
	Arguments []byte          `json:"-"` // nil: the record does not have them
}

// A Judgement is what one configuration makes of a call.
type Judgement struct {
	Outcome string      `json:"outcome"` // "permitted", "asked", "refused"
	Reason  gate.Reason `json:"reason,omitempty"`
	Detail  string      `json:"detail,omitempty"`
}

// The outcomes of a judgement.
const (
	permitted = "permitted"
	asked     = "asked"
	refused   = "refused"
)

// A Replayed is one call that ends otherwise.
type Replayed struct {
	Call
	Before Judgement `json:"before"`
	After  Judgement `json:"after"`
}

// A Replay is the recorded calls under both configurations.
type Replay struct {
	Calls    int        `json:"calls"`    // judged under both
	Differ   []Replayed `json:"differ"`   // oldest first
	Partly   int        `json:"partly"`   // of Calls: without arguments on record, so check 7 was not made
	Unjudged int        `json:"unjudged"` // by callers of an issuer, whose claims are not on record
}

// Judge judges recorded calls under both sides. Budgets, and what a person
// answered, are no part of it.
func Judge(from, to Side, calls []Call) *Replay {
	r := &Replay{Differ: []Replayed{}}
	for _, call := range calls {
		was, is := from.Config.Caller(call.Caller), to.Config.Caller(call.Caller)
		if was == nil && is == nil {
			r.Unjudged++
			continue
		}
		r.Calls++
		if call.Arguments == nil {
			r.Partly++
		}
		before, after := judge(from, was, call), judge(to, is, call)
		if before.Outcome != after.Outcome || before.Reason != after.Reason {
			r.Differ = append(r.Differ, Replayed{call, before, after})
		}
	}
	return r
}

func judge(s Side, c *config.Caller, call Call) Judgement {
	if c == nil {
		return Judgement{refused, NoCaller, "nobody of this name is declared"}
	}
	var d gate.Decision
	if call.Arguments != nil {
		d = gate.Judge(s.Catalogue, &c.Caller, gate.Call{Tool: call.Tool, Arguments: call.Arguments}, s.enforcement())
	} else {
		d.Tool = s.Catalogue.Tool(call.Tool)
		d.Reason, d.Detail = gate.Offered(d.Tool, &c.Caller, s.enforcement())
		d.Ask = d.Reason == "" && !d.Tool.ApprovalWaived
	}
	switch {
	case d.Reason != "":
		return Judgement{refused, d.Reason, d.Detail}
	case d.Ask:
		return Judgement{Outcome: asked}
	}
	return Judgement{Outcome: permitted}
}
