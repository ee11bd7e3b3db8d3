package wire

import (
	"time"
)

// A Kind says why a round trip gave no accepted reply.
type Kind uint8

// The kinds of errors. The zero value is none of them.
const (
	HostRefused      Kind = iota + 1 // the host gate said no; nothing was sent
	CredentialFailed                 // the credential could not be had; nothing was sent
	Transport                        // the connection failed
	HTTPStatus                       // a status that is neither 2xx nor a redirect
	Redirect                         // a redirect, which is never followed
	RPCError                         // a valid JSON-RPC error
	Malformed                        // a reply that breaks a rule
	TooLarge                         // a reply over the size limit
	ContentType                      // a media type or an encoding nobody asked for
	InputRequired                    // a resultType other than "complete"
	Deadline                         // the context's deadline passed
	Cancelled                        // the context was cancelled
)

var kindNames = [...]string{"none", "host_refused", "credential_failed", "transport", "http_status", "redirect",
	"rpc_error", "malformed", "too_large", "content_type", "input_required", "deadline", "cancelled"}

// String returns the kind as one lower-case word, for logs and metrics.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// An Error says why a round trip gave no accepted reply.
type Error struct {
	Kind   Kind
	Status int  // HTTP status, 0 when no answer came
	Rule   Rule // which rule a Malformed reply breaks; "" for other kinds

	// Code, Message and Data are a JSON-RPC error, when HasCode says there is
	// one: of Kind RPCError, or of Kind HTTPStatus when a 4xx carried it.
	// Message is the server's own text, not yet clipped.
	HasCode bool
	Code    int64
	Message string
	Data    []byte

	RetryAfter time.Duration // what the server asked for, 0 when it did not
	Challenge  string        // WWW-Authenticate of a 401 or 403, not yet clipped

	// Unanswered is the first method that the server asked of us on the event
	// stream. Nobody answers such requests, so a server may wait until the
	// deadline for it.
	Unanswered string

	// ID is the id that the message had, by which a notifications/cancelled names
	// it; "" for a notification and for a message that was never made.
	ID string

	// Wrote says that the request may have reached the server. False means that
	// no byte of the message has left and none will.
	Wrote bool

	text  string
	cause error
}

// Error says which rule was broken. Remote text in it is clipped and quoted.
func (e *Error) Error() string { return e.text }

// Unwrap returns the cause: a *HostError, the error of the credential, or that
// of the context.
func (e *Error) Unwrap() error { return e.cause }
