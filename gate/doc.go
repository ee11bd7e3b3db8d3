// Package gate decides whether one tool call may leave this process, and sees
// to it that there is a durable record before it does.
//
// The gate fails closed. A tool without a class, a question nobody answers, a
// ledger that cannot be written: each is a refusal, never a default.
//
// Gate.Submit is the way in. It judges one call against one snapshot and
// answers with exactly one of three things: a Permit, which is the call and the
// only way to send it; a Question that a person has to answer first; a Refusal,
// which is already on record. Whoever holds a Permit spends it when the call goes
// out and settles it when the call is over, however it ends.
//
// A Question is either put to a person by the caller's own client, whose answer
// comes back with the question's sealed state, or waits for an administrator at
// the console (Questions, Decide, Wait). Both ways end in Submit, which judges the
// call again as things are then. What a question is bound to, and that it is
// answered once, is checked in one place for both.
//
// Nothing here does I/O of its own: the record is kept by a Ledger, the keys are
// those of a KeyRing. There is no goroutine, only an alarm for what silence
// decides; Close stops it.
package gate
