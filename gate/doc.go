// Package gate decides whether one tool call may leave this process, and sees
// to it that there is a durable record before it does.
//
// The gate fails closed. A tool without a class, a question nobody answers, a
// ledger that cannot be written: each is a refusal, never a default.
//
// Gate.Submit is the way in. It judges one call against one snapshot and
// answers with exactly one of three things: a Permit, which is the call and the
// only way to send it; a Question that a person has to answer first; a Refusal,
// which is already on record.
package gate
