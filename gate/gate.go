package gate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Channel says where a person is asked.
type Channel uint8

// The channels. ClientThenConsole asks by the caller's own client when that can
// show a form, and at the console otherwise.
const (
	ClientChannel Channel = iota
	ConsoleChannel
	ClientThenConsole
)

// An ArgumentRecord says how much of a call's arguments the ledger keeps.
type ArgumentRecord uint8

// KeepDigest keeps none of it, KeepRedacted everything but the text of strings,
// KeepAll the bytes.
const (
	KeepDigest ArgumentRecord = iota
	KeepRedacted
	KeepAll
)

// A KeyRing holds the keys that seal states. A key that is no longer current
// still opens what it sealed as long as it is in the ring.
type KeyRing interface {
	Current() (id uint32, key [32]byte)
	Key(id uint32) (key [32]byte, ok bool)
}

// Options make a Gate.
type Options struct {
	Ledger Ledger  // required
	Keys   KeyRing // required

	Enforcement     Enforcement
	ApprovalTimeout time.Duration // how long a question can be answered; 0: five minutes
	Channel         Channel
	SecondPerson    bool // whoever calls may not be who approves; needs a channel with a console
	Arguments       ArgumentRecord

	Digest func([]byte) (Digest, error) // RFC 8785 digest of arguments; nil: digest of the bytes
	Now    func() time.Time             // nil: time.Now
}

// A Gate judges calls, asks people, issues permits and keeps the record. It is
// safe for concurrent use.
type Gate struct {
}

// New makes a gate. It refuses options that would leave it without a record or
// without a way to ask.
func New(o Options) (*Gate, error) {
	if o.Ledger == nil || o.Keys == nil {
		return nil, errors.New("gate: a ledger and a key ring are required")
	}
	return nil, fmt.Errorf("gate: incomplete")
}

// A Ruling is the answer to a submitted call; exactly one field is set.
type Ruling struct {
	Permit   *Permit
	Question *Question
	Refusal  *Refusal
}

// A Refusal says that a call does not happen. It is on record already.
type Refusal struct {
	Verdict    Verdict // Refused, Declined or Cancelled
	Reason     Reason
	Detail     string         // for administrators and the record, never for other callers
	Record     uint64         // number of the entry, 0 when it could not be written
	RetryAfter time.Duration  // with BudgetSpent: when to come back
	Argument   *ArgumentError // with InvalidArguments
}

// A Question has to be answered by a person before the call can happen.
type Question struct {
	Number  uint64 // of its entry
	Message string // what the person reads, complete and escaped
	Schema  []byte // raw JSON of the form's requestedSchema
	State   string // to be sent back with the answer
	Until   time.Time
	Channel Channel // ClientChannel or ConsoleChannel: who is to be asked
}

// An Answer is what came back for a question. Exactly an accepted form whose
// decision is "approve" is a yes.
type Answer struct {
	Action  string // accept, decline, cancel
	Content []byte // raw JSON object, or nil
	Failure string // when no answer came: timeout, lost or client_error
}

// Submit judges a call.
func (g *Gate) Submit(ctx context.Context, s Snapshot, c *Caller, call Call) Ruling {
	return Ruling{}
}

// Settle records how a permitted call ended.
func (g *Gate) Settle(p *Permit, o Outcome) {}

// Deny records a refusal that was decided before there was a call to judge.
func (g *Gate) Deny(ctx context.Context, s Snapshot, c *Caller, call Call, reason Reason, detail string) *Refusal {
	return nil
}

// Questions lists the calls that wait for a person, oldest first.
func (g *Gate) Questions() []Open { return nil }

// Question returns the open question of that number.
func (g *Gate) Question(number uint64) (Open, bool) { return Open{}, false }

// Decide answers an open question in the name of approver, who has to pass
// checks 1 to 5 for the tool in s himself.
func (g *Gate) Decide(ctx context.Context, s Snapshot, number uint64, approver *Caller, approve bool) error {
	return ErrNoQuestion
}

// Wait returns when the console question behind state is decided, after limit,
// or with ctx.
func (g *Gate) Wait(ctx context.Context, state string, limit time.Duration) {}

// Close ends what the gate still counts.
func (g *Gate) Close() {}

// ErrNoQuestion says that there is no open question of a number.
var ErrNoQuestion = errors.New("no such open question")

// An Open is a question that waits for its answer.
type Open struct {
	Number     uint64
	Asked      time.Time
	Until      time.Time
	Channel    Channel
	Caller     CallerName
	Zone       Zone
	Tool       LocalName
	Server     ServerID
	ServerName string
	Origin     string
	RemoteName RemoteName
	Class      Class
	Message    string // what the person reads
	Arguments  Digest
}
