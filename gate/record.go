package gate

import (
	"context"
	"errors"
	"time"
)

// A Kind says what a ledger entry is about.
type Kind string

// The kinds of entries.
const (
	KindIntent       Kind = "intent"
	KindOutcome      Kind = "outcome"
	KindDenied       Kind = "denied"
	KindQuestion     Kind = "question"
	KindAnswer       Kind = "answer"
	KindImport       Kind = "import"
	KindEnable       Kind = "enable"
	KindDisable      Kind = "disable"
	KindAcceptChange Kind = "accept_change"
	KindReload       Kind = "reload"
	KindLogin        Kind = "login"
	KindAuthFailure  Kind = "auth_failure"
	KindSecret       Kind = "secret"
	KindStart        Kind = "start"
	KindStop         Kind = "stop"
	KindCheckpoint   Kind = "checkpoint"
	KindTest         Kind = "test"   // somebody tried the connection to a server
	KindVerify       Kind = "verify" // somebody had the chain walked
	KindExport       Kind = "export" // somebody took a copy of the record away
)

// A Verdict is how a call ended, as callers read it in _meta["gatehouse/outcome"].
type Verdict string

// The verdicts.
const (
	OK             Verdict = "ok"
	ToolError      Verdict = "tool_error"      // the tool ran and says it failed
	Refused        Verdict = "refused"         // the gate said no
	Declined       Verdict = "declined"        // a person said no, or nobody said yes
	NotSent        Verdict = "not_sent"        // permitted, but the work request never left
	UpstreamError  Verdict = "upstream_error"  // the server proved that it did not run the tool
	OutcomeUnknown Verdict = "outcome_unknown" // the request may have been run; nobody here can know
	Cancelled      Verdict = "cancelled"       // the caller gave up before the work request left
)

// A Leg is one HTTP request of an operation.
type Leg struct {
	Name   string        `json:"name"` // "initialize", "page 2", "tools/call", "token", …
	Took   time.Duration `json:"took_ns"`
	Status int           `json:"status,omitempty"` // HTTP, 0 when no answer came
}

// An Entry is one line of the ledger. Fields that do not apply stay zero and
// are left out. No field ever holds a token, a credential, a session id, a
// query string or a tool's result.
type Entry struct {
	Number uint64    // assigned by the ledger
	Time   time.Time // assigned by the ledger when zero; UTC, microseconds
	Kind   Kind

	Caller     CallerName
	Via        string // how the caller authenticated, or "operator" for a local command
	Session    string // first 16 hex digits of the session id's SHA-256; never the id
	Request    string // the caller's JSON-RPC id, as JSON text, clipped
	Tool       LocalName
	Server     ServerID
	Origin     string
	RemoteName RemoteName
	Definition Digest
	Class      Class
	Zone       string
	Ceiling    Class

	Verdict        Verdict
	Reason         string // a reason code
	Detail         string // for operators, clipped, control characters replaced
	Approval       uint64 // number of the question entry, 0 when nobody was asked
	AnsweredBy     CallerName
	ArgumentDigest Digest // RFC 8785
	Arguments      string // JSON, by [audit] arguments; empty for "digest"
	Intent         uint64 // on an outcome: the intent it settles
	Legs           []Leg
	Status         int // HTTP status of the last leg
	BytesIn        int64
	BytesOut       int64
	ResultDigest   Digest
	Generation     uint64
	Subject        string // delegated subject and audience, if any
	Audience       string
	Trace          string // W3C trace id
	Count          int    // how many identical denials this entry stands for, when more than one
	Until          time.Time
	Through        uint64 // on a checkpoint: the entry it vouches for, whose hash is ResultDigest
	Signature      string // on a checkpoint: Ed25519 over what it vouches for, base64
}

// ErrSpent says that there is no approval to use: it was used before, nobody said
// yes, or its question is not in this ledger or long over.
var ErrSpent = errors.New("the approval was used before, or never given")

// A Ledger keeps entries for good.
type Ledger interface {
	// Append makes all entries durable together, or none, and sets their
	// Number and Time. An answer that carries an approval number is written only
	// while the question of that number, on record here, has no answer; one with a
	// verdict is a no. An intent that carries one is written only if the answer was
	// a yes and no intent used it yet. Otherwise the whole batch is refused with
	// ErrSpent. That check and the write are one step. A question may be forgotten
	// once its time is over; it must not come back.
	Append(ctx context.Context, entries ...*Entry) error

	// Enqueue hands over an entry that may lag behind (an outcome). It does not
	// wait for the disk and is not cancelled by anybody's hanging up.
	Enqueue(entry *Entry)
}
