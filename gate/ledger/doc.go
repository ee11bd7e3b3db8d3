// Package ledger keeps gate's record on disk: one sequence of entries, each
// carrying the SHA-256 of the one before.
//
// The record is a directory of append-only files. A file holds one canonical
// JSON object (RFC 8785) a line and is named for the number of its first entry;
// the member "hash" is the SHA-256 of the line without that member. Anybody can
// read it with the tools at hand, also while a daemon writes.
//
// One goroutine writes. What arrives while a commit runs shares the next one, so
// that under load many entries share one sync, and alone an entry waits for
// exactly one. An entry that could not be synced was never acknowledged and is
// not in the file afterwards.
//
// Beside the segments lie "lock", held by the one writer, and "head", which
// repeats number and hash of the last acknowledged entry, so that entries missing
// from the end are noticed too.
package ledger
